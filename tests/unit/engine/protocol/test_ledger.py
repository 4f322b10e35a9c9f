"""The ledger and the runs: their items, word for word, and which reservations count as acknowledged."""

import pytest

from processor.engine.plan.plan import LedgerPlace
from processor.engine.protocol.ledger import (
    INVALIDATED,
    UNFIT,
    LedgerEntry,
    Mark,
    Run,
    end_round,
    group_key,
    group_partition,
    hash_of,
    ledgers_of,
    message_key,
    pack,
    read_entries,
    read_entry,
    read_run,
    reserve,
    retire_entries,
    run_key,
    unpack,
)
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Absent, Done, Equals, Refused, Write

ENTRY = Key("LEDGER#user#0", "7")
RUN = Key("RUNS", "0000000003")
MARK = Mark(run=3, round=8, lane=1, attempt=2)
DIGEST = "ab" * 16
KEY = '{"id":7}'
FIRST = LedgerEntry(seq=1, hash=DIGEST, mark=MARK, version=4)


def place(number: int) -> LedgerPlace:
    return LedgerPlace("user", number)


def test_twenty_products_of_a_root_share_one_item_and_a_run_has_one() -> None:
    assert {group_key(place(n), "7") for n in range(20)} == {ENTRY}
    assert group_key(place(20), "7") == Key("LEDGER#user#1", "7")
    assert all(group_partition(place(n)).startswith(ledgers_of("user")) for n in (0, 99))
    assert not group_partition(LedgerPlace("users", 0)).startswith(ledgers_of("user"))
    assert run_key(3) == RUN


def test_the_first_reservation_of_a_group_needs_an_absent_item() -> None:
    values = {"_f": 1, "turn": 1, "key": KEY, "e3": pack(FIRST)}
    assert reserve(ENTRY, None, {3: FIRST}, KEY) == Write(ENTRY, values, when=Absent())


def test_a_later_reservation_needs_the_turn_that_the_publisher_read() -> None:
    seen = {"turn": 5, "key": KEY, "e3": pack(FIRST)}
    values = {"_f": 1, "turn": 6, "key": KEY, "e4": pack(FIRST)}
    assert reserve(ENTRY, seen, {4: FIRST}, KEY) == Write(ENTRY, values, when=Equals("turn", 5))


def test_of_two_publishers_that_read_the_same_item_one_reserves_also_for_different_products() -> None:
    store = MemoryStore()
    assert store.write(reserve(ENTRY, None, {3: FIRST}, KEY)) == Done(None)
    second = store.write(reserve(ENTRY, None, {4: FIRST}, KEY))
    assert isinstance(second, Refused)
    assert dict(read_entries(second.current)) == {3: FIRST}
    third = FIRST._replace(seq=2)
    assert isinstance(store.write(reserve(ENTRY, second.current, {4: third}, KEY)), Done)
    assert dict(read_entries(store.get([ENTRY])[ENTRY])) == {3: FIRST, 4: third}


def test_an_item_that_expires_stays_once_a_publisher_reserves_again() -> None:
    store = MemoryStore()
    store.write(reserve(ENTRY, None, {3: FIRST}, KEY))
    store.write(retire_entries(ENTRY, store.get([ENTRY])[ENTRY], forget=9))
    retired = store.get([ENTRY])[ENTRY]
    assert (retired["ttl"], message_key(retired), read_entry(retired, 3)) == (9, "", FIRST)
    assert store.write(reserve(ENTRY, retired, {3: FIRST}, KEY)) == Done(retired)
    assert "ttl" not in store.get([ENTRY])[ENTRY]


def test_a_root_without_an_entry_has_no_document_and_no_mark() -> None:
    absent = LedgerEntry(seq=0, hash="", mark=None)
    assert read_entry(None, 3) == read_entry({"turn": 1, "key": KEY, "e4": pack(FIRST)}, 3) == absent
    assert message_key(None) == ""


def test_a_root_without_an_entry_in_a_topic_with_earlier_messages_has_an_unknown_document() -> None:
    assert read_entry(None, 3, earlier=8) == LedgerEntry(seq=8, hash=INVALIDATED)


@pytest.mark.parametrize(
    "entry",
    [
        FIRST,
        LedgerEntry(seq=2**40, hash=f"{UNFIT}{DIGEST}", mark=Mark(2**33, 2**32, 200, 128), version=300),
        LedgerEntry(seq=127, hash=INVALIDATED, mark=Mark(0, 0, 0, 0)),
        LedgerEntry(seq=128, hash="", mark=MARK, version=1, topic="a.topic_ü"),
    ],
    ids=["a document", "a dead letter", "invalidated", "no document"],
)
def test_a_packed_entry_is_read_back_as_it_was(entry: LedgerEntry) -> None:
    assert unpack(pack(entry)) == entry


def test_an_entry_that_nobody_reserved_is_never_written() -> None:
    with pytest.raises(ValueError, match="without a mark"):
        pack(LedgerEntry())


def test_a_usual_entry_takes_few_bytes() -> None:
    assert len(pack(LedgerEntry(seq=5000, hash=DIGEST, mark=Mark(12, 90_000, 40, 0), version=7))) == 26


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


@pytest.mark.parametrize("number", [0, 127, 128, 16_383, 16_384, 2**21, 10**18])
def test_an_entry_keeps_numbers_of_any_size(number: int) -> None:
    entry = LedgerEntry(seq=number, hash=DIGEST, mark=Mark(number, number + 1, number, 3), version=number)
    assert unpack(pack(entry)) == entry


def test_the_sequences_of_a_root_go_on_above_those_of_the_messages_that_its_topic_had_before() -> None:
    """The product took the topic of another one, whose messages had sequences up to 9."""
    item = {"turn": 5, "key": KEY, "e3": pack(FIRST)}
    assert [read_entry(item, 3, earlier).seq for earlier in (0, 1, 2, 9)] == [1, 1, 2, 9]
    assert read_entry(item, 3, 9) == FIRST._replace(seq=9)
    assert read_entry(item, 4, 9) == LedgerEntry(seq=9, hash=INVALIDATED)
    assert read_entry(None, 3) == LedgerEntry()


def test_no_document_is_shown_by_an_entry_without_one_alone() -> None:
    for entry in (LedgerEntry(seq=9, hash=INVALIDATED), FIRST._replace(topic="t")):
        assert not entry.shows("", 4, "t")
    assert LedgerEntry().shows("", 4, "t")


def test_the_item_of_an_erased_root_expires_under_the_turn_that_was_read() -> None:
    seen = {"turn": 5, "key": KEY, "e3": pack(FIRST)}
    assert retire_entries(ENTRY, seen, 99) == Write(
        ENTRY, {"_f": 1, "turn": 6, "key": "", "ttl": 99}, when=Equals("turn", 5)
    )


def test_an_item_without_entries_has_none() -> None:
    assert list(read_entries(None)) == []
    assert list(read_entries({"turn": 5, "key": KEY, "entry": b"", "x3": b"", "e3": pack(FIRST)})) == [(3, FIRST)]
