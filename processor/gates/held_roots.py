"""The roots that wait at the gates of their products, as the driver holds them.

A root goes out when its gate lets it: each transaction that touched it is complete, it has not changed for `quiet`, and its last
message is older than `every`; at the latest `at_most` after the first change since its last message. The table holds the same in
the portions of tasks (`processor.gates.held_portion`), so a driver that loses its copy reloads it at its next start. A portion
stays until none of its roots waits, and nobody needs its records of transactions.

A round of its own publishes the roots that may go. Before it, a note of those whose product has `every` becomes durable,
so that a crash in between keeps the distance of messages.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from heapq import heappop, heappush
from math import inf

from processor.gates.held_portion import HeldBy, HeldPortion, TransactionName, read_portion
from processor.gates.source_transactions import SourceTransactions
from processor.plan.touch import Root
from processor.product.gate import Gate
from processor.progress.backlog import PARTITION
from processor.progress.packed_text import pack, unpack
from processor.records.source_transaction import TransactionEnd
from statestore.item_attributes import key_of_item, write_note
from statestore.keys import Key
from statestore.store import Delete, Item, Write

ROOTS_PER_ROUND = 5_000
AFTER_A_START = 10.0
"""Seconds after a start in which no root goes out before the second batch begins. The first batch may have failed before: its tasks
wrote rows, and nobody holds their roots yet."""


@dataclass(slots=True, kw_only=True)
class HeldRoot:
    """A root that waits. `due`: when it goes out at the latest; `touched`: its last change; on the job's clock."""

    due: float
    touched: float
    time: float = inf
    transactions: set[TransactionName] = field(default_factory=set)
    items: set[Key] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class HeldRoots:
    """`gates`: of the products that have one. `held`: the roots that wait. `barriers`: product -> transactions for which
    all its roots wait, since fan-outs have yet to find some."""

    run: int
    gates: Mapping[str, Gate] = field(default_factory=dict)
    transactions: SourceTransactions = field(default_factory=SourceTransactions)
    held: dict[Root, HeldRoot] = field(default_factory=dict)
    barriers: dict[str, set[TransactionName]] = field(default_factory=dict)
    batch: int = 0
    _ready_at: float = -inf
    _first_batch: int | None = None
    _queue: list[tuple[float, Root]] = field(default_factory=list)
    _waiting: dict[TransactionName, set[Root]] = field(default_factory=dict)
    _published: dict[str, float] = field(default_factory=dict)
    _notes: dict[Key, float] = field(default_factory=dict)
    _users: Counter[Key] = field(default_factory=Counter)

    def reload(self, items: Iterable[Item], now: float, date: float) -> list[Delete]:
        """Takes what earlier runs left in the items of `PARTITION`; returns the deletes of those that nobody needs."""
        items, released = list(items), dict[str, str]()
        for item in (item for item in items if "released" in item):
            key, at = key_of_item(item), now - max(0.0, date - float(item["at"]))
            self._notes[key] = at
            for digest in json.loads(unpack(item["released"])):
                self._published[digest] = max(at, self._published.get(digest, -inf))
                if item["ended"]:
                    released[digest] = max(key.sk.split("#")[1], released.get(digest, ""))
        unused: list[Key] = []
        for portion in filter(None, map(read_portion, items)):
            held = portion.held
            waiting = {root: by for root, by in held.roots.items() if released.get(_digest(root), "") <= portion.place}
            left = portion._replace(held=replace(held, roots=waiting))
            self.add([left], now, now - max(0.0, date - portion.at))
            if not self._users[portion.item]:
                unused.append(portion.item)
        self._ready_at = now + AFTER_A_START if self.run > 1 else now
        for root in self.held:
            self._schedule(root)
        return [Delete(key=key) for key in unused]

    def add(self, portions: Iterable[HeldPortion], now: float, since: float | None = None) -> None:
        """Takes durable portions. `since`: when the roots changed, now if not given."""
        since, portions = now if since is None else since, list(portions)
        for portion in portions:
            for name, seen in portion.held.seen.items():
                self._users[portion.item] += 1
                if self.transactions.see(name, seen, portion.item, now, self.batch):
                    self._completed(name)
        # a change that newly joins a row shows what an open transaction did to that row before
        still_open = frozenset(self.transactions.open_ones())
        for portion in portions:
            for product, names in portion.held.barriers.items():
                if product in self.gates:
                    self.barriers.setdefault(product, set()).update(self.transactions.incomplete(names))
            for root, by in portion.held.roots.items():
                if root[0] in self.gates:
                    self._hold(root, by, portion.item, since, still_open)

    def adopt(self, gates: Mapping[str, Gate], tables: Mapping[str, Iterable[str]]) -> list[Delete]:
        """Goes on with the gates of another plan; returns the deletes of items that nobody needs any more. `tables`: of
        each topic of transactions, those that the job reads."""
        self.gates = gates
        self.transactions.tables = {topic: set(names) for topic, names in tables.items()}
        self.barriers = {product: names for product, names in self.barriers.items() if product in gates}
        unused = [*self._free(self.transactions.retain(tables.keys()))]
        for root in [root for root in self.held if root[0] not in gates]:
            unused += self._free(self.held.pop(root).items)
        for root in self.held:
            self._schedule(root)
        return [Delete(key=key) for key in unused]

    def take_ends(self, topic: str, ends: Iterable[TransactionEnd]) -> None:
        """Takes the ends of transactions."""
        for end in ends:
            if self.transactions.end(topic, end, self.batch):
                self._completed((topic, end.id))

    def begin_batch(self, batch: int, now: float) -> list[Delete]:
        """Forgets what only the batches before could repeat; returns the deletes of items that nobody needs any more."""
        self.batch = batch
        if self._first_batch is None:
            self._first_batch = batch
        elif batch != self._first_batch and self._ready_at > now:
            self._ready_at = -inf
            for root in self.held:
                self._schedule(root)
        longest = max((gate.at_most for gate in self.gates.values()), default=0.0)
        unused = list(self._free(self.transactions.forget(batch, now - 2 * longest)))
        return [Delete(key=key) for key in (*unused, *self._old_notes(now))]

    def next_due(self) -> float | None:
        """When the next root may go out; None when none waits."""
        while self._queue:
            at, root = self._queue[0]
            if root in self.held and self._at(root) <= at:
                return at
            heappop(self._queue)
            if root in self.held:
                self._schedule(root)
        return None

    def due(self, now: float) -> dict[Root, float]:
        """The roots that may go out, each with Kafka's time of the oldest record that led to it."""
        found: dict[Root, float] = {}
        while self._queue and self._queue[0][0] <= now and len(found) < ROOTS_PER_ROUND:
            _, root = heappop(self._queue)
            if root in self.held and root not in found:
                if self._at(root) <= now:
                    found[root] = self.held[root].time
                else:
                    self._schedule(root)
        return found

    def incomplete(self, roots: Iterable[Root]) -> int:
        """How many of these roots a transaction touched that is not complete."""
        return sum(bool(self._blockers(root)) for root in roots)

    def note_release(self, roots: Iterable[Root], round_: int, now: float, date: float) -> list[Write]:
        """Notes, before this round, that it publishes these roots; returns the write that makes it durable where a product has
        `every`."""
        spaced = [_digest(root) for root in roots if self.gates[root[0]].every]
        if not spaced:
            return []
        self._published.update(dict.fromkeys(spaced, now))
        return [self._note(spaced, round_, now, date, ended=False)]

    def released(self, roots: Iterable[Root], round_: int, now: float, date: float) -> list[Write | Delete]:
        """Forgets roots that this round published, or left to the backlog; returns the requests that make it durable: a
        note of those whose items stay, and the deletes of items that nobody needs any more."""
        kept, unused = list[str](), list[Key]()
        for root in roots:
            items = self.held.pop(root).items
            unused += self._free(items)
            kept += [_digest(root)] if any(item in self._users for item in items) else []
        requests: list[Write | Delete] = [self._note(kept, round_, now, date, ended=True)] if kept else []
        return requests + [Delete(key=key) for key in (*unused, *self._old_notes(now))]

    def _old_notes(self, now: float) -> Iterator[Key]:
        """Forgets the notes that no item needs any more, and no distance of messages."""
        longest = max((gate.every for gate in self.gates.values()), default=0.0)
        oldest = min((item.sk.split("#")[1] for item in self._users), default="~")
        for key, at in list(self._notes.items()):
            if at <= now - longest and key.sk.split("#")[1] < oldest:
                del self._notes[key]
                yield key
        self._published = {digest: at for digest, at in self._published.items() if at > now - longest}

    def _note(self, digests: Iterable[str], round_: int, now: float, date: float, *, ended: bool) -> Write:
        kind = "ended" if ended else "begun"
        key = Key(PARTITION, f"released#{self.run:010d}.{round_:010d}#{kind}")
        self._notes[key] = now
        text = json.dumps(sorted(digests)).encode()
        return write_note(key, {"released": pack(text), "ended": ended, "at": Decimal(f"{date:.3f}")})

    def _hold(self, root: Root, by: HeldBy, item: Key, since: float, still_open: frozenset[TransactionName]) -> None:
        held = self.held.get(root)
        if held is None:
            held = self.held[root] = HeldRoot(due=since + self.gates[root[0]].at_most, touched=since)
        held.touched, held.time = max(held.touched, since), min(held.time, by.time)
        if self.gates[root[0]].whole:
            held.transactions |= still_open
        if item not in held.items:
            held.items.add(item)
            self._users[item] += 1
        self._schedule(root)

    def _schedule(self, root: Root) -> None:
        for name in self.held[root].transactions:
            self._waiting.setdefault(name, set()).add(root)
        heappush(self._queue, (self._at(root), root))

    def _at(self, root: Root) -> float:
        """When the root may go out, as far as is known."""
        held, gate = self.held[root], self.gates[root[0]]
        if self._blockers(root):
            return max(held.due, self._ready_at)
        spaced = self._published.get(_digest(root), -inf) + gate.every if gate.every else -inf
        return max(min(held.due, max(held.touched + gate.quiet, spaced)), self._ready_at)

    def _blockers(self, root: Root) -> set[TransactionName]:
        if not self.gates[root[0]].whole:
            return set()
        return self.transactions.incomplete(self.held[root].transactions | self.barriers.get(root[0], set()))

    def _completed(self, name: TransactionName) -> None:
        """Lets the roots go that waited for this transaction alone."""
        roots = self._waiting.pop(name, set())
        for product, barrier in self.barriers.items():
            if name in barrier:
                barrier.discard(name)
                roots |= {root for root in self.held if root[0] == product}
        for root in roots & self.held.keys():
            self.held[root].transactions.discard(name)
            self._schedule(root)

    def _free(self, items: Iterable[Key]) -> Iterator[Key]:
        """The items of which this was the last use."""
        for item in items:
            self._users[item] -= 1
            if not self._users[item]:
                del self._users[item]
                yield item


def _digest(root: Root) -> str:
    """A name of the root that shows no value of a row: notes may outlive an erasure by seconds."""
    return sha256("\0".join(root).encode()).hexdigest()[:16]
