"""Slots with an order in the database: a job reads them when they serve, and no product waits for them."""

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_of, requirements_of
from processor.language.definitions.load import load
from registry.edits.edit import Signature
from registry.edits.operations import NoMove, add_slots, move, retire
from registry.errors import ColumnUsed
from registry.model import AssignmentState, Requirements
from registry.repository import Registry

ENTITIES = """
user: {key: [id], columns: {id: int, name: string}}
star: {key: [id], columns: {id: int, who: string, at: int}}
"""
JOIN = "many: star, on: {who: name}, order_by: [-at], limit: 5"


def required(join: str, entities: str = ENTITIES) -> Requirements:
    product = f"product: profile\nroot: user\nembed: {{stars: {{{join}}}}}\n"
    return requirements_of(load({"entities.yaml": entities, "profile.yaml": product}))


ME = Signature("me", "a test")


@pytest.fixture(autouse=True)
def _all_slots(registry: Registry) -> None:
    registry.operate(ME, add_slots, 20)


def slot_read(plan: Plan) -> int | None:
    (node,) = plan.products["profile"].nodes
    return node.ordered and node.ordered.slot


def test_a_slot_with_an_order_serves_at_once_where_no_rows_are_stored(registry: Registry) -> None:
    registry.apply(required(JOIN + ", ordered: true"), who="me", why="first")
    assert registry.apply(required(JOIN + ", ordered: true"), who="me", why="again").changes == ()
    plan = plan_of(registry.snapshot())

    assert slot_read(plan) == 17
    assert plan.entities["star"].slots == {1: ("who",), 17: ("who",)}
    assert plan.entities["star"].orders == {17: (("at", True),)}


def test_over_stored_rows_the_product_reads_all_rows_until_the_slot_serves(registry: Registry) -> None:
    registry.apply(required(JOIN), who="me", why="first")
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=30)
    registry.applied(lease, registry.snapshot().version)
    registry.apply(required(JOIN + ", ordered: true"), who="me", why="second")

    states, reads = [], []
    for _ in range(4):
        found = registry.snapshot()
        plan = plan_of(found)
        registry.applied(lease, found.version)
        states.append([one.state for one in found.assignments if one.slot == 17])
        reads.append(slot_read(plan) if plan.products["profile"].product.joins[0].ordered else None)
        registry.advance(lease, found.version, proven=frozenset({"user", "star"}), published=frozenset())
    planned, writing, filling, serving = ([state] for state in list(AssignmentState)[:4])
    assert states == [planned, writing, filling, serving]
    assert reads == [None, None, None, 17]


def test_a_slot_with_an_order_moves_to_such_a_slot_only_and_may_retire(registry: Registry) -> None:
    registry.apply(required(JOIN + ", ordered: true"), who="me", why="first")
    with pytest.raises(NoMove, match="an order, which only GSI_17 and above can have"):
        registry.operate(ME, move, "star", 17, 3)
    registry.operate(ME, retire, "star", 17)

    assert slot_read(plan_of(registry.snapshot())) is None


def test_a_column_that_an_order_holds_stays_declared(registry: Registry) -> None:
    registry.apply(required(JOIN + ", ordered: true"), who="me", why="first")
    without = ENTITIES.replace(", at: int", "")
    with pytest.raises(ColumnUsed, match="at"):
        registry.apply(required("many: star, on: {who: name}, limit: 5", without), who="me", why="second")
