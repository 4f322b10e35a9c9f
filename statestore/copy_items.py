"""Copies all items of a table into another one, and compares both afterwards.

    1. Read the source, a page at a time. Write each item that the target lacks, or holds with other attributes.
    2. Read the target, a page at a time. Delete the items that the source lacks, and compare all others. Where an index may be
       late, ask it for each row, until it shows the row.
    3. Compare the numbers of items.

Promises: at the end the target holds exactly the items of the source, and its indexes show them. A copy that broke off can be
repeated: the next one writes the missing items only. Does not: keep writers away from the tables; the caller does.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from statestore.items import key_of_item, shows, version_shown
from statestore.keys import Key
from statestore.limits import is_slot, key_text
from statestore.store import Absent, Delete, Item, Query, Read, Store, Terminal, Write
from statestore.table import ROW, TTL, range_name, shown

PAGE: Final = 1_000
"""The items of a page, and so of a step."""
COPY: Final = "copy"
COMPARE: Final = "compare"
INDEX_PAUSE_S: Final = 1.0
_KEYS: Final = frozenset(("PK", "SK", ROW))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCounts:
    """How many items a copy has read in the source, written to the target, deleted there, and found equal."""

    read: int = 0
    written: int = 0
    deleted: int = 0
    equal: int = 0

    def __str__(self) -> str:
        """The counts for people."""
        return f"{self.read:,} items read, {self.written:,} written, {self.deleted:,} deleted, {self.equal:,} compared"


class CopyStep(NamedTuple):
    """How far a copy is. `phase`: COPY or COMPARE; `done`: its items so far; `total`: all its items, None where it is unknown;
    `about`: the server counted them earlier. `late`: the entries of indexes that the copy waits for."""

    phase: str
    done: int
    total: int | None
    about: bool = False
    late: int = 0


ReportStep = Callable[[CopyStep], object]
"""Gets a step at the begin and at the end of a phase, after each page, and after each look at late indexes."""


def copy_items(
    source: Store,
    target: Store,
    *,
    without: Key,
    report: ReportStep,
    pause: Callable[[float], object] = time.sleep,
) -> CopyCounts:
    """Makes the target hold the items of the source. `without`: the key of an item that each table has for itself. `pause`: waits
    some seconds. Raises the errors of both stores, and Terminal where an item changes meanwhile, or does not fit."""
    counts, lasting, description = CopyCounts(), 0, source.describe()
    expected = description.items if description else None
    report(CopyStep(COPY, 0, expected, about=True))
    for items in _pages(source, without):
        written = _write_missing(target, items)
        counts = replace(counts, read=counts.read + len(items), written=counts.written + written)
        lasting += sum(TTL not in item for item in items)  # an item with a TTL may go at any moment, on both sides
        report(CopyStep(COPY, counts.read, expected, about=True))
    report(CopyStep(COPY, counts.read, counts.read))
    report(CopyStep(COMPARE, 0, counts.read))
    for items in _pages(target, without):
        kept = _compare(source, target, items)
        equal = counts.equal + len(kept)
        counts = replace(counts, deleted=counts.deleted + len(items) - len(kept), equal=equal)
        lasting -= sum(TTL not in item for item in kept)
        step = CopyStep(COMPARE, counts.equal, counts.read)
        for late in _late_rows(target, kept):
            report(step._replace(late=late))
            pause(INDEX_PAUSE_S)
        report(step)
    if lasting:
        raise Terminal(
            f"source and target differ by {abs(lasting):,} items: somebody writes to one of them; copy again"
        )
    report(CopyStep(COMPARE, counts.equal, counts.equal))
    return counts


def _pages(store: Store, without: Key) -> Iterator[list[Item]]:
    after: Key | None = None
    while True:
        items, after = store.scan(after, PAGE)
        yield [item for item in items if key_of_item(item) != without]
        if after is None:
            return


def _write_missing(target: Store, items: list[Item]) -> int:
    """Writes the items that the target lacks, or holds with other attributes; returns their number. Leaves an item that another
    writer made meanwhile: the comparison finds a difference."""
    stored = target.get([key_of_item(item) for item in items])
    other = [item for item in items if not _is_same(item, stored.get(key_of_item(item)))]
    target.write_all([Delete(key=key) for key in map(key_of_item, other) if key in stored])
    target.write_all([Write(key_of_item(item), _content(item), when=Absent()) for item in other])
    return len(other)


def _compare(source: Store, target: Store, items: list[Item]) -> list[Item]:
    """Deletes the items that the source lacks, and returns the others. Raises Terminal for an item that differs."""
    stored = source.get([key_of_item(item) for item in items])
    target.write_all([Delete(key=key) for key in map(key_of_item, items) if key not in stored])
    kept = [item for item in items if key_of_item(item) in stored]
    for item in kept:
        if not _is_same(item, stored[key_of_item(item)]):
            raise Terminal(f"{key_text(key_of_item(item))}: the item differs: somebody writes to a table; copy again")
    return kept


def _late_rows(target: Store, items: list[Item]) -> Iterator[int]:
    """Asks the indexes for these rows, until each index shows them. After each look: how many entries they lack."""
    versions = {
        Query(slot, item[slot], row=key_of_item(item), name=item.get(range_name(slot), "")): version_shown(
            shown(item, slot)
        )
        for item in items
        if not target.consistent
        for slot in filter(is_slot, item)
    }
    while versions:
        pages = target.read([Read(probe) for probe in versions])
        late = [probe for probe, page in zip(versions, pages, strict=True) if not shows(probe, page, versions[probe])]
        versions = {probe: versions[probe] for probe in late}
        if versions:
            yield len(versions)


def _is_same(item: Item, other: Item | None) -> bool:
    return other is not None and _content(item) == _content(other)


def _content(item: Item) -> dict[str, Any]:
    """The attributes that a writer sets: without the key, and without the name that the store adds."""
    return {name: value for name, value in item.items() if name not in _KEYS}
