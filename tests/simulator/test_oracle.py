"""The simulator's oracle is the product's own SQL, as Postgres runs it: a few dozen random states of both shapes."""

import uuid
from random import Random

import pytest

from processor.oracle import oracle
from tests.integration.conftest import postgres_url
from tests.simulator import temper
from tests.simulator.history import draw, tables_of
from tests.simulator.oracle import documents
from tests.simulator.shapes import SHAPES

__all__ = ["postgres_url"]


@pytest.mark.parametrize("shape", list(SHAPES))
def test_nested_loops_and_postgres_answer_the_same_documents(shape: str, postgres_url: str) -> None:
    definitions = SHAPES[shape].definitions
    with oracle(postgres_url, f"simulator_{uuid.uuid4().hex[:8]}", definitions.entities) as postgres:
        for seed in range(20):
            rng = Random(f"{shape} {seed}")
            events = draw(rng, SHAPES[shape], temper.draw(rng, {"events": 30}))
            tables = tables_of(SHAPES[shape], events)
            postgres.load({entity: list(rows.values()) for entity, rows in tables.items()})
            for product in definitions.products.values():
                assert postgres.documents(product) == documents(product, definitions, tables)
