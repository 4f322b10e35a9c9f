"""The ledger and the runs: their items, word for word, and which reservations count as acknowledged."""

import pytest

from processor.progress.ledger import (
    LedgerEntry,
    Mark,
    Run,
    end_round,
    entry_key,
    hash_of,
    read_entry,
    read_run,
    reserve,
    run_key,
)
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Absent, Done, Equals, Refused, Write

ENTRY = Key("LEDGER#profile", "7")
RUN = Key("RUNS", "0000000003")
MARK = Mark(run=3, round=8, lane=1, attempt=2)


def test_a_root_and_a_run_have_one_item_each() -> None:
    assert entry_key("profile", "7") == ENTRY
    assert run_key(3) == RUN


def test_the_first_reservation_of_a_root_needs_an_absent_entry() -> None:
    entry = LedgerEntry(seq=1, hash="ab", mark=MARK, key='{"id":7}', version=4, topic="t")
    values = {"_f": 1, "seq": 1, "hash": "ab", "mark": "3.8.1.2", "key": '{"id":7}', "version": 4, "topic": "t"}
    assert reserve("profile", "7", LedgerEntry(), entry) == Write(ENTRY, values, when=Absent())


def test_a_later_reservation_needs_the_sequence_that_the_publisher_read() -> None:
    seen = LedgerEntry(seq=5, hash="ab", mark=MARK, key='{"id":7}', version=4, topic="t")
    write = reserve("profile", "7", seen, seen._replace(seq=6, hash="cd"))
    values = {"_f": 1, "seq": 6, "hash": "cd", "mark": "3.8.1.2", "key": '{"id":7}', "version": 4, "topic": "t"}
    assert write == Write(ENTRY, values, when=Equals("seq", 5))


def test_of_two_publishers_that_read_the_same_entry_one_reserves() -> None:
    store, seen = MemoryStore(), LedgerEntry()
    first = LedgerEntry(seq=1, hash="ab", mark=MARK, key='{"id":7}', version=4)
    assert store.write(reserve("profile", "7", seen, first)) == Done(None)
    second = store.write(reserve("profile", "7", seen, first._replace(hash="cd")))
    assert isinstance(second, Refused)
    assert read_entry(second.current) == first


def test_a_root_without_an_item_has_no_document_and_no_mark() -> None:
    assert read_entry(None) == LedgerEntry(seq=0, hash="", mark=None, key="")


def test_no_document_has_the_empty_hash() -> None:
    assert hash_of(None) == ""
    assert len({hash_of(b""), hash_of(b"{}"), hash_of(b"{} "), ""}) == 4


@pytest.mark.parametrize(
    ("run", "mark", "acknowledged"),
    [
        (Run(number=3), Mark(3, 0, 0, 0), False),
        (Run(number=3, through=7), Mark(3, 7, 0, 0), True),
        (Run(number=3, through=7), Mark(3, 8, 0, 0), False),
        (Run(number=3, through=7), Mark(3, 7, 0, 1), False),
        (Run(number=3, through=7, attempts={(7, 0): 1}), Mark(3, 7, 0, 1), True),
        (Run(number=3, through=7, attempts={(7, 0): 1}), Mark(3, 7, 0, 0), False),
        (Run(number=3, through=7, attempts={(7, 0): 1}), Mark(3, 7, 1, 0), True),
        (Run(number=3, through=7, attempts={(8, 0): 1}), Mark(3, 8, 0, 1), False),
    ],
    ids=[
        "no round ended",
        "the round ended",
        "the round did not end",
        "a second attempt that did not commit",
        "the second attempt committed",
        "the first attempt gave way to the second",
        "another lane",
        "a later round",
    ],
)
def test_a_reservation_counts_once_its_round_ended_for_the_attempt_that_committed(
    run: Run, mark: Mark, acknowledged: bool
) -> None:
    assert run.acknowledges(mark) is acknowledged


def test_the_end_of_a_round_is_written_only_over_an_earlier_end() -> None:
    run = Run(number=3, through=8)
    assert end_round(run, -1) == Write(RUN, {"_f": 1, "through": 8}, when=Absent())


def test_the_end_of_a_round_names_the_attempts_that_were_not_the_first() -> None:
    run = Run(number=3, through=8, attempts={(8, 1): 2, (5, 0): 1})
    values = {"_f": 1, "through": 8, "attempts": [[5, 0, 1], [8, 1, 2]]}
    assert end_round(run, 5) == Write(RUN, values, when=Equals("through", 5))


@pytest.mark.parametrize("run", [Run(number=3, through=0), Run(number=3, through=8, attempts={(5, 0): 1, (8, 1): 2})])
def test_a_run_is_read_back_as_it_was_written(run: Run) -> None:
    store = MemoryStore()
    store.write(end_round(run, -1))
    assert read_run(3, store.get([RUN])[RUN]) == run


def test_a_run_without_an_item_ended_no_round() -> None:
    assert read_run(3, None) == Run(number=3, through=-1, attempts={})
