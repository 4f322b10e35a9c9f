"""Roots that a round could not publish: as durable items, and in the rounds of a later run."""

import json

from processor.engine.protocol.pending import PARTITION, ROOTS_PER_ROUND, Backlog
from processor.engine.protocol.segments import BYTES_PER_ITEM
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Delete


def backlog(run: int = 1, *products: str) -> Backlog:
    return Backlog(products=products or ("p", "q"), run=run)


def item(n: int, run: int = 1) -> Key:
    return Key(PARTITION, f"backlog#{run:010d}.0000000003.{n:06d}")


def test_each_item_has_roots_of_one_product_and_the_next_run_reads_them() -> None:
    store, first = MemoryStore(), backlog()
    for write in first.add(3, [("q", "2"), ("p", "1"), ("p", "é")]):
        store.write(write)
    assert {one["SK"]: (one["product"], json.loads(one["roots"])) for one in store.partition(PARTITION)} == {
        item(0).sk: ("p", ["1", "é"]),
        item(1).sk: ("q", ["2"]),
    }
    second = backlog(2)
    assert second.reload(store.partition(PARTITION)) == []
    assert second.waiting == {item(0): (("p", "1"), ("p", "é")), item(1): (("q", "2"),)}
    assert backlog(2, "q").reload(store.partition(PARTITION)) == [Delete(key=item(0))]
    assert backlog(0, "q").reload(store.partition(PARTITION)) == []  # of a later run


def test_a_run_notes_a_root_once() -> None:
    first = backlog()
    assert len(first.add(3, [("p", "1")])) == 1
    assert first.add(4, [("p", "1")]) == []
    assert [json.loads(write.set["roots"]) for write in first.add(4, [("p", "1"), ("p", "2")])] == [["2"]]


def test_an_item_has_a_bounded_number_of_roots_and_of_bytes() -> None:
    many = [("p", f"{n:05d}") for n in range(2 * ROOTS_PER_ROUND + 1)]
    assert [len(json.loads(write.set["roots"])) for write in backlog().add(3, many)] == [ROOTS_PER_ROUND] * 2 + [1]
    half = BYTES_PER_ITEM // 2 - 3  # a text has quotes and a comma
    for more, sizes in ((0, [2, 1]), (1, [1, 1, 1])):
        roots = [("p", f"{n}" + "k" * (half - 1 + more)) for n in range(3)]
        assert [len(json.loads(write.set["roots"])) for write in backlog().add(3, roots)] == sizes


def test_a_round_takes_items_of_products_that_have_not_stopped_until_it_has_enough_roots() -> None:
    later = backlog(2)
    full = tuple(("p", str(n)) for n in range(ROOTS_PER_ROUND - 1))
    later.waiting = {item(0): (("q", "1"),), item(1): full, item(2): (("p", "a"),), item(3): (("p", "b"),)}
    assert later.stop({"q": "no"}) == {"q": "no"}
    assert later.stop({"q": "again", "p2": "no"}) == {"p2": "no"}
    assert list(later.next()) == [item(1), item(2)]
    assert later.remove([item(1), item(2)]) == [Delete(key=item(1)), Delete(key=item(2))]
    assert list(later.next()) == [item(3)]
    assert list(later.waiting) == [item(0), item(3)]
