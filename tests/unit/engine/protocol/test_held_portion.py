"""What a task leaves for the gates: as the text of items, and back."""

from math import inf

from processor.engine.protocol.gate_items import (
    Held,
    HeldPortion,
    SeenPlace,
    make_portions,
    read_portion,
    without_roots,
)
from processor.engine.protocol.segments import BYTES_PER_ITEM
from statestore.memory import MemoryStore
from statestore.store import Item
from tests.unit.engine.protocol.gate_scene import TOPIC, seen_of

HELD = Held(
    roots={("order", "7"): 5.0, ("order", "8"): inf},
    seen={(TOPIC, "t1"): seen_of(1.0, lines=1), (TOPIC, "t2"): seen_of(2.0, orders=2, lines=3)._replace(again=True)},
    unfound=frozenset({"order", "cart"}),
)


def stored(portion: HeldPortion) -> Item:
    store = MemoryStore()
    store.write(portion.write())
    return store.get([portion.item])[portion.item]


def test_a_portion_and_its_item_say_all_that_the_task_left() -> None:
    (portion,) = make_portions(HELD, 3, 8, 9.5)
    assert portion.held == HELD
    assert portion.round_name == "0000000003.0000000008"
    assert read_portion(stored(portion)) == portion
    assert read_portion({"PK": "OPEN", "SK": "released#1"}) is None
    assert list(make_portions(Held(), 3, 8, 9.5)) == []


def test_what_does_not_fit_into_an_item_fills_as_few_items_as_possible() -> None:
    roots = {("order", f"{n:05d}" + "k" * 1_000): float(n) for n in range(1_000)}
    portions = list(make_portions(Held(roots=roots), 3, 8, 9.5))
    assert len(portions) == 3
    assert [one.item.sk[-6:] for one in portions] == ["000000", "000001", "000002"]
    assert len({one.round_name for one in portions}) == 1
    assert max(len(one.text) for one in portions) <= BYTES_PER_ITEM
    assert {root: time for one in portions for root, time in one.held.roots.items()} == roots
    large = {("order", letter * BYTES_PER_ITEM): 1.0 for letter in "ab"}
    assert [len(one.held.roots) for one in make_portions(Held(roots=large), 3, 8, 9.5)] == [1, 1]


def test_an_item_without_some_roots_keeps_all_else() -> None:
    (portion,) = make_portions(HELD, 3, 8, 9.5)
    write = without_roots(stored(portion), {("order", "7"), (TOPIC, "t1"), ("seen", "order")})
    left = read_portion({"PK": portion.item.pk, "SK": portion.item.sk, **write.set})
    assert left is not None
    assert left.held == Held(roots={("order", "8"): inf}, seen=HELD.seen, unfound=HELD.unfound)
    assert left.at == 9.5


def test_records_that_come_at_later_offsets_with_earlier_numbers_were_sent_again() -> None:
    one = SeenPlace(5, 6, ((3, 4),))
    for other, copied in (
        (SeenPlace(7, 8, ((5, 6),)), False),
        (SeenPlace(7, 8, ((4, 5),)), True),
        (SeenPlace(6, 8, ((4, 5),)), False),
        (SeenPlace(3, 4, ((1, 2),)), False),
        (SeenPlace(3, 4, ((3, 3),)), True),
    ):
        both = [seen_of(1.0)._replace(places={("t", 0): place}) for place in (one, other)]
        assert both[0].with_those_of(both[1]).again is copied
        assert both[0]._replace(again=True).with_those_of(both[1]).again
        assert both[0].with_those_of(both[1]._replace(again=True)).again
