"""Which queries siblings share: none whose answer has rows of unrelated columns, in whatever order the products come."""

import json
from typing import Any

import pytest

from processor.cli.choices import empty_registry
from processor.cli.printing.plan import served_joins
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.inspect.explain import explain, explanation_lines
from processor.tools.inspect.preview import planned_state, preview
from processor.values.record import Record
from registry.model import SlotPath, Snapshot
from statestore.memory import MeteredStore

ENTITIES = """
customer: {key: [id], columns: {id: int, name: string, code: string, born: date}}
invoice: {key: [id], columns: {id: int, customer_id: int, code: string, born: date, track_id: int}}
ticket: {key: [id], columns: {id: int, customer_id: int, code: string, born: date}}
track: {key: [id], columns: {id: int, genre_id: int, price: "decimal(9,2)", code: string, released: date}}
genre: {key: [id], columns: {id: int, price: decimal, code: string, day: date}}
"""


def embed(entity: str, child: str, parent: str, **more: Any) -> dict[str, Any]:
    return {"many": entity, "on": {child: parent}, "fields": ["id"], **more}


def product(name: str, root: str, **embeds: dict[str, Any]) -> dict[str, str]:
    return {f"{name}.json": json.dumps({"product": name, "root": root, "fields": ["id"], "embed": embeds})}


def cards(child: str = "customer_id", parent: str = "id") -> dict[str, str]:
    """A customer with invoices and tickets, which join it by the same column."""
    return product("card", "customer", invoices=embed("invoice", child, parent), tickets=embed("ticket", child, parent))


def genres(child: str = "genre_id", parent: str = "id") -> dict[str, str]:
    return product("shelf", "genre", tracks=embed("track", child, parent))


def applied(stored: Snapshot, *products: dict[str, str]) -> tuple[Snapshot, Plan]:
    """The registry and its plan after an apply of each of these products, one after the other."""
    known: dict[str, str] = {}
    for one in products:
        known |= one
        _, _, stored, plan = planned_state(load({"entities.yaml": ENTITIES, **known}), stored, frozenset())
    return stored, plan


def downs(plan: Plan, name: str = "card") -> dict[str, SlotPath]:
    return {n.join.entity: n.down for n in plan.products[name].nodes if isinstance(n.down, SlotPath)}


SAME_TYPES = [
    ("customer_id", "id", "genre_id", "id"),  # serial ids
    ("code", "code", "code", "code"),  # texts
    ("born", "born", "released", "day"),  # dates
    ("customer_id", "id", "price", "price"),  # int and decimal write the same number alike
    ("code", "code", "genre_id", "id"),  # the text "17" and the number 17
    ("born", "born", "code", "code"),  # a date and a text
]


@pytest.mark.parametrize(("child", "parent", "other", "above"), SAME_TYPES)
def test_columns_of_an_entity_outside_the_document_get_a_slot_of_their_own(
    child: str, parent: str, other: str, above: str
) -> None:
    card, shelf = cards(child, parent), genres(other, above)
    for order in ((card, shelf), (shelf, card), ({**card, **shelf},)):
        stored, plan = applied(empty_registry(Settings()), *order)
        found = downs(plan)
        assert found["invoice"] == found["ticket"] == SlotPath(slot=found["invoice"].slot, pinned=False)
        (tracks,) = [one.slot for one in stored.assignments_of("track")]
        assert tracks != found["invoice"].slot
    alone = plan_alone(load({"entities.yaml": ENTITIES, **card, **shelf}), Settings().slots)
    assert downs(alone) == found


@pytest.mark.parametrize(("child", "parent", "other", "above"), SAME_TYPES)
def test_where_no_other_slot_is_free_each_child_has_a_pinned_query(
    child: str, parent: str, other: str, above: str
) -> None:
    one_slot = Settings(slots=1)
    definitions = load({"entities.yaml": ENTITIES, **cards(child, parent), **genres(other, above)})
    _, plan = applied(empty_registry(one_slot), cards(child, parent), genres(other, above))
    strangers = ("track",) if above == "id" else ("genre", "track")
    assert all(one.pinned and one.strangers == strangers for one in downs(plan).values())
    why = f"GSI_1 has rows of {', '.join(strangers)}, too"
    lines = list(explanation_lines(explain(plan, plan.products["card"])))
    assert sum(f"pinned, since {why}" in line for line in lines) == 2
    slots = preview(definitions, empty_registry(one_slot), frozenset()).slots
    (own,) = [served_joins(slot) for slot in slots if slot.entity == "ticket"]
    assert own.endswith(f" (a query of its own where {why})")


@pytest.mark.parametrize(
    ("child", "parent", "other", "above"),
    [
        ("customer_id", "id", "released", "day"),  # a number and a date
        ("born", "born", "price", "price"),  # a date and a number
        ("born", "born", ("code", "released"), ("code", "day")),  # one column and two
    ],
)
def test_columns_that_are_never_equal_share_a_slot_with_the_query(
    child: str, parent: str, other: str | tuple[str, str], above: str | tuple[str, str]
) -> None:
    pairs = [(other, above)] if isinstance(other, str) else zip(other, above, strict=True)
    tracks = {"many": "track", "on": dict(pairs), "fields": ["id"]}
    _, plan = applied(empty_registry(Settings(slots=1)), cards(child, parent), product("shelf", "genre", tracks=tracks))
    assert not any(one.pinned for one in downs(plan).values())


def test_a_later_product_that_fills_the_slot_pins_the_queries_of_an_earlier_one() -> None:
    stored, plan = applied(empty_registry(Settings(slots=1)), cards())
    assert not downs(plan)["ticket"].pinned
    _, plan = applied(stored, {**cards(), **genres()})
    assert downs(plan)["ticket"].pinned
    assert downs(plan)["invoice"].pinned
    assert not any(one.pinned for one in downs(applied(stored, {**cards(), **genres("id", "id")})[1]).values())


def test_a_product_that_reads_the_unrelated_columns_below_shares_no_query_with_them_either() -> None:
    """Invoices show their track, and the track its genre, so rows of tracks lie in a slot by the id of their genre."""
    genre = {"one": "genre", "on": {"id": "genre_id"}, "fields": ["id"]}
    track = {"one": "track", "on": {"id": "track_id"}, "fields": ["id"], "embed": {"genre": genre}}
    deep = product(
        "card",
        "customer",
        invoices=embed("invoice", "customer_id", "id", embed={"track": track}),
        tickets=embed("ticket", "customer_id", "id"),
    )
    found = downs(applied(empty_registry(Settings()), deep)[1])
    assert found["invoice"] == found["ticket"] == SlotPath(slot=1, pinned=False)
    assert downs(applied(empty_registry(Settings(slots=2)), deep)[1])["invoice"] == SlotPath(slot=1, pinned=False)
    found = downs(applied(empty_registry(Settings(slots=2)), genres(), deep)[1])
    assert found["ticket"] == SlotPath(slot=2, pinned=False)


def test_columns_that_the_joins_of_the_document_set_equal_share_the_query() -> None:
    """A ticket's own customer joins by its code, so the slot has the same codes of all four entities."""
    down = embed("ticket", "code", "code", embed={"same": embed("track", "code", "code")})
    card = product("card", "customer", invoices=embed("invoice", "code", "code"), tickets=down)
    found = downs(applied(empty_registry(Settings(slots=1)), card)[1])
    assert {name: one.pinned for name, one in found.items()} == {"invoice": False, "ticket": False, "track": True}


def test_products_of_one_root_share_their_query_only_without_strangers() -> None:
    more = {name.replace("card", "badge"): text.replace('"card"', '"badge"') for name, text in cards().items()}
    for slots, shared in ((1, False), (2, True)):
        _, plan = applied(empty_registry(Settings(slots=slots)), {**cards(), **genres()}, more)
        reads = [node.join.down for node in plan.trees["customer"].nodes]
        assert [isinstance(one, SlotPath) and not one.pinned for one in reads] == [shared, shared]


def read_units(tracks: int, slots: int) -> float:
    """The read units of a look at customer 1, whose genre 1 has this many tracks."""
    store = MeteredStore()
    _, plan = applied(empty_registry(Settings(slots=slots)), {**cards(), **genres()})
    trial = Trial(plan=plan, settings=Settings(), clock=VirtualClock(), other_store=store)
    rows = [("invoice", {"id": 1, "customer_id": 1}), ("ticket", {"id": 1, "customer_id": 1})]
    rows += [("track", {"id": n, "genre_id": 1}) for n in range(tracks)]
    trial.batch([record(entity, row, n) for n, (entity, row) in enumerate([*rows, ("customer", {"id": 1})])])
    trial.finish()
    before = store.read_units
    trial.batch([record("customer", {"id": 1, "name": "new"}, tracks + 10)])
    return float(store.read_units - before)


def record(entity: str, row: dict[str, Any], offset: int) -> Record:
    key, value = json.dumps({"id": row["id"]}).encode(), json.dumps(row).encode()
    return Record(topic=entity, partition=0, offset=offset, key=key, value=value)


@pytest.mark.parametrize("slots", [1, 2, 20])
def test_a_document_costs_the_same_however_many_unrelated_rows_have_its_number(slots: int) -> None:
    assert read_units(2_000, slots) == read_units(2, slots)
