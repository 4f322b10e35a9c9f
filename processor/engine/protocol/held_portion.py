"""What a task leaves to the gates: the roots that wait, and the records of source transactions that it has seen.

    OPEN, held#<run>.<round>.<hash>.<n>    `held`: the entries as one JSON text, compressed; `at`: the date, in seconds since 1970

A task writes its portions before its round ends, in as few items as possible, and hands them to the driver. A portion never
changes. Its name comes from its content, so a retried task writes the same item again.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from math import inf
from typing import Any, NamedTuple

from processor.engine.plan.touch import Root
from processor.engine.protocol.backlog import PARTITION
from processor.engine.protocol.packed_text import pack, unpack
from processor.engine.protocol.ranges import Ranges, count, union
from processor.engine.protocol.segment import BYTES_PER_ITEM
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.store import Item, Write
from statestore.writes import write_note

TransactionName = tuple[str, str]
"""The topic of the transaction metadata, and the id."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class SeenPlace(NamedTuple):
    """The records of a transaction, and of a table, in a partition. `first`, `last`: offsets; `orders`: their numbers, which rise
    with the offsets."""

    first: int
    last: int
    orders: Ranges

    def with_those_of(self, other: "SeenPlace") -> "SeenPlace":
        """Those of both."""
        return SeenPlace(min(self.first, other.first), max(self.last, other.last), union(self.orders, other.orders))

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
                orders = union(orders, place.orders)
        return count(orders)


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
        return _decode(self.text)

    @property
    def round_name(self) -> str:
        """The run and the round, in an order that texts have too."""
        return self.item.sk.split("#")[1][:21]

    def write(self) -> Write:
        """The write that makes the portion durable."""
        return write_note(self.item, {"held": pack(self.text), "at": Decimal(f"{self.at:.3f}")})


def make_portions(held: Held, run: int, round_: int, at: float) -> Iterator[HeldPortion]:
    """The portions of what a task leaves; none of nothing."""
    entries = [_encode(entry).encode() for entry in _entries(held)]
    name = f"held#{run:010d}.{round_:010d}.{sha256(b','.join(entries)).hexdigest()[:16]}"
    for n, text in enumerate(_texts(entries)):
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
    return write_note(key_of_item(item), {"held": pack(_encode(left).encode()), "at": item["at"]})


def _entries(held: Held) -> Iterator[list[Any]]:
    for (product, root), time in held.roots.items():
        yield ["root", product, root, None if time == inf else time]
    for product in sorted(held.unfound):
        yield ["unfound", product]
    for (topic, name), seen in held.seen.items():
        places = [[*at, *place] for at, place in seen.places.items()]
        yield ["seen", topic, name, seen.time, seen.last, int(seen.again), places]


def _texts(entries: Iterable[bytes]) -> Iterator[bytes]:
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


def _decode(text: bytes) -> Held:
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
