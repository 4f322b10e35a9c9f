"""What the runner sends for steps that run side by side, and what each step gets back."""

from collections.abc import Sequence
from typing import Any

import pytest

from processor.engine.plan.step import Lookup, Send, WeakKey
from processor.engine.rounds.step_runner import StepRunner
from processor.values.record import Message
from statestore.store import Absent, Delete, Done, Item, Page, Query, Read, Refused, Write, WriteOutcome
from statestore.table import shown
from tests.unit.engine.rounds.logging_store import ADA, BOB, CYD, STARS, LoggingStore, V, asks, put, star

# Reads


def test_keys_of_all_steps_go_out_in_one_batched_read(store: LoggingStore) -> None:
    ada = put(store, ADA)
    results = StepRunner(store=store).run([asks((ADA, BOB)), asks((BOB, CYD)), asks((ADA,))])
    assert store.log == [("get", ADA, BOB, CYD)]
    assert results == [[ada, None], [None, None], [ada]]


def test_a_weak_read_gets_the_item_and_none_where_there_is_none(store: LoggingStore) -> None:
    ada = put(store, ADA)
    results = StepRunner(store=store).run([asks((WeakKey(ADA), WeakKey(BOB))), asks((BOB, WeakKey(ADA)))])
    assert results == [[ada, None], [None, ada]]


def test_keys_are_read_again_in_each_turn(store: LoggingStore) -> None:
    put(store, ADA, V[1])
    write = Write(ADA, {"_v": V[2]})
    (answers,) = StepRunner(store=store).run([asks((ADA,), (write,), (ADA,))])
    assert store.log == [("get", ADA), write, ("get", ADA)]
    assert [answers[0]["_v"], answers[2]["_v"]] == [V[1], V[2]]


def test_equal_lookups_go_out_once_in_a_run(store: LoggingStore) -> None:
    """Two steps ask in one turn, and one of them asks again in a later turn."""
    ice = shown(put(store, star("1"), GSI_1="ice"), "GSI_1")
    lookup = Lookup(STARS)
    results = StepRunner(store=store).run([asks((lookup,), (ADA,), (lookup,)), asks((lookup,))])
    assert store.log == [STARS, ("get", ADA)]
    assert results == [[Page([ice], None), None, Page([ice], None)], [Page([ice], None)]]


def test_the_next_run_asks_again(store: LoggingStore) -> None:
    runner = StepRunner(store=store)
    for _ in range(2):
        runner.run([asks((Lookup(STARS),))])
    assert store.log == [STARS, STARS]


def test_a_paged_lookup_reads_one_page(store: LoggingStore) -> None:
    stars: list[Item] = [shown(put(store, star(str(n)), GSI_1="ice"), "GSI_1") for n in range(3)]
    second = Lookup(STARS, paged=True, after=star("1"))
    results = StepRunner(store=store, page=2).run([asks((Lookup(STARS, paged=True),), (second,))])
    assert store.log == [("page", STARS, None, 2), ("page", STARS, star("1"), 2)]
    assert results == [[Page(stars[:2], star("1")), Page(stars[2:], None)]]


# Writes and messages


class LoggingOutbox:
    """Logs the messages that it takes, into the log of a store."""

    def __init__(self, log: list[Any]) -> None:
        self._log = log

    def send(self, message: Message) -> None:
        self._log.append(message)

    def flush(self) -> None:
        raise AssertionError("the runner does not flush: its caller does")


def test_writes_go_out_in_the_order_of_the_steps(store: LoggingStore) -> None:
    first, second, third = (Write(key, {"_v": V[1]}) for key in (CYD, ADA, BOB))
    gone = Delete(key=CYD)
    results = StepRunner(store=store).run([asks((first, second)), asks((gone,)), asks((third,))])
    assert store.log == [first, second, gone, third]
    written = {"PK": "TABLE#user", "SK": "cyd", "_v": V[1]}
    assert results == [[Done(None), Done(None)], [Done(written)], [Done(None)]]


def test_a_refusal_is_an_answer(store: LoggingStore) -> None:
    ada = put(store, ADA)
    write = Write(ADA, {"_v": V[2]}, when=Absent())
    assert StepRunner(store=store).run([asks((write,))]) == [[Refused(ada)]]


def test_a_step_gets_its_answers_in_the_order_of_its_requests(store: LoggingStore) -> None:
    ada, ice = put(store, ADA), shown(put(store, star("1"), GSI_1="ice"), "GSI_1")
    write, send = Write(BOB, {"_v": V[1]}), Send(Message("t", b"k", b"v"))
    runner = StepRunner(store=store, outbox=LoggingOutbox(store.log))
    results = runner.run([asks((write, Lookup(STARS), send, ADA, Delete(key=CYD), CYD)), asks((), (ADA,))])
    assert results == [[Done(None), Page([ice], None), None, ada, Done(None), None], [ada]]
    assert store.log == [send.message, STARS, ("get", ADA, CYD), write, Delete(key=CYD), ("get", ADA)]


class TurnStore(LoggingStore):
    """A store that logs the requests of a turn as it gets them."""

    def read(self, reads: Sequence[Read]) -> list[Page]:
        self.log.append(("reads", *reads))
        return [Page([], None) for _ in reads]

    def write_all(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        self.log.append(("writes", *requests))
        return [Done(None) for _ in requests]


def test_the_store_gets_the_lookups_of_a_turn_then_its_keys_then_its_writes() -> None:
    store, sun = TurnStore(), Query("GSI_1", "sun", "star")
    row, gone = Write(CYD, {"_v": V[1]}), Delete(key=BOB)
    steps = [asks((row, ADA, Lookup(STARS))), asks((Lookup(sun, paged=True, after=star("1")), gone, BOB))]
    StepRunner(store=store, page=7).run(steps)
    assert store.log[:3] == [
        ("reads", Read(STARS), Read(sun, star("1"), 7)),
        ("get", ADA, BOB),
        ("writes", row, gone),
    ]


def test_a_step_that_ends_early_leaves_the_others_running(store: LoggingStore) -> None:
    results = StepRunner(store=store).run([asks(), asks((ADA,)), asks((BOB,), (CYD,))])
    assert results == [[], [None], [None, None]]
    assert store.log == [("get", ADA, BOB), ("get", CYD)]


def test_a_message_without_an_outbox_is_an_error(store: LoggingStore) -> None:
    with pytest.raises(TypeError, match=r"^a step sends to topic t, and this runner has no outbox$"):
        StepRunner(store=store).run([asks((Send(Message("t", b"k", b"v")),))])


def test_steps_that_ask_nothing_send_nothing(store: LoggingStore) -> None:
    assert StepRunner(store=store).run([]) == []
    assert StepRunner(store=store).run([asks((), ())]) == [[]]
    assert store.log == []
