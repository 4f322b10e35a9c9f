"""The source transactions of which the job has read records, and which of them are open.

A transaction is complete when its end is known, and the job has read as many records of each table as the end says, of the
tables that it reads. A record counts whatever became of it: applied, superseded, ignored, or a dead letter. Records are known
by their numbers, so a replayed batch counts none twice. A transaction that is not complete is open, until the job gives it up.
One that the connector sends again is open until the job has read all that it sends again (`ResentRecords`).

A run reads what its topics had when it began, before it trusts its account of transactions (`StartGate`). A batch may have failed
before the start. Its tasks wrote rows, and nobody holds their roots yet, or knows their transactions. The next batch reads
those records again.

A connector that was killed sends all again that came after its last stored offset, in the same order. So rows go back for a
while. A transaction that had ended comes again, and with it all that ended after it. The last one that had not ended comes
again, and continues. Until all of this is read, documents may show some rows of before, and some of after.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import NamedTuple

from processor.engine.protocol.epochs import Partition
from processor.engine.protocol.gate_items import SeenRecords, TransactionName
from processor.values.source_transaction import TransactionEnd
from statestore.keys import Key


@dataclass(slots=True, kw_only=True)
class ReadGoal:
    """`unread`: where the topics ended that the job has not read so far; None while their ends are unknown."""

    unread: dict[Partition, int] | None = None

    def note_topic_ends(self, ends: Mapping[Partition, int]) -> None:
        """Takes where the topics end, unless the ends are known."""
        if self.unread is None:
            self.unread = dict(ends)

    def read(self, positions: Mapping[Partition, int]) -> bool:
        """Takes how far the job has read; returns whether it has read so far."""
        if self.unread is None:
            return False
        self.unread = {at: end for at, end in self.unread.items() if positions.get(at, 0) < end}
        return not self.unread


PATIENCE_SECONDS = 10.0
"""So long after the job has read these records, transactions that are older than `at_most` may still end."""


@dataclass(slots=True, kw_only=True)
class StartGate:
    """`until`: before it a run that is not ready lets no root go. `patient_until`: before it no open transaction is too old;
    infinite while the run is not ready. Both on the job's clock. `horizon`: what it reads first."""

    until: float = -inf
    patient_until: float = -inf
    horizon: ReadGoal = field(default_factory=ReadGoal)

    @property
    def ready(self) -> bool:
        """Whether the job has read what its topics had."""
        return self.patient_until < inf

    @property
    def needs_topic_ends(self) -> bool:
        """Whether it must know where the topics end."""
        return not self.ready and self.horizon.unread is None

    def note_topic_ends(self, ends: Mapping[Partition, int]) -> None:
        """Takes where the topics end."""
        if not self.ready:
            self.horizon.note_topic_ends(ends)

    def read(self, positions: Mapping[Partition, int], now: float) -> bool:
        """Takes how far the job has read; returns whether it is ready from now on."""
        if self.ready or not self.horizon.read(positions):
            return False
        self.patient_until = now + PATIENCE_SECONDS
        return True


MOST_ENDS = 200_000
"""Ends that the job keeps of a topic: those of records that it has yet to read, and those that tell a copy from a new record."""
INTERLEAVED = 2_000
"""This many ends may come in another order than their times: of several partitions."""


@dataclass(slots=True)
class EndedTransaction:
    """`counts`: how many records of each table. `first`, `last`: Kafka's times of its first and its last end. `was_read`: whether
    the job has read all records before."""

    counts: Mapping[str, int]
    first: float
    last: float
    was_read: bool = False


@dataclass(slots=True)
class EndedTransactions:
    """Those of a topic, by their ids, in the order in which the job read their ends."""

    known: dict[str, EndedTransaction] = field(default_factory=dict)

    def take(self, end: TransactionEnd) -> EndedTransaction:
        """Takes an end."""
        ended = self.known.setdefault(end.id, EndedTransaction(end.counts, end.time, end.time))
        ended.first, ended.last = min(ended.first, end.time), max(ended.last, end.time)
        if len(self.known) > MOST_ENDS:
            del self.known[next(iter(self.known))]
        return ended

    def newest_before(self, time: float) -> EndedTransaction | None:
        """The one that ended last before this time."""
        before = islice((one for one in reversed(self.known.values()) if one.first < time), INTERLEAVED)
        return max(before, key=lambda one: one.first, default=None)


REORDER_SECONDS = 1.0
"""So much later than the end of its transaction a record may come without being a copy: brokers may give the times."""


@dataclass(slots=True, kw_only=True)
class ResentRecords:
    """What the connector of a topic sends again. `names`: the open transactions of which it has sent a copy; `unread`: those of
    them of which the job must yet read all records. `since`: Kafka's time of the newest copy that came after its end; minus
    infinity without one. `newest`: the last transaction that had ended before. `horizon`: what the job must read, once all
    copies are sent."""

    names: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    since: float = -inf
    newest: EndedTransaction | None = None
    horizon: ReadGoal = field(default_factory=ReadGoal)

    def see(self, name: str, copied: float, ended: EndedTransactions) -> None:
        """Takes a transaction of which a copy has come after its end, and Kafka's time of the copy."""
        self.names.add(name)
        if copied > self.since:
            self.since, self.newest = copied, ended.newest_before(copied)
            if not self.is_sent:
                self.horizon = ReadGoal()

    def add(self, name: str, *, is_unread: bool) -> None:
        """Takes a transaction of which a copy has come from before its end."""
        self.names.add(name)
        self.horizon = ReadGoal()
        if is_unread:
            self.unread.add(name)

    def remove(self, name: str) -> bool:
        """Forgets a transaction; returns whether others are left."""
        self.names.discard(name)
        self.unread.discard(name)
        return bool(self.names)

    def end(self, end: EndedTransaction) -> None:
        """Takes the end of a transaction."""
        if end.first < self.since and (self.newest is None or end.first > self.newest.first):
            self.newest = end

    @property
    def is_sent(self) -> bool:
        """Whether the end has come again that was the newest."""
        return self.newest is None or self.newest.last >= self.since - REORDER_SECONDS


def is_copy(time: float, ended: EndedTransaction) -> bool:
    """Whether a record of this time came after the end of its transaction."""
    return time > ended.first + REORDER_SECONDS


class OpenTransaction(NamedTuple):
    """`number`: rises in the order in which the job met the transactions. `since`: when it met this one, on its clock."""

    number: int
    since: float
    name: TransactionName


@dataclass(slots=True, kw_only=True)
class _Transaction:
    """A transaction. `counts`: what its end says, None before it; `items`: the durable items that have records of it;
    `touched`: when the last record came, on the job's clock; `complete_in`: the batch in which it was complete."""

    number: int
    counts: Mapping[str, int] | None
    seen: SeenRecords = field(default_factory=lambda: SeenRecords(inf, -inf, {}))
    items: set[Key] = field(default_factory=set)
    touched: float = 0.0
    complete_in: int | None = None


@dataclass(slots=True, kw_only=True)
class SourceTransactions:
    """`tables`: of each transaction topic, the tables that the job reads, by the names in ends. A record of another table
    adds its own: definitions may call it otherwise. `last`: the number of the newest one. `given_up`: how many there were.
    `repeats`: the topics whose connector sends transactions again."""

    tables: dict[str, set[str]] = field(default_factory=dict)
    last: int = 0
    given_up: int = 0
    repeats: dict[str, ResentRecords] = field(default_factory=dict)
    _known: dict[TransactionName, _Transaction] = field(default_factory=dict)
    _open: dict[str, dict[int, OpenTransaction]] = field(default_factory=dict)
    _ended: dict[str, EndedTransactions] = field(default_factory=dict)

    def first_open(self, topics: Collection[str], after: float) -> OpenTransaction | None:
        """The first that is open, of those that the job met after this moment, in these topics."""
        found = (
            next((one for one in self._open.get(topic, {}).values() if one.since > after), None) for topic in topics
        )
        return min((one for one in found if one is not None), default=None)

    def missing(self, name: TransactionName) -> dict[str, tuple[int, int]] | None:
        """Of each table that the job reads: the records that it has read of this transaction, and those that the end says. None
        before the end."""
        known = self._known[name]
        if known.counts is None:
            return None
        read = self.tables.get(name[0], set())
        counts = {table: (known.seen.count(table), most) for table, most in known.counts.items() if table in read}
        return {table: (so_far, most) for table, (so_far, most) in counts.items() if so_far < most}

    def comes_again(self, name: TransactionName) -> bool:
        """Whether the connector sends the transaction again."""
        return name[0] in self.repeats and name[1] in self.repeats[name[0]].names

    def see(self, name: TransactionName, seen: SeenRecords, item: Key, at: float, batch: int) -> bool:
        """Takes records that a task has read; returns whether this is the first use of the item for the transaction."""
        if name not in self._known:
            ended = self._ended_of(name[0]).known.get(name[1])
            self._known[name] = _Transaction(number=0, counts=ended.counts if ended else None)
            self._open_up(name, at)
        known = self._known[name]
        known.seen, known.touched = known.seen.with_those_of(seen), max(at, known.touched)
        self.tables.setdefault(name[0], set()).update(seen.tables)
        is_new = item not in known.items
        known.items.add(item)
        self._find_copies(name, seen, at)
        self._close_if_complete(name, batch)
        return is_new

    def end(self, topic: str, end: TransactionEnd, batch: int) -> None:
        """Takes the end of a transaction."""
        ended, name = self._ended_of(topic).take(end), (topic, end.id)
        if topic in self.repeats:
            self.repeats[topic].end(ended)
        if name in self._known:
            known = self._known[name]
            is_new, known.counts = known.counts is None, end.counts
            if is_new:
                self._find_copies(name, known.seen, known.touched)
            self._close_if_complete(name, batch)

    def missing_ends(self) -> dict[str, float]:
        """Each topic whose ends the job waits for: Kafka's time of the oldest record of such a transaction, or of a copy."""
        found: dict[str, float] = {}
        for topic, open_ones in self._open.items():
            times = (self._known[one.name].seen.time for one in open_ones.values() if self._is_endless(one.name))
            if (oldest := min(times, default=inf)) < inf:
                found[topic] = oldest
        return found

    @property
    def needs_topic_ends(self) -> bool:
        """Whether the job must know where its topics end: a connector has sent all again that it had sent before."""
        return any(self._is_sent(topic) and one.horizon.unread is None for topic, one in self.repeats.items())

    def note_topic_ends(self, ends: Mapping[Partition, int]) -> None:
        """Takes where the topics end."""
        for topic, repeat in self.repeats.items():
            if self._is_sent(topic):
                repeat.horizon.note_topic_ends(ends)

    def read(self, positions: Mapping[Partition, int], batch: int) -> bool:
        """Takes how far the job has read; returns whether it has read all of a topic that was sent again."""
        read = [
            topic for topic, repeat in self.repeats.items() if self._is_sent(topic) and repeat.horizon.read(positions)
        ]
        for topic in read:
            for name in self.repeats.pop(topic).names:
                self._close((topic, name), batch)
        return bool(read)

    def give_up(self, before: float) -> None:
        """Waits no longer for the open ones that the job met before this moment."""
        for open_ones in self._open.values():
            while open_ones and (first := next(iter(open_ones.values()))).since <= before:
                del open_ones[first.number]
                self._forget_copies(first.name)
                self.given_up += 1

    def forget(self, batch: int, before: float) -> Iterator[tuple[TransactionName, set[Key]]]:
        """Forgets the transactions that were complete before this batch, and those without a record since `before`. Yields
        the items of each."""
        for name, known in list(self._known.items()):
            if known.touched < before if known.complete_in is None else known.complete_in != batch:
                end = self._ended_of(name[0]).known.get(name[1])
                if end is not None and known.complete_in is not None:
                    end.was_read = True
                yield name, self._drop(name)

    def retain(self, topics: Collection[str]) -> Iterator[Key]:
        """Forgets the transactions of other topics. Yields the items of each."""
        self._ended = {topic: ended for topic, ended in self._ended.items() if topic in topics}
        for name in [name for name in self._known if name[0] not in topics]:
            yield from self._drop(name)

    def _drop(self, name: TransactionName) -> set[Key]:
        known = self._known.pop(name)
        self._open.get(name[0], {}).pop(known.number, None)
        self._forget_copies(name)
        return known.items

    def _ended_of(self, topic: str) -> EndedTransactions:
        return self._ended.setdefault(topic, EndedTransactions())

    def _is_endless(self, name: TransactionName) -> bool:
        return self._known[name].counts is None or self.comes_again(name)

    def _open_up(self, name: TransactionName, at: float) -> None:
        known = self._known[name]
        self.last += 1
        known.number, known.complete_in = self.last, None
        self._open.setdefault(name[0], {})[self.last] = OpenTransaction(self.last, at, name)

    def _find_copies(self, name: TransactionName, seen: SeenRecords, at: float) -> None:
        """Looks whether these records are copies. If so, the transaction is open until the job has read all copies."""
        known, ended = self._known[name], self._ended_of(name[0])
        end = ended.known.get(name[1])
        had_ended, was_read = end is not None and is_copy(seen.last, end), end is not None and end.was_read
        if not (had_ended or was_read or known.seen.again):
            return
        if known.number not in self._open[name[0]]:
            self._open_up(name, at)
        repeat = self.repeats.setdefault(name[0], ResentRecords())
        if had_ended:
            repeat.see(name[1], seen.last, ended)
        elif not self.comes_again(name):
            repeat.add(name[1], is_unread=not was_read)

    def _is_sent(self, topic: str) -> bool:
        """Whether the connector of a topic has sent all again that it had sent before, as far as the job has read."""
        repeat = self.repeats[topic]
        return repeat.is_sent and all(self.missing((topic, name)) == {} for name in repeat.unread)

    def _forget_copies(self, name: TransactionName) -> None:
        repeat = self.repeats.get(name[0])
        if repeat is not None and not repeat.remove(name[1]):
            del self.repeats[name[0]]

    def _close_if_complete(self, name: TransactionName, batch: int) -> None:
        known = self._known[name]
        if known.complete_in is None and not self.comes_again(name) and self.missing(name) == {}:
            self._close(name, batch)

    def _close(self, name: TransactionName, batch: int) -> None:
        known = self._known[name]
        known.complete_in = batch
        self._open[name[0]].pop(known.number, None)
