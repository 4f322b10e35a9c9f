"""Open changes: changes that an index may not show yet (rule 5 of docs/architecture.md).

    OPEN, <run>.<round>.<task>.<n>    the open changes that a write task made, as JSON, compressed by zlib

Each changed row has one open change. It names the version that the indexes have yet to show (`Row.version_in_indexes`),
the join keys that the row has now, and its former keys, under which a late index may still show the row. While the
change is open, the runner lays the row itself over every index answer that lacks it (`processor.rounds.step_runner`).
An answer that shows the row at this version is evidence for its slot, and the runner hands it to the driver. S seconds
after the change the driver settles it, and again until every slot has shown the row. W seconds after that the driver
closes it, unless the row changed meanwhile.

Settling finds roots again only for a change of `again`: the overlay of this run did not cover all that happened to it. A
start reloaded it, also from another run, a replay opened it, or a slot did not show it in time.

`OpenChanges` is the driver's copy: keys, not rows. The table holds the same, so a driver that loses its copy reloads it
at its next start.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

from processor.progress.overlay import DriverOverlay, IndexKey, OpenRow
from processor.progress.packed_text import pack, unpack
from statestore import keys
from statestore.item_attributes import key_of_item, write_note
from statestore.items import JoinKey, Row, read_row, slot_name
from statestore.keys import Key
from statestore.store import Item, Store, Write

PARTITION = keys.progress_partition("OPEN")
CHANGES_PER_ITEM = 500
"""Open changes in one item: some 30 bytes each when compressed, 110 before."""
BYTES_PER_ITEM = 390_000
"""The most bytes of an item before its compression, so that it never exceeds the 400 KB of an item."""

SAMPLE = 100
"""Of so many changes, settling takes one in full although nothing asks for it, so that corrections go on watching the overlay.
The key and the version choose, so a retried task chooses the same."""

SPARE_ITEMS = 256
"""Durable items beyond the needed ones before the driver compacts them: about ten seconds' worth of a busy job."""

SlotKey = tuple[int, str]
"""(slot, join key)."""


class OpenChange(NamedTuple):
    """An open change of a row. `slots`: the keys that its slots hold now; `former`: join keys that it had, edges too.
    `due`: when the driver settles or closes it, in seconds on the job's clock; `shown`: every slot showed it, and at
    `due` it closes. `seen`: the slots that answers to live work showed; `again`: settling finds its roots again."""

    entity: str
    key: Key
    version: str
    slots: tuple[SlotKey, ...]
    former: frozenset[JoinKey]
    due: float = 0.0
    shown: bool = False
    seen: frozenset[int] = frozenset()
    again: bool = False

    def places(self) -> Iterator[tuple[IndexKey, OpenRow]]:
        """Where the overlay shows the row: at the index keys that it has or had."""
        for join_keys, has in ((self.former, False), (self.slots, True)):
            for slot, key in join_keys:
                if type(slot) is int and not keys.is_no_key(key):
                    yield (slot_name(slot), key), (self.version, has)


class Sight(NamedTuple):
    """An answer to live work showed a row in an index, at this version; "" where the answer lacks the row."""

    row: Key
    slot: str
    version: str


class SettleOutcome(NamedTuple):
    """What settling an open change found: the version and slots of the row now, and whether every slot showed them."""

    change: OpenChange
    version: str
    slots: tuple[SlotKey, ...]
    shown: bool


def open_change(entity: str, row: Row, former_keys: frozenset[JoinKey]) -> OpenChange:
    """The change that a write of a row opens, also a refused write."""
    return OpenChange(entity, row.key, row.version_in_indexes(), tuple(sorted(row.slots.items())), former_keys)


@dataclass(slots=True, kw_only=True)
class OpenChanges:
    """The open changes of a job. `wait` is W, `settle` is S, in seconds. `sample`: of so many changes settling finds the
    roots of one again, though nothing asks for it; 0 for no sample."""

    wait: float
    settle: float
    sample: int = SAMPLE
    by_row: dict[Key, OpenChange] = field(default_factory=dict)
    overlay: DriverOverlay = field(default_factory=DriverOverlay)
    _opened_at: dict[Key, float] = field(default_factory=dict)
    _rows_of_item: dict[Key, set[Key]] = field(default_factory=dict)
    _items_of_row: dict[Key, set[Key]] = field(default_factory=dict)

    def add(self, item: Key, changes: Iterable[OpenChange], now: float, *, again: bool = False) -> None:
        """Takes the changes of a durable item. Each takes over the keys of an earlier open change of its row. `again`:
        no round of this run has found their roots."""
        due, rows = now + self.settle, self._rows_of_item.setdefault(item, set())
        for change in changes:
            rows.add(change.key)
            self._items_of_row.setdefault(change.key, set()).add(item)
            self._opened_at[change.key] = now
            fully = again or self._is_sampled(change)
            change = OpenChange(
                change.entity, change.key, change.version, change.slots, change.former, due, again=fully
            )
            current = self.by_row.get(change.key)
            self._put(change if current is None else _merged(change, current))

    def reload(self, items: Iterable[Item], rows: Mapping[Key, Item], now: float) -> None:
        """Takes the durable items of earlier runs, at a start. Each change takes over version and keys of its row as
        the table has it."""
        for item in (item for item in items if "rows" in item):
            self.add(key_of_item(item), read_changes(item), now, again=True)
        for key, change in list(self.by_row.items()):
            stored = rows.get(key)
            if stored is not None:
                latest = open_change(change.entity, read_row(stored), change.former | set(change.slots))
                self._put(_merged(latest._replace(due=change.due), change))

    def lags(self, sights: Iterable[Sight], outcomes: Iterable[SettleOutcome], now: float) -> list[float]:
        """The seconds since each open change behind which an answer, to live work or to settling, lags."""
        rows = [row for row, _, version in sights if row in self.by_row and version < self.by_row[row].version]
        rows += [outcome.change.key for outcome in outcomes if not outcome.shown]
        return [now - self._opened_at[row] for row in rows if row in self._opened_at]

    def see(self, sights: Iterable[Sight]) -> None:
        """Notes which slots showed an open change at its version or newer."""
        for row, name, version in sights:
            change = self.by_row.get(row)
            if change is None or change.shown or version < change.version:
                continue
            slots = frozenset(slot for slot, _ in change.slots if slot_name(slot) == name) - change.seen
            if slots:
                self.by_row[row] = change._replace(seen=change.seen | slots)

    def confirm(self, now: float) -> None:
        """Counts due changes as shown that live work saw in every slot, and that need nothing else."""
        for change in self.due(now):
            if len(change.seen) == len(change.slots) and not change.again:
                self._put(change._replace(due=now + self.wait, shown=True))

    def due(self, now: float) -> list[OpenChange]:
        """The changes to settle now."""
        return [c for c in self.by_row.values() if not c.shown and c.due <= now]

    def next_due(self) -> float | None:
        """When the next change is due; None when nothing is open."""
        return min((c.due for c in self.by_row.values()), default=None)

    def record(self, outcomes: Iterable[SettleOutcome], now: float) -> None:
        """Takes the outcomes of settling. A change that another one replaced meanwhile ignores its outcome."""
        for outcome in outcomes:
            if self.by_row.get(outcome.change.key) != outcome.change:
                continue
            change = outcome.change
            if outcome.shown and outcome.version == change.version:
                self._put(change._replace(due=now + self.wait, shown=True, again=False))
            else:
                former = (change.former | set(change.slots)) - set(outcome.slots)
                due = now + self.settle
                self._put(
                    OpenChange(change.entity, change.key, outcome.version, outcome.slots, former, due, again=True)
                )

    def close(self, now: float) -> list[Key]:
        """Closes the changes that the indexes showed W ago; returns the durable items that no open change needs any
        more."""
        unused: list[Key] = []
        for change in [c for c in self.by_row.values() if c.shown and c.due <= now]:
            self._drop(change)
            for item in self._items_of_row.pop(change.key, set()):
                self._rows_of_item[item].discard(change.key)
                if not self._rows_of_item[item]:
                    del self._rows_of_item[item]
                    unused.append(item)
        return unused

    def fragmented(self) -> bool:
        """Whether there are many more durable items than the changes need: a row that changes all the time keeps every
        item that names it."""
        return len(self._rows_of_item) > SPARE_ITEMS + 2 * len(self.by_row) / CHANGES_PER_ITEM

    def compact(self, run: int, round_: int) -> tuple[dict[Key, list[OpenChange]], list[Key]]:
        """Puts all changes into as few items as possible; returns the items to write first, and the items that they
        replace."""
        replaced = list(self._rows_of_item)
        portions = enumerate(split_by_item(self.by_row.values()))
        new = {changes_key(run, round_, "gathered", n): list(portion) for n, portion in portions}
        self._rows_of_item = {item: {change.key for change in changes} for item, changes in new.items()}
        self._items_of_row = {change.key: {item} for item, changes in new.items() for change in changes}
        return new, replaced

    def _is_sampled(self, change: OpenChange) -> bool:
        name = f"{change.key.pk}{change.key.sk}{change.version}"
        return self.sample > 0 and crc32(name.encode()) % self.sample == 0

    def _put(self, change: OpenChange) -> None:
        old = self.by_row.pop(change.key, None)
        self.by_row[change.key] = change
        if old is not None:
            if old[2:5] == change[2:5]:  # version, slots and former keys
                return
            self.overlay.remove(old.key, old.places())
        self.overlay.add(change.key, change.places())

    def _drop(self, change: OpenChange) -> None:
        del self.by_row[change.key], self._opened_at[change.key]
        self.overlay.remove(change.key, change.places())


def overlay_of(changes: Iterable[OpenChange]) -> dict[IndexKey, dict[Key, OpenRow]]:
    """The overlay of some open changes."""
    overlay: dict[IndexKey, dict[Key, OpenRow]] = {}
    for change in changes:
        for index_key, open_row in change.places():
            overlay.setdefault(index_key, {})[change.key] = open_row
    return overlay


def _merged(new: OpenChange, current: OpenChange) -> OpenChange:
    """One change of a row for two: the higher version's keys are current, all others former. The merged change keeps
    the earlier due time, so the driver also settles a row that changes all the time."""
    high, low = (new, current) if new.version >= current.version else (current, new)
    former = (high.former | low.former | set(low.slots)) - set(high.slots)
    due = new.due if current.shown else min(new.due, current.due)
    again = new.again or current.again
    return high._replace(former=frozenset(former), due=due, shown=False, seen=frozenset(), again=again)


def split_by_item(changes: Iterable[OpenChange]) -> Iterator[tuple[OpenChange, ...]]:
    """The changes, split into durable items. Size matters only for long keys, or for many keys of one row."""
    portion: list[OpenChange] = []
    size = 0
    for change in changes:
        own = (
            200 + 4 * len(change.key.sk) + sum([8 + 4 * len(f"{k}{key}") for k, key in (*change.slots, *change.former)])
        )
        if portion and (len(portion) == CHANGES_PER_ITEM or size + own > BYTES_PER_ITEM):
            yield tuple(portion)
            portion, size = [], 0
        portion.append(change)
        size += own
    if portion:
        yield tuple(portion)


def changes_key(run: int, round_: int, task: str, n: int) -> Key:
    """The key of a durable item."""
    return Key(PARTITION, f"{run:010d}.{round_:010d}.{task}.{n:06d}")


def write_changes(item: Key, changes: Iterable[OpenChange]) -> Write:
    """The write that makes changes durable."""
    rows = [[c.entity, c.key.pk, c.key.sk, c.version, c.slots, sorted(c.former, key=str)] for c in changes]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return write_note(item, {"rows": pack(text)})


def read_changes(item: Item) -> list[OpenChange]:
    """The open changes of a durable item; none of an item with other content."""
    rows = json.loads(unpack(item["rows"])) if "rows" in item else []
    return [
        OpenChange(
            entity=entity,
            key=Key(pk, sk),
            version=version,
            slots=tuple((k, key) for k, key in slots),
            former=frozenset((k, key) for k, key in former),
        )
        for entity, pk, sk, version, slots, former in rows
    ]


def changed_rows(items: Collection[Item], store: Store) -> Mapping[Key, Item]:
    """The rows of the open changes among the items of `PARTITION`, as the table has them now."""
    return store.get({change.key for item in items for change in read_changes(item)}) if items else {}


def stored_overlay(store: Store) -> DriverOverlay:
    """The overlay of all open changes that the table holds, for a reader that is no job."""
    changes, items = OpenChanges(wait=0, settle=0), store.partition(PARTITION)
    changes.reload(items, changed_rows(items, store), 0)
    return changes.overlay
