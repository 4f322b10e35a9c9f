"""The roots that wait at the gates of their products, as the driver holds them.

A root goes out when its gate lets it: no transaction is open that was open when the root last changed, it has not changed for
`quiet`, and its last message is older than `every`; at the latest `at_most` after the first change since its last message.
It is not enough to wait for the transactions that changed the root: a change may join a row to it that another open transaction
has changed before.

The table holds the same in the portions of tasks (`protocol.gate_items`), so the next start reloads it. A portion stays
until none of its roots waits, and its records of transactions are no longer needed. A round of its own publishes the roots
that may go.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import groupby
from math import inf
from typing import NamedTuple

from processor.engine.plan.step import Root
from processor.engine.protocol.epochs import Partition
from processor.engine.protocol.gate_items import ClosedTransactions, Held, HeldPortion, ReleaseNotes, read_portion
from processor.engine.protocol.pending import Moment, Turn, Turns, split
from processor.engine.protocol.source_transactions import OpenTransaction, SourceTransactions, StartGate
from processor.language.product.product import Gate
from processor.values.record import TransactionEnd
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.store import Delete, Item, Write


@dataclass(slots=True)
class ItemUses:
    """`counts`: of each item, the roots, the barriers and the transactions that need it."""

    counts: Counter[Key] = field(default_factory=Counter)

    def use(self, item: Key, items: set[Key]) -> None:
        """Adds the item to those that somebody needs."""
        if item not in items:
            items.add(item)
            self.counts[item] += 1

    def free(self, items: Iterable[Key]) -> Iterator[Key]:
        """Takes the items that somebody needs no more. Yields those of which this was the last use."""
        for item in items:
            self.counts[item] -= 1
            if not self.counts[item]:
                del self.counts[item]
                yield item


@dataclass(slots=True, kw_only=True)
class HeldRoot:
    """A root that waits. `since`: its first change since its last message; `touched`: its last change; on the job's clock.
    `mark`: the number of the newest transaction then. `time`: Kafka's of its oldest record. `items`: the portions of it.
    `reloaded`: since the start, so it may have gone out before; its next change then begins a new wait."""

    since: float
    touched: float
    mark: int = 0
    time: float = inf
    reloaded: bool = False
    items: set[Key] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class Barrier:
    """All roots of a product wait for the transactions up to `mark`: a fan-out has yet to find some, or a connector sends
    transactions again, which may have taken rows away from any root."""

    mark: int = 0
    items: set[Key] = field(default_factory=set)


class DueRoots(NamedTuple):
    """`times`: Kafka's time of the oldest record that led to each root. `incomplete`: those that may show a part of a
    transaction."""

    times: dict[Root, float]
    incomplete: set[Root]


ROOTS_PER_ROUND = 5_000


@dataclass(slots=True, kw_only=True)
class HeldRoots:
    """The roots that wait in a run."""

    run: int
    gates: Mapping[str, Gate] = field(default_factory=dict)
    """Those of all products that the job publishes."""
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Of each product that waits for whole transactions: the topics of these."""
    transactions: SourceTransactions = field(default_factory=SourceTransactions)
    start: StartGate = field(default_factory=StartGate)
    """What the run must read first."""
    held: dict[Root, HeldRoot] = field(default_factory=dict)
    """The roots that wait."""
    batch: int = 0
    longest: float = 0.0
    """The longest `at_most`."""
    longest_every: float = 0.0
    _notes: ReleaseNotes = field(init=False)
    _closed: ClosedTransactions = field(default_factory=ClosedTransactions)
    _barriers: dict[str, Barrier] = field(default_factory=dict)
    _queue: list[tuple[float, Root]] = field(default_factory=list)
    _blocked: dict[str, list[tuple[int, Root]]] = field(default_factory=dict)
    _first_open: dict[str, OpenTransaction] = field(default_factory=dict)
    _uses: ItemUses = field(default_factory=ItemUses)
    _looked: float = -inf

    def __post_init__(self) -> None:
        self._notes = ReleaseNotes(run=self.run)

    def reload(self, items: Iterable[Item], now: float, date: float) -> list[Delete]:
        """Takes what earlier runs left in the items of `PARTITION`; returns the deletes of those that are no longer needed."""
        items = list(items)
        self._notes.reload(items, now, date)
        self._closed.reload(items)
        portions = sorted(filter(None, map(read_portion, items)), key=lambda portion: portion.item)
        unused: list[Delete] = []
        for _, group in groupby(portions, key=lambda portion: portion.round_name):
            unused += self._take(
                [(one.item, self._closed.left_out(one.item, one.held), now - max(0.0, date - one.at)) for one in group]
            )
        for held in self.held.values():
            held.since, held.reloaded = held.touched, True  # its portions before the last may be of earlier messages
        if self.run > 1:
            self.start = StartGate(until=now + self.longest, patient_until=inf)
        self._look(now)
        return unused

    def reload_later(self, items: Iterable[Item], now: float, date: float) -> list[Delete]:
        """Takes the portions that a zombie of an earlier run left in `PARTITION` after `reload`: its walk or its fan-out may have
        passed their roots. Returns the deletes of those that no product needs."""
        own = f"held#{self.run:010d}."
        later = [one for one in items if one["SK"] < own and key_of_item(one) not in self._uses.counts]
        portions = [(one.item, one.held, now - max(0.0, date - one.at)) for one in map(read_portion, later) if one]
        unused = self._take(portions)
        self._look(now)
        return unused

    def turns(self, moment: Moment) -> Turns:
        """A round of the roots that may go out."""
        due = self.due(moment.now)
        if due.times:
            yield from self.release(due, moment)

    def release(self, due: DueRoots, moment: Moment) -> Turns:
        """Publishes roots that wait, whatever their gates say."""
        roots = list(due.times)
        yield Turn(requests=self.note_release(roots, moment.round, moment.now, moment.date))
        yield Turn(split(list(due.times.items()), moment.lanes), ends=roots, incomplete=len(due.incomplete))

    def take(self, found: Iterable[HeldPortion], done: Iterable[Root], moment: Moment) -> list[Delete]:
        """Takes durable portions, and roots that a round has released."""
        unused, released = self.add(found, moment.now), list(done)
        return [*unused, *self.released(released, moment.now)] if released else unused

    def add(self, portions: Iterable[HeldPortion], now: float) -> list[Delete]:
        """Takes durable portions of a round; returns the deletes of those that are no longer needed."""
        unused = self._take([(portion.item, portion.held, now) for portion in portions])
        self._look(now)
        return unused

    def adopt(
        self,
        gates: Mapping[str, Gate],
        topics: Mapping[str, frozenset[str]],
        tables: Mapping[str, Iterable[str]],
        now: float,
    ) -> list[Delete]:
        """Continues with the gates of another plan; returns the deletes of items that are no longer needed. `tables`: of
        each topic of transactions, those that the job reads."""
        self.gates, self.topics = gates, topics
        self.longest_every = max((gate.every for gate in gates.values()), default=0.0)
        self.longest = max((gate.at_most for gate in gates.values()), default=0.0)
        self.transactions.tables = {topic: set(names) for topic, names in tables.items()}
        unused = [*self._uses.free(self.transactions.retain(tables.keys()))]
        for product in self._barriers.keys() - topics.keys():
            unused += self._uses.free(self._barriers.pop(product).items)
        for root in [root for root in self.held if root[0] not in gates]:
            unused += self._uses.free(self.held.pop(root).items)
        self._schedule_all(now)
        return [Delete(key=key) for key in unused]

    @property
    def needs_topic_ends(self) -> bool:
        """Whether it must know where the topics end now (`expect`)."""
        return self.start.needs_topic_ends or self.transactions.needs_topic_ends

    def note_topic_ends(self, ends: Mapping[Partition, int], positions: Mapping[Partition, int], now: float) -> None:
        """Takes where the topics end, and where the job reads on."""
        self.start.note_topic_ends(ends)
        self.transactions.note_topic_ends(ends)
        self.read(positions, now)

    def read(self, positions: Mapping[Partition, int], now: float) -> None:
        """Takes how far the job has read."""
        ready = self.start.read(positions, now)
        if self.transactions.read(positions, self.batch) or ready:
            self._schedule_all(now)

    def take_ends(self, topic: str, ends: Iterable[TransactionEnd]) -> None:
        """Takes the ends of transactions."""
        for end in ends:
            self.transactions.end(topic, end, self.batch)
        self._look(self._looked)

    def begin_batch(self, batch: int, now: float) -> list[Write | Delete]:
        """Forgets what only the batches before could repeat; returns the requests that make it durable, in their order."""
        self.batch = batch
        unused: list[Key] = []
        for name, items in self.transactions.forget(batch, now - 2 * self.longest):
            unused += self._uses.free(items)
            self._closed.portions[name] = items
        self._look(now)
        for product, barrier in list(self._barriers.items()):
            if not self._is_open(product, barrier.mark):
                unused += self._uses.free(self._barriers.pop(product).items)
        unused += self._notes.forget(now - self.longest_every)
        return [*self._closed.update(self._uses.counts.keys()), *(Delete(key=key) for key in unused)]

    def next_due(self) -> float | None:
        """When a root may go out, as far as is known; None when none waits."""
        while self._queue:
            at, root = self._queue[0]
            if root in self.held and self._at(root) <= at:
                return min(at, self._next_give_up())
            heappop(self._queue)
            if root in self.held:
                heappush(self._queue, (self._at(root), root))
        return None

    def due(self, now: float) -> DueRoots:
        """The roots that may go out. Those come first that have run out of time, before the job gives their transactions up."""
        due = DueRoots({}, set())
        self._pop(now, due)
        self._look(now)
        self._pop(now, due)
        return due

    def found(self) -> dict[Root, float]:
        """The roots that wait and that this run has found, each with Kafka's time of the oldest record that led to it."""
        own = f"held#{self.run:010d}."
        return {root: one.time for root, one in self.held.items() if any(item.sk.startswith(own) for item in one.items)}

    def portions_of(self, roots: Iterable[Root]) -> set[Key]:
        """The items that name these roots, which wait."""
        return set[Key]().union(*(self.held[root].items for root in roots))

    def blocker(self, root: Root) -> OpenTransaction | None:
        """The first of the transactions for which a root waits that is held."""
        barrier = self._barriers.get(root[0])
        mark = max(self.held[root].mark, barrier.mark if barrier else 0)
        return self._first_open[root[0]] if self._is_open(root[0], mark) else None

    def apart_until(self, root: Root) -> float:
        """Until when the root keeps its distance from its last message; minus infinity where it need not."""
        return self._notes.published_at(root) + self.gates[root[0]].every if self._is_spaced(root) else -inf

    def note_release(self, roots: Sequence[Root], round_: int, now: float, date: float) -> list[Write]:
        """Notes, before this round, that it publishes those of these roots whose product has `every`; returns the writes."""
        spaced = list(filter(self._is_spaced, roots))
        return [self._notes.begin(spaced, round_, now, date)] if spaced else []

    def released(self, roots: Sequence[Root], now: float) -> list[Delete]:
        """Forgets roots that a round published, or left to the backlog; returns the deletes of items that are no longer needed.
        A start may hold a root again whose portion stays: its document is then unchanged."""
        self._notes.sent(filter(self._is_spaced, roots), now)
        unused = [key for root in roots for key in self._uses.free(self.held.pop(root).items)]
        return [Delete(key=key) for key in unused]

    def _pop(self, now: float, due: DueRoots) -> None:
        while self._queue and self._queue[0][0] <= now and len(due.times) < ROOTS_PER_ROUND:
            _, root = heappop(self._queue)
            if root not in self.held or root in due.times:
                continue
            if self._at(root) > now:
                self._schedule(root)
                continue
            due.times[root] = self.held[root].time
            if self._is_unread(root) or self.blocker(root) is not None:
                due.incomplete.add(root)

    def _take(self, portions: Sequence[tuple[Key, Held, float]]) -> list[Delete]:
        """Takes the portions of a round: first all their records of transactions. Each: its item, what it says, and when a task
        left it. Returns the deletes of those that are no longer needed."""
        for item, held, at in portions:
            for name, seen in held.seen.items():
                self._closed.portions.pop(name, None)  # the connector sends it again
                if self.transactions.see(name, seen, item, at, self.batch):
                    self._uses.counts[item] += 1
        for item, held, at in portions:
            for product in held.unfound & self.topics.keys():
                barrier = self._barriers.setdefault(product, Barrier())
                barrier.mark = self.transactions.last
                self._uses.use(item, barrier.items)
            for root, time in held.roots.items():
                if root[0] in self.gates:
                    self._hold(root, time, item, at)
        return [Delete(key=item) for item, _, _ in portions if not self._uses.counts[item]]

    def _hold(self, root: Root, time: float, item: Key, at: float) -> None:
        held = self.held.setdefault(root, HeldRoot(since=at, touched=at))
        if held.reloaded:
            held.since, held.reloaded = at, False
        held.touched, held.time = max(held.touched, at), min(held.time, time)
        held.mark = self.transactions.last
        self._uses.use(item, held.items)
        self._schedule(root)

    def _schedule_all(self, now: float) -> None:
        self._look(now)
        self._queue, self._blocked = [], {}
        for root in self.held:
            self._schedule(root)

    def _schedule(self, root: Root) -> None:
        if root[0] in self.topics:
            heappush(self._blocked.setdefault(root[0], []), (self.held[root].mark, root))
        heappush(self._queue, (self._at(root), root))

    def _at(self, root: Root) -> float:
        """When the root may go out, as far as is known. After a start it has some time, whatever its age."""
        held, gate = self.held[root], self.gates[root[0]]
        last = held.since + gate.at_most
        if self._is_unread(root):
            return max(last, self.start.until)
        if self.blocker(root) is not None:
            return max(last, self.start.patient_until)
        return min(last, max(held.touched + gate.quiet, self.apart_until(root)))

    def _is_spaced(self, root: Root) -> bool:
        return self.gates[root[0]].every > 0

    def _is_unread(self, root: Root) -> bool:
        """Whether the run may not know all transactions of the root."""
        return root[0] in self.topics and not self.start.ready

    def _is_open(self, product: str, mark: int) -> bool:
        first = self._first_open.get(product)
        return first is not None and first.number <= mark

    def _look(self, now: float) -> None:
        """Looks which transactions are open now, and lets the roots go on that wait for none of them."""
        self._looked = now
        if now >= self.start.patient_until:
            self.transactions.give_up(now - self.longest)
        self._first_open = {}
        for product, topics in self.topics.items():
            after = now - self.gates[product].at_most if now >= self.start.patient_until else -inf
            if (first := self.transactions.first_open(topics, after)) is not None:
                self._first_open[product] = first
            if topics & self.transactions.repeats.keys():
                self._barriers.setdefault(product, Barrier()).mark = self.transactions.last
            self._unblock(product)

    def _unblock(self, product: str) -> None:
        """Schedules the roots of the product that wait for no transaction any more."""
        blocked = self._blocked.get(product, [])
        barrier = self._barriers.get(product)
        if barrier is not None and self._is_open(product, barrier.mark):
            return
        while blocked and not self._is_open(product, blocked[0][0]):
            mark, root = heappop(blocked)
            if root in self.held and self.held[root].mark == mark:
                heappush(self._queue, (self._at(root), root))

    def _next_give_up(self) -> float:
        """When the job gives up the first transaction for which roots of a product wait."""
        first = ((product, one.since) for product, one in self._first_open.items() if self._blocked.get(product))
        times = (since + self.gates[product].at_most for product, since in first)
        return max(min(times, default=inf), self.start.patient_until)
