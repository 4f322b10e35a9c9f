"""Random products over random histories, in worlds that lie and crash: the last documents are what Postgres answers to the
product's SQL over the last state of the tables."""

import json
import uuid

from processor.definitions.describe import describe_product
from processor.definitions.load import load
from processor.oracle import oracle
from tests.integration.conftest import postgres_url
from tests.integration.model.products import ENTITIES
from tests.simulator.history import tables_of
from tests.simulator.oracle import documents
from tests.simulator.run import simulate
from tests.simulator.seeds import boost_of

__all__ = ["postgres_url"]
SEEDS = range(200)


def test_any_product_ends_in_what_postgres_says_whatever_happened(postgres_url: str) -> None:
    faults = 0
    entities = load({"entities.yaml": json.dumps(ENTITIES)}).entities
    with oracle(postgres_url, f"any_{uuid.uuid4().hex[:8]}", entities) as postgres:
        for seed in SEEDS:
            run = simulate(seed, boost=boost_of(seed, products=True))
            (product,) = run.shape.definitions.products.values()
            assert run.verdict is None, f"seed {seed}: {run.verdict}\n{describe_product(product)}"
            tables = tables_of(run.shape, run.events)
            postgres.load({entity: rows.values() for entity, rows in tables.items()})
            assert postgres.documents(product) == documents(product, run.shape.definitions, tables), seed
            faults += run.world.faults.total()
    assert faults > len(SEEDS)
