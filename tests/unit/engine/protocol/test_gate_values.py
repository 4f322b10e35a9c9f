"""The small values of gates: ranges, horizons, and transactions that are closed or have ended."""

from dataclasses import replace
from math import inf

import pytest

from processor.engine.protocol import source_transactions
from processor.engine.protocol.gate_items import (
    CLOSED,
    ClosedTransactions,
    Held,
    ReleaseNotes,
    SeenPlace,
    range_count,
    range_union,
    ranges_of,
)
from processor.engine.protocol.gates import SeenTransactions
from processor.engine.protocol.source_transactions import (
    REORDER_SECONDS,
    EndedTransaction,
    EndedTransactions,
    ReadGoal,
    ResentRecords,
)
from processor.values.record import Ignored, Record, SourceTransaction, TransactionEnd
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Delete, Write
from tests.unit.engine.protocol.decoding import entity
from tests.unit.engine.protocol.gate_scene import TOPIC, seen_of


def test_ranges_join_where_they_touch_or_lie_in_each_other() -> None:
    assert ranges_of([5, 1, 2, 9, 3, 6, 2]) == ((1, 3), (5, 6), (9, 9))
    assert range_union(((1, 9),), ((2, 3), (10, 11))) == ((1, 11),)
    assert range_union(((5, 6),), ((1, 3),)) == ((1, 3), (5, 6))
    assert range_count(((1, 3), (5, 6))) == 5


def test_a_horizon_is_where_the_topics_ended_at_first() -> None:
    horizon = ReadGoal()
    assert not horizon.read({("a", 0): 9})
    horizon.note_topic_ends({("a", 0): 5, ("a", 1): 0, ("b", 0): 1})
    horizon.note_topic_ends({("a", 0): 50})
    assert not horizon.read({("a", 0): 5})
    assert horizon.unread == {("b", 0): 1}
    assert horizon.read({("b", 0): 1})


def test_a_closed_transaction_is_left_out_of_the_portions_that_a_start_reloads() -> None:
    store, closed, item = MemoryStore(), ClosedTransactions(), Key("OPEN", "held")
    closed.portions = {(TOPIC, "t1"): {item}, (TOPIC, "t2"): set()}
    (note,) = closed.update({item})
    assert isinstance(note, Write)
    store.write(note)
    assert closed.update({item}) == []
    later = ClosedTransactions()
    later.reload(store.partition("OPEN"))
    assert later.portions == {(TOPIC, "t1"): set()}
    held = Held(seen={(TOPIC, name): seen_of(1.0, lines=1) for name in ("t1", "t3")})
    assert later.left_out(item, held).seen.keys() == {(TOPIC, "t3")}
    assert later.portions == {(TOPIC, "t1"): {item}}
    assert later.update({item}) == []
    assert later.update(set()) == [Delete(key=CLOSED)]


def test_the_oldest_end_goes_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_transactions, "MOST_ENDS", 2)
    ended = EndedTransactions()
    for name, time in (("t1", 1.0), ("t2", 2.0), ("t2", 5.0), ("t3", 3.0)):
        taken = ended.take(TransactionEnd(name, {}, time))
    assert (list(ended.known), taken) == (["t2", "t3"], EndedTransaction({}, 3.0, 3.0))
    assert (ended.known["t2"].first, ended.known["t2"].last) == (2.0, 5.0)
    newest = ended.newest_before(3.0)
    assert newest is not None
    assert newest.first == 2.0
    assert ended.newest_before(2.0) is None


def test_a_repeat_ends_with_the_end_that_was_the_newest_before_the_copies() -> None:
    ended, repeat = EndedTransactions(), ResentRecords()
    for name, time in (("t1", 100.0), ("t2", 200.0)):
        ended.take(TransactionEnd(name, {}, time))
    repeat.see("t1", 1_000.0, ended)
    assert repeat.newest is ended.known["t2"]
    at_first = repeat.is_sent
    repeat.end(ended.take(TransactionEnd("t3", {}, 300.0)))
    assert repeat.newest is ended.known["t3"]
    repeat.end(EndedTransaction({}, 250.0, 250.0))
    repeat.end(EndedTransaction({}, 1_000.0, 1_000.0))  # not before the copies
    assert repeat.newest is ended.known["t3"]
    ended.take(TransactionEnd("t3", {}, 1_000.0 - REORDER_SECONDS))
    assert (at_first, repeat.is_sent) == (False, True)
    repeat.see("t2", 1_000.0, ended)
    repeat.see("t2", 900.0, ended)
    assert (repeat.since, repeat.names) == (1_000.0, {"t1", "t2"})
    assert repeat.remove("t1")
    assert not repeat.remove("t2")


def test_a_start_knows_when_each_root_was_published_and_by_no_value_of_it() -> None:
    store, first = MemoryStore(), ReleaseNotes(run=1)
    store.write(first.begin([("order", "7"), ("order", "ada")], 3, 50.0, 1_000.0))
    (item,) = store.partition("OPEN")
    assert b"ada" not in bytes(item["released"])
    later = ReleaseNotes(run=2)
    later.reload(store.partition("OPEN"), 5.0, 1_020.0)
    assert [later.published_at(("order", key)) for key in ("7", "ada", "8")] == [-15.0, -15.0, -inf]
    assert later.published_at(("cart", "7")) == -inf
    later.sent([("order", "8")], 6.0)
    assert list(later.forget(-15.0)) == [Key("OPEN", "released#0000000001.0000000003")]
    assert [later.published_at(("order", key)) for key in ("7", "8")] == [-inf, 6.0]


ORDERS = replace(entity("orders", "id", "id int, amount int"), transactions=TOPIC, topic="shop.public.orders")


def test_a_task_notes_the_times_the_numbers_and_the_copies_of_the_records_of_a_transaction() -> None:
    for numbers, again in (((1, 2, 4), False), ((2, 2), True), ((2, 1), True)):
        seen = SeenTransactions(frozenset({TOPIC}))
        for offset, number in enumerate(numbers):
            record = Record(topic="o", partition=1, offset=offset, timestamp=9_000 - 1_000 * offset, key=b"", value=b"")
            named = SourceTransaction("t1", "public.orders", number)
            for one in (ORDERS, None, replace(ORDERS, transactions="other")):
                seen.see(Ignored(record=record, why="control", transaction=named), one)
        ((name, found),) = seen.records().items()
        place = SeenPlace(0, len(numbers) - 1, ranges_of(set(numbers)))
        assert (name, found.places) == ((TOPIC, "t1"), {("public.orders", 1): place})
        assert (found.time, found.last, found.again) == (10.0 - len(numbers), 9.0, again)
