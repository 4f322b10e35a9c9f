"""Random products over random histories, with late indexes and crashes: the last documents equal the answer of Postgres to the
product's SQL over the last state of the tables."""

import json
import uuid

import pytest

from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.tools.inspect.oracle import oracle
from tests.integration.conftest import SECRETS, postgres_url
from tests.integration.product.products import ENTITIES
from tests.simulator.history import tables_after
from tests.simulator.oracle import documents
from tests.simulator.seeds import share
from tests.simulator.simulate import simulate

__all__ = ["postgres_url"]
SEEDS = range(min(200, share(5)))

LATER = [
    pytest.param(shape, marks=pytest.mark.rest)
    for shape in ("compared", "computed", "flat", "grouped", "ordered", "tree", "every")
]


@pytest.mark.parametrize("shape", ["any", *LATER])
def test_the_last_documents_of_any_product_equal_the_answer_of_postgres(postgres_url: str, shape: str) -> None:
    faults = 0
    entities = load({"entities.yaml": json.dumps(ENTITIES)}).entities
    with oracle(postgres_url, f"any_{uuid.uuid4().hex[:8]}", entities, SECRETS) as postgres:
        for seed in SEEDS:
            run = simulate(seed, overrides={"shape": f"{shape} {seed}"})
            (product,) = run.shape.definitions.products.values()
            assert run.problem is None, f"seed {seed}: {run.problem}\n{describe_product(product)}"
            tables = tables_after(run.shape, run.events)
            postgres.load({entity: rows.values() for entity, rows in tables.items()})
            assert postgres.documents(product) == documents(product, run.shape.definitions, tables), seed
            faults += run.world.faults.total()
    assert faults > len(SEEDS)
