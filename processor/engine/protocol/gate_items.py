"""The durable items of the gates: portions, release notes, and the note of closed transactions (`protocol.held_roots`).

A portion is what a task leaves to the gates: the roots that wait, and the records of source transactions that it has seen.

    OPEN, held#<run>.<round>.<hash>.<n>    `held`: the entries as one JSON text, compressed; `at`: the date, in seconds since 1970

A task writes its portions before its round ends, in as few items as possible, and hands them to the driver. A portion never
changes. Its name comes from its content, so a retried task writes the same item again.

Release notes: durable notes of the roots that rounds release, of products whose messages keep a distance (`every`).

    OPEN, released#<run>.<round>    `released`: the roots; `at`: the date, in seconds since 1970

The driver writes the note before the round, so a crash in between makes a message late, never early. A note names a root by a
hash: it may outlive an erasure.

Closed transactions: those that the job has forgotten, of whose records a portion still names some.

    OPEN, closed    `closed`: the topic and the id of each

Without this note, a start would take such a transaction for an open one: its other portions are gone.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from math import inf
from typing import Any, NamedTuple

from processor.engine.plan.step import Root
from processor.engine.protocol.pending import PARTITION
from processor.engine.protocol.segments import BYTES_PER_ITEM, pack, unpack
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.store import Delete, Item, Write
from statestore.writes import write_note

Ranges = tuple[tuple[int, int], ...]
"""First and last number of each range, rising, with a gap between two ranges."""


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """The numbers."""
    return _joined((number, number) for number in sorted(numbers))


def range_union(one: Ranges, other: Ranges) -> Ranges:
    """The numbers of both."""
    return _joined(sorted((*one, *other)))


def range_count(ranges: Ranges) -> int:
    """How many numbers there are."""
    return sum(last - first + 1 for first, last in ranges)


def _joined(rising: Iterable[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for first, last in rising:
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


TransactionName = tuple[str, str]
"""The topic of the transaction metadata, and the id."""
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class SeenPlace(NamedTuple):
    """The records of a transaction, and of a table, in a partition. `first`, `last`: offsets; `orders`: their numbers, which rise
    with the offsets."""

    first: int
    last: int
    orders: Ranges

    def with_those_of(self, other: "SeenPlace") -> "SeenPlace":
        """Those of both."""
        return SeenPlace(
            min(self.first, other.first), max(self.last, other.last), range_union(self.orders, other.orders)
        )

    def is_followed_by_a_copy(self, other: "SeenPlace") -> bool:
        """Whether later offsets have numbers that are here."""
        return self.last < other.first and other.orders[0][0] <= self.orders[-1][1]


class SeenRecords(NamedTuple):
    """The records of a transaction that tasks have read. `time`, `last`: Kafka's times of the oldest and of the newest, in
    seconds since 1970; `places`: by table and partition; `again`: whether the connector has sent a record of it again."""

    time: float
    last: float
    places: Mapping[tuple[str, int], SeenPlace]
    again: bool = False

    def with_those_of(self, other: "SeenRecords") -> "SeenRecords":
        """Those of both."""
        both = [(at, self.places[at], place) for at, place in other.places.items() if at in self.places]
        copied = any(one.is_followed_by_a_copy(two) or two.is_followed_by_a_copy(one) for _, one, two in both)
        merged = {at: one.with_those_of(two) for at, one, two in both}
        return SeenRecords(
            min(self.time, other.time),
            max(self.last, other.last),
            {**self.places, **other.places, **merged},
            self.again or other.again or copied,
        )

    @property
    def tables(self) -> set[str]:
        """The tables of the records."""
        return {table for table, _ in self.places}

    def count(self, table: str) -> int:
        """How many records of the table there are, without those that were sent again."""
        orders: Ranges = ()
        for (name, _), place in self.places.items():
            if name == table:
                orders = range_union(orders, place.orders)
        return range_count(orders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """`roots`: that wait, each with Kafka's time of the oldest record that led to it. `seen`: the records of transactions.
    `unfound`: the products with roots that a fan-out has yet to find."""

    roots: Mapping[Root, float] = field(default_factory=dict)
    seen: Mapping[TransactionName, SeenRecords] = field(default_factory=dict)
    unfound: frozenset[str] = frozenset()


class HeldPortion(NamedTuple):
    """A part of what a task leaves, in one item. It travels to the driver as text. `at`: when the task left it, in seconds
    since 1970."""

    item: Key
    at: float
    text: bytes

    @property
    def held(self) -> Held:
        """What the text says."""
        return _held(self.text)

    @property
    def round_name(self) -> str:
        """The run and the round, in an order that texts have too."""
        return self.item.sk.split("#")[1][:21]

    def write(self) -> Write:
        """The write that makes the portion durable."""
        return write_note(self.item, {"held": pack(self.text), "at": Decimal(f"{self.at:.3f}")})


def make_portions(held: Held, run: int, round_: int, at: float) -> Iterator[HeldPortion]:
    """The portions of what a task leaves; none of nothing."""
    entries = [_encoded(entry).encode() for entry in _held_entries(held)]
    name = f"held#{run:010d}.{round_:010d}.{sha256(b','.join(entries)).hexdigest()[:16]}"
    for n, text in enumerate(_held_texts(entries)):
        yield HeldPortion(Key(PARTITION, f"{name}.{n:06d}"), at, text)


def read_portion(item: Item) -> HeldPortion | None:
    """The portion in an item of `PARTITION`; None where the item holds something else."""
    if "held" not in item:
        return None
    return HeldPortion(key_of_item(item), float(item["at"]), unpack(item["held"]))


def without_roots(item: Item, roots: Container[Root]) -> Write:
    """The write of a portion's item without these roots."""
    entries = json.loads(unpack(item["held"]))
    left = [entry for entry in entries if entry[0] != "root" or (entry[1], entry[2]) not in roots]
    return write_note(key_of_item(item), {"held": pack(_encoded(left).encode()), "at": item["at"]})


def _held_entries(held: Held) -> Iterator[list[Any]]:
    for (product, root), time in held.roots.items():
        yield ["root", product, root, None if time == inf else time]
    for product in sorted(held.unfound):
        yield ["unfound", product]
    for (topic, name), seen in held.seen.items():
        places = [[*at, *place] for at, place in seen.places.items()]
        yield ["seen", topic, name, seen.time, seen.last, int(seen.again), places]


def _held_texts(entries: Iterable[bytes]) -> Iterator[bytes]:
    portion: list[bytes] = []
    size = 0
    for entry in entries:
        if portion and size + len(entry) >= BYTES_PER_ITEM:
            yield b"[" + b",".join(portion) + b"]"
            portion, size = [], 0
        portion.append(entry)
        size += len(entry) + 1
    if portion:
        yield b"[" + b",".join(portion) + b"]"


def _held(text: bytes) -> Held:
    roots: dict[Root, float] = {}
    seen: dict[TransactionName, SeenRecords] = {}
    unfound: set[str] = set()
    for kind, *values in json.loads(text):
        if kind == "root":
            product, root, time = values
            roots[product, root] = inf if time is None else time
        elif kind == "unfound":
            unfound.add(values[0])
        else:
            topic, name, time, last, again, parts = values
            places = {
                (table, partition): SeenPlace(first, final, tuple((low, high) for low, high in orders))
                for table, partition, first, final, orders in parts
            }
            seen[topic, name] = SeenRecords(time, last, places, bool(again))
    return Held(roots=roots, seen=seen, unfound=frozenset(unfound))


@dataclass(slots=True, kw_only=True)
class ReleaseNotes:
    """The notes of a run, and of those before it."""

    run: int
    _published: dict[str, float] = field(default_factory=dict)
    _notes: dict[Key, float] = field(default_factory=dict)

    def reload(self, items: Iterable[Item], now: float, date: float) -> None:
        """Takes the notes of earlier runs."""
        for item in (item for item in items if "released" in item):
            at = now - max(0.0, date - float(item["at"]))
            self._notes[key_of_item(item)] = at
            for digest in json.loads(unpack(item["released"])):
                self._published[digest] = max(at, self._published.get(digest, -inf))

    def published_at(self, root: Root) -> float:
        """When the last message of the root went out, on the job's clock; minus infinity where that is long ago."""
        return self._published.get(_digest(root), -inf)

    def begin(self, roots: Iterable[Root], round_: int, now: float, date: float) -> Write:
        """Notes, before this round, that it publishes these roots."""
        key = Key(PARTITION, f"released#{self.run:010d}.{round_:010d}")
        self._notes[key] = now
        text = json.dumps(sorted(map(_digest, roots))).encode()
        return write_note(key, {"released": pack(text), "at": Decimal(f"{date:.3f}")})

    def sent(self, roots: Iterable[Root], now: float) -> None:
        """Takes when the messages of these roots have gone out."""
        self._published.update((_digest(root), now) for root in roots)

    def forget(self, before: float) -> Iterator[Key]:
        """Forgets what happened before this moment. Yields the items of the notes."""
        old = [key for key, at in self._notes.items() if at <= before]
        for key in old:
            del self._notes[key]
            yield key
        if old:
            self._published = {digest: at for digest, at in self._published.items() if at > before}


def _digest(root: Root) -> str:
    """A name of the root that shows no value of a row."""
    return sha256("\0".join(root).encode()).hexdigest()[:16]


CLOSED = Key(PARTITION, "closed")


@dataclass(slots=True, kw_only=True)
class ClosedTransactions:
    """`portions`: of each, those that name it."""

    portions: dict[TransactionName, set[Key]] = field(default_factory=dict)
    _noted: frozenset[TransactionName] = frozenset()

    def reload(self, items: Iterable[Item]) -> None:
        """Takes the note of an earlier run."""
        for item in (item for item in items if "closed" in item):
            self._noted = frozenset((topic, name) for topic, name in json.loads(unpack(item["closed"])))
            self.portions = {name: set() for name in self._noted}

    def left_out(self, item: Key, held: Held) -> Held:
        """What a portion of an earlier run says, without those transactions."""
        for name in held.seen.keys() & self.portions.keys():
            self.portions[name].add(item)
        return replace(held, seen={name: seen for name, seen in held.seen.items() if name not in self.portions})

    def update(self, used: AbstractSet[Key]) -> list[Write | Delete]:
        """Forgets those that no portion names any more. `used`: the portions that stay. Returns the requests that change the
        note."""
        left = {name: portions & used for name, portions in self.portions.items()}
        self.portions = {name: portions for name, portions in left.items() if portions}
        if self._noted == self.portions.keys():
            return []
        self._noted = frozenset(self.portions)
        text = json.dumps(sorted(self.portions)).encode()
        return [write_note(CLOSED, {"closed": pack(text)})] if self.portions else [Delete(key=CLOSED)]
