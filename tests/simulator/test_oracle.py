"""The simulator's oracle gives the same documents as Postgres with the product's SQL, for 20 random states of each shape."""

import json
import uuid
from random import Random

import pytest

from processor.tools.inspect.oracle import oracle
from tests.integration.conftest import postgres_url
from tests.simulator.conditions import draw_conditions
from tests.simulator.history import draw_events, tables_after
from tests.simulator.oracle import documents
from tests.simulator.shapes import SHAPES, shape_of

__all__ = ["postgres_url"]


@pytest.mark.parametrize(
    "shape", [name for name in SHAPES if name != "prices"]
)  # its texts have no meaning of their own
def test_nested_loops_and_postgres_answer_the_same_documents(shape: str, postgres_url: str) -> None:
    definitions = SHAPES[shape].definitions
    with oracle(postgres_url, f"simulator_{uuid.uuid4().hex[:8]}", definitions.entities) as postgres:
        for seed in range(20):
            rng = Random(f"{shape} {seed}")
            events = draw_events(rng, SHAPES[shape], draw_conditions(rng, {"events": 30}))
            tables = tables_after(SHAPES[shape], events)
            postgres.load({entity: list(rows.values()) for entity, rows in tables.items()})
            for product in definitions.products.values():
                assert postgres.documents(product) == documents(product, definitions, tables)


@pytest.mark.rest
def test_at_any_moment_nested_loops_and_postgres_answer_the_same_documents_of_products_with_a_clock(
    postgres_url: str,
) -> None:
    for seed in range(25):
        shape, rng = shape_of(f"clocked {seed}"), Random(f"{seed} moments")
        definitions = shape.definitions
        with oracle(postgres_url, f"clock_{uuid.uuid4().hex[:8]}", definitions.entities) as postgres:
            events = draw_events(rng, shape, draw_conditions(rng, {"events": 30, "shape": shape.name}))
            tables = tables_after(shape, events)
            postgres.load({entity: list(rows.values()) for entity, rows in tables.items()})
            for product in definitions.products.values():
                for clock in rng.sample(range(260), 8):
                    answered = {key: json.loads(text) for key, text in postgres.answer(product, clock)}
                    assert answered == documents(product, definitions, tables, clock), (seed, product.name, clock)
