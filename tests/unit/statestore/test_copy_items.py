"""A copy of all items of a table, and what it finds."""

import re
from collections.abc import Sequence

import pytest

from statestore.copy_items import COMPARE, COPY, PAGE, CopyCounts, CopyStep, copy_items
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Delete, Item, Page, Query, Terminal, Write, WriteOutcome

NAME = Key("IDENTITY", "table")
ROWS = PAGE + 3


def a_source() -> MemoryStore:
    """A store with rows, edges, progress, and an item of its own."""
    made = MemoryStore(3)
    for n in range(ROWS):
        made.write(
            Write(Key("TABLE#star", f"{n:05d}"), {"_v": "2", "_indexed_v": "2", "GSI_1": "ice", ".note": f"note {n}"})
        )
    made.write(Write(Key("EDGE#star#ids[]=1", "00001"), {"_f": 1}))
    made.write(Write(Key("LEDGER#profile", "octocat"), {"_f": 1, "hash": b"\x00\x01", "parts": [1, None, "a"]}))
    made.write(Write(NAME, {"id": "source"}))
    return made


def everything(store: MemoryStore) -> list[Item]:
    """All items but the one that each table has for itself."""
    return [item for item in store.scan(None, 10**9).items if item["PK"] != NAME.pk]


def copied(source: MemoryStore, target: MemoryStore) -> CopyCounts:
    seen: list[CopyStep] = []
    counts = copy_items(source, target, without=NAME, report=seen.append)
    assert seen[-1] == CopyStep(COMPARE, counts.equal, counts.equal)
    return counts


def test_a_copy_has_all_items_but_the_one_that_each_table_has_for_itself() -> None:
    source, target = a_source(), MemoryStore(3)
    assert copied(source, target) == CopyCounts(read=ROWS + 2, written=ROWS + 2, deleted=0, equal=ROWS + 2)
    assert everything(target) == everything(source)
    assert target.get([NAME]) == {}
    assert len(target.query(Query("GSI_1", "ice"))) == ROWS


def test_a_copy_says_how_far_it_is_after_each_page_and_how_many_entries_of_indexes_are_late() -> None:
    steps: list[CopyStep] = []
    now = [0.0]
    target = MemoryStore(3, lag=1.0, clock=lambda: now[0])

    def pause(seconds: float) -> None:
        now[0] += seconds

    copy_items(a_source(), target, without=NAME, report=steps.append, pause=pause)
    all_items = ROWS + 2
    assert steps == [
        *(CopyStep(COPY, done, all_items + 1, about=True) for done in (0, PAGE - 1, all_items)),
        CopyStep(COPY, all_items, all_items),
        CopyStep(COMPARE, 0, all_items),
        CopyStep(COMPARE, PAGE, all_items, late=PAGE - 2),
        CopyStep(COMPARE, PAGE, all_items),
        CopyStep(COMPARE, all_items, all_items),
        CopyStep(COMPARE, all_items, all_items),
    ]


def test_a_second_copy_writes_only_the_differences() -> None:
    source, target = a_source(), MemoryStore(3)
    copied(source, target)
    source.write(Write(Key("TABLE#star", "00007"), {"_v": "3", "GSI_1": "fire"}, remove=(".note",)))
    source.delete(Delete(key=Key("TABLE#star", "00008")))
    target.write(Write(Key("TABLE#star", "by itself"), {"_v": "1", "GSI_1": "ice"}))
    assert copied(source, target) == CopyCounts(read=ROWS + 1, written=1, deleted=2, equal=ROWS + 1)
    assert everything(target) == everything(source)
    assert copied(source, target).written == 0


class BrokenStore(MemoryStore):
    """A target that fails in its second page of writes."""

    turns = 0

    def write_all(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        self.turns += 1
        if self.turns == 4:  # each page has a turn of deletes and a turn of writes
            raise Terminal("the disk is full")
        return super().write_all(requests)


def test_a_copy_that_broke_off_goes_on() -> None:
    source, target = a_source(), BrokenStore(3)
    with pytest.raises(Terminal, match="the disk is full"):
        copied(source, target)
    left = len(everything(target))
    assert copied(source, target).written == ROWS + 2 - left < ROWS
    assert everything(target) == everything(source)


class LossyStore(MemoryStore):
    """A target that acknowledges a write of one key, and loses or changes it."""

    def __init__(self, change: dict[str, str] | None) -> None:
        super().__init__(3)
        self._change = change

    def write_all(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        outcomes = super().write_all(requests)
        for request in requests:
            if request.key.sk == "00009" and self._change is None:
                super().delete(Delete(key=request.key))
            elif request.key.sk == "00009":
                super().write(Write(request.key, self._change or {}))
        return outcomes


@pytest.mark.parametrize(
    ("change", "said"),
    [(None, "source and target differ by 1 items"), ({".note": "other"}, "TABLE#star / 00009: the item differs")],
)
def test_an_item_that_is_lost_or_changed_on_the_way_is_found(change: dict[str, str] | None, said: str) -> None:
    with pytest.raises(Terminal, match=re.escape(said)):
        copied(a_source(), LossyStore(change))


class ExpiringStore(MemoryStore):
    """A target that deletes each item with a TTL before anybody reads it."""

    def scan(self, after: Key | None, limit: int) -> Page:
        items, end = super().scan(after, limit)
        return Page([item for item in items if "ttl" not in item], end)


def test_an_item_with_a_ttl_may_go_while_the_copy_runs() -> None:
    source = a_source()
    source.write(Write(Key("TABLE#star", "gone"), {"_v": "2", "ttl": 1}))
    counts = copied(source, ExpiringStore(3))
    assert (counts.read, counts.equal) == (ROWS + 3, ROWS + 2)


def test_a_copy_waits_until_late_indexes_show_its_rows() -> None:
    now = [0.0]
    target = MemoryStore(3, lag=5.0, clock=lambda: now[0])

    def pause(seconds: float) -> None:
        now[0] += seconds

    copy_items(a_source(), target, without=NAME, report=lambda _: None, pause=pause)
    assert now == [5.0]
    assert len(target.query(Query("GSI_1", "ice"))) == ROWS
