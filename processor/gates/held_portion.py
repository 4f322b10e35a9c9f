"""What a task leaves to the gates: the roots that wait, and the records of source transactions that it has seen.

    OPEN, held#<run>.<round>.<hash>.<n>    `held`: the entries as one JSON text, compressed; `at`: the date, in seconds since 1970

A task writes its portions before its round ends, in as few items as possible, and hands them to the driver. A portion never
changes. Its name comes from its content, so a retried task writes the same item again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Any, NamedTuple

from processor.gates.ranges import Ranges, union
from processor.plan.touch import Root
from processor.progress.backlog import PARTITION
from processor.progress.packed_text import pack, unpack
from processor.progress.segment import BYTES_PER_ITEM
from statestore.item_attributes import key_of_item, write_note
from statestore.keys import Key
from statestore.store import Item, Write

TransactionName = tuple[str, str]
"""The topic of the transaction metadata, and the id."""
MOST_NAMES = 500
"""Transactions that one entry names."""
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class SeenRecords(NamedTuple):
    """The records of a transaction that tasks have read. `time`: Kafka's of the oldest, in seconds since 1970; `orders`:
    the numbers of the records of each table."""

    time: float
    orders: Mapping[str, Ranges]

    def with_those_of(self, other: "SeenRecords") -> "SeenRecords":
        """Those of both."""
        tables = dict.fromkeys((*self.orders, *other.orders))
        orders = {table: union(self.orders.get(table, ()), other.orders.get(table, ())) for table in tables}
        return SeenRecords(min(self.time, other.time), orders)


class HeldBy(NamedTuple):
    """Why a root waits. `time`: Kafka's of the oldest record that led to it; `transactions`: those that touched it."""

    time: float
    transactions: frozenset[TransactionName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """`roots`: that wait. `seen`: the records of transactions. `barriers`: product -> the transactions that touched roots of it
    which nobody has found yet: its fan-outs go on."""

    roots: Mapping[Root, HeldBy] = field(default_factory=dict)
    seen: Mapping[TransactionName, SeenRecords] = field(default_factory=dict)
    barriers: Mapping[str, frozenset[TransactionName]] = field(default_factory=dict)


class HeldPortion(NamedTuple):
    """A part of what a task leaves, in one item. `at`: when the task left it, in seconds since 1970."""

    item: Key
    at: float
    held: Held
    text: bytes

    @property
    def place(self) -> str:
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
        yield HeldPortion(Key(PARTITION, f"{name}.{n:06d}"), at, _decode(text), text)


def read_portion(item: Item) -> HeldPortion | None:
    """The portion in an item of `PARTITION`; None where the item holds something else."""
    if "held" not in item:
        return None
    text = unpack(item["held"])
    return HeldPortion(key_of_item(item), float(item["at"]), _decode(text), text)


def _entries(held: Held) -> Iterator[list[Any]]:
    for (product, root), by in held.roots.items():
        for names in _portions(by.transactions):
            yield ["root", product, root, _finite(by.time), names]
    for product, barrier in held.barriers.items():
        for names in _portions(barrier):
            yield ["barrier", product, names]
    for (topic, name), seen in held.seen.items():
        yield ["seen", topic, name, seen.time, seen.orders]


def _portions(names: Iterable[TransactionName]) -> Iterator[list[TransactionName]]:
    """The names in lists of at most MOST_NAMES; one empty list for none."""
    rising = sorted(names)
    return (rising[first : first + MOST_NAMES] for first in range(0, max(len(rising), 1), MOST_NAMES))


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
    roots: dict[Root, HeldBy] = {}
    seen: dict[TransactionName, SeenRecords] = {}
    barriers: dict[str, frozenset[TransactionName]] = {}
    for kind, *values in json.loads(text):
        if kind == "root":
            product, root, time, names = values
            known = roots.get((product, root), HeldBy(float("inf")))
            found = known.transactions | set(map(tuple, names))
            roots[product, root] = HeldBy(float("inf") if time is None else time, found)
        elif kind == "barrier":
            product, names = values
            barriers[product] = barriers.get(product, frozenset()) | set(map(tuple, names))
        else:
            topic, name, time, orders = values
            ranges = {table: tuple((first, last) for first, last in pairs) for table, pairs in orders.items()}
            seen[topic, name] = SeenRecords(time, ranges)
    return Held(roots=roots, seen=seen, barriers=barriers)


def _finite(time: float) -> float | None:
    return None if time == float("inf") else time
