"""Open changes: those that an index may not show yet (rule 5 of the design).

    OPEN, <run>.<round>.<part>.<n>    the entries that a write part opened, as one JSON text

Each changed row has one entry: the version that the indexes have yet to show, the keys that the row has now, and those that it
had before, under which a late index may still show it. While it is open, the row itself, read by key, is laid over every index
answer (`processor.lockstep`). It is settled S after the change, again and again until every slot shows the row, and closed W
after that, if unchanged.

`OpenChanges` is what the driver holds: keys, not rows. The table holds the same, so that losing it counts as a start.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from processor.model.places import HeldPlaces, Place
from statestore import keys
from statestore.items import FORMAT, Held, Row, read_row, slot_name
from statestore.keys import Key
from statestore.store import Item, Write

PARTITION = "OPEN"
ROWS_AN_ITEM = 500
"""Entries in one item: about 150 bytes each, so far from the 400 KB that an item may have."""
BYTES_AN_ITEM = 390_000

SPARE_ITEMS = 256
"""Durable items beyond what the entries need before they are gathered: about ten seconds' worth of a busy job."""

Slot = tuple[int, str]


class Entry(NamedTuple):
    """An open change of a row. `slots`: what its slots hold now; `former`: join keys that it had, edges too. `due`: when to
    settle it, in seconds on the job's clock; `shown`: every slot showed it, and at `due` it closes."""

    entity: str
    key: Key
    version: str
    slots: tuple[Slot, ...]
    former: frozenset[Held]
    due: float = 0.0
    shown: bool = False

    def places(self) -> list[Place]:
        held = {*self.slots, *self.former} if self.former else self.slots
        return [(slot_name(slot), key) for slot, key in held if type(slot) is int and not keys.is_no_key(key)]


class Settled(NamedTuple):
    """What settling an entry found: the version and slots of the row as it stands, and whether every slot showed that."""

    entry: Entry
    version: str
    slots: tuple[Slot, ...]
    shown: bool


def entry_of(entity: str, row: Row, left: frozenset[Held]) -> Entry:
    """The entry that a write of a row opens, or a refused one."""
    return Entry(entity, row.key, row.version, tuple(sorted(row.slots.items())), left)


@dataclass(slots=True, kw_only=True)
class OpenChanges:
    """The open changes of a job. `wait` is W, `settle` is S, in seconds."""

    wait: float
    settle: float
    entries: dict[Key, Entry] = field(default_factory=dict)
    places: HeldPlaces = field(default_factory=HeldPlaces)
    _items: dict[Key, set[Key]] = field(default_factory=dict)
    _holders: dict[Key, set[Key]] = field(default_factory=dict)

    def opened(self, item: Key, entries: Iterable[Entry], now: float) -> None:
        """Takes the entries of a durable item; each takes over what was open of its row."""
        due, rows = now + self.settle, self._items.setdefault(item, set())
        for entry in entries:
            rows.add(entry.key)
            self._holders.setdefault(entry.key, set()).add(item)
            entry = Entry(entry.entity, entry.key, entry.version, entry.slots, entry.former, due)
            current = self.entries.get(entry.key)
            self._put(entry if current is None else _taken_over(entry, current))

    def reloaded(self, items: Iterable[Item], rows: Mapping[Key, Item], now: float) -> None:
        """Takes the durable items of earlier runs, at a start; an entry takes over version and keys of its row as it stands."""
        for item in (item for item in items if "rows" in item):
            self.opened(Key(item["PK"], item["SK"]), read_durable(item), now)
        for key, entry in list(self.entries.items()):
            stands = rows.get(key)
            if stands is not None:
                row = entry_of(entry.entity, read_row(stands), entry.former | set(entry.slots))
                self._put(_taken_over(row._replace(due=entry.due), entry))

    def due(self, now: float) -> list[Entry]:
        """The entries to settle now."""
        return [e for e in self.entries.values() if not e.shown and e.due <= now]

    def next_due(self) -> float | None:
        """When there is something to do next; None when nothing is open."""
        return min((e.due for e in self.entries.values()), default=None)

    def settled(self, outcomes: Iterable[Settled], now: float) -> None:
        """Takes what settling found. An entry that changed meanwhile keeps its own course."""
        for outcome in outcomes:
            if self.entries.get(outcome.entry.key) != outcome.entry:
                continue
            entry, former = outcome.entry, outcome.entry.former
            if outcome.shown and outcome.version == entry.version:
                self._put(entry._replace(due=now + self.wait, shown=True))
            else:
                former = (former | set(entry.slots)) - set(outcome.slots)
                self._put(
                    entry._replace(version=outcome.version, slots=outcome.slots, former=former, due=now + self.settle)
                )

    def close(self, now: float) -> list[Key]:
        """Closes what was shown long enough; returns the durable items that no open change needs any more."""
        free: list[Key] = []
        for entry in [e for e in self.entries.values() if e.shown and e.due <= now]:
            self._drop(entry)
            for item in self._holders.pop(entry.key, set()):
                self._items[item].discard(entry.key)
                if not self._items[item]:
                    del self._items[item]
                    free.append(item)
        return free

    def crowded(self) -> bool:
        """Whether there are many more durable items than their entries need: a row that changes all the time keeps every item
        that names it."""
        return len(self._items) > SPARE_ITEMS + 2 * len(self.entries) / ROWS_AN_ITEM

    def gathered(self, run: int, round_: int) -> tuple[dict[Key, list[Entry]], list[Key]]:
        """All entries in as few items as there can be: those to write first, and the items that they replace."""
        old = list(self._items)
        entries = list(self.entries.values())
        new = {item_key(run, round_, "gathered", n): list(held) for n, held in enumerate(portions(entries))}
        self._items = {item: {entry.key for entry in held} for item, held in new.items()}
        self._holders = {entry.key: {item} for item, held in new.items() for entry in held}
        return new, old

    def _put(self, entry: Entry) -> None:
        old = self.entries.pop(entry.key, None)
        self.entries[entry.key] = entry
        if old is not None:
            if (old.slots, old.former) == (entry.slots, entry.former):
                return
            self.places.remove(old.places(), old.key)
        self.places.add(entry.places(), entry.key)

    def _drop(self, entry: Entry) -> None:
        del self.entries[entry.key]
        self.places.remove(entry.places(), entry.key)


def places_of(entries: Iterable[Entry]) -> dict[Place, dict[Key, None]]:
    """The places of some open changes."""
    places: dict[Place, dict[Key, None]] = {}
    for entry in entries:
        for place in entry.places():
            places.setdefault(place, {})[entry.key] = None
    return places


def _taken_over(new: Entry, current: Entry) -> Entry:
    """One entry of a row for two: the higher version's keys, all others former. A row that changes all the time is settled all
    the same: it stays due when it was."""
    high, low = (new, current) if new.version >= current.version else (current, new)
    former = (high.former | low.former | set(low.slots)) - set(high.slots)
    due = new.due if current.shown else min(new.due, current.due)
    return high._replace(former=frozenset(former), due=due, shown=False)


def portions(entries: Iterable[Entry]) -> Iterator[tuple[Entry, ...]]:
    """The entries by durable item: few have long keys, or many of them."""
    held: list[Entry] = []
    size = 0
    for entry in entries:
        own = 200 + 4 * len(entry.key.sk) + sum([8 + 4 * len(f"{k}{key}") for k, key in (*entry.slots, *entry.former)])
        if held and (len(held) == ROWS_AN_ITEM or size + own > BYTES_AN_ITEM):
            yield tuple(held)
            held, size = [], 0
        held.append(entry)
        size += own
    if held:
        yield tuple(held)


def item_key(run: int, round_: int, part: str, n: int) -> Key:
    """The key of a durable item."""
    return Key(PARTITION, f"{run:010d}.{round_:010d}.{part}.{n:06d}")


def durable(item: Key, entries: Iterable[Entry]) -> Write:
    """The write that makes entries durable."""
    rows = [[e.entity, e.key.pk, e.key.sk, e.version, e.slots, sorted(e.former, key=str)] for e in entries]
    return Write(key=item, set={"_f": FORMAT, "rows": json.dumps(rows, ensure_ascii=False, separators=(",", ":"))})


def read_durable(item: Item) -> list[Entry]:
    """The entries of a durable item; none of one that holds something else that is open."""
    return [
        Entry(
            entity=entity,
            key=Key(pk, sk),
            version=version,
            slots=tuple((k, key) for k, key in slots),
            former=frozenset((k, key) for k, key in former),
        )
        for entity, pk, sk, version, slots, former in json.loads(item.get("rows", "[]"))
    ]
