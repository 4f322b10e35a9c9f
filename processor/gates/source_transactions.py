"""The source transactions of which the job has read records, and which of them are open.

A transaction is complete when its end is known, and the job has read as many records of each table as the end says, of the tables
that it reads. A record counts whatever became of it: applied, superseded, ignored, or a dead letter. Records are known by their
numbers, so a replayed batch counts none twice. A transaction that is not complete is open, until the job gives it up.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from processor.gates.held_portion import SeenRecords, TransactionName
from processor.gates.ranges import count
from processor.records.source_transaction import TransactionEnd
from statestore.keys import Key

MOST_ENDS = 200_000
"""Ends of transactions without a record that the job keeps: of topics that are read before those of the rows."""


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
    seen: SeenRecords = field(default_factory=lambda: SeenRecords(inf, {}))
    items: set[Key] = field(default_factory=set)
    touched: float = 0.0
    complete_in: int | None = None


@dataclass(slots=True, kw_only=True)
class SourceTransactions:
    """`tables`: of each transaction topic, the tables that the job reads, by the names in ends. A record of another table
    adds its own: definitions may call it otherwise. `last`: the number of the newest one. `given_up`: how many there were."""

    tables: dict[str, set[str]] = field(default_factory=dict)
    last: int = 0
    given_up: int = 0
    _known: dict[TransactionName, _Transaction] = field(default_factory=dict)
    _open: dict[str, dict[int, OpenTransaction]] = field(default_factory=dict)
    _ended: dict[TransactionName, Mapping[str, int]] = field(default_factory=dict)

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
        counts = {table: (count(known.seen.orders.get(table, ())), most) for table, most in known.counts.items()}
        return {table: (so_far, most) for table, (so_far, most) in counts.items() if table in read and so_far < most}

    def see(self, name: TransactionName, seen: SeenRecords, item: Key, at: float, batch: int) -> bool:
        """Takes records that a task has read; returns whether this is the first use of the item for the transaction."""
        if name not in self._known:
            self.last += 1
            self._known[name] = _Transaction(number=self.last, counts=self._ended.pop(name, None))
            self._open.setdefault(name[0], {})[self.last] = OpenTransaction(self.last, at, name)
        known = self._known[name]
        known.seen, known.touched = known.seen.with_those_of(seen), max(at, known.touched)
        self.tables.setdefault(name[0], set()).update(seen.orders)
        is_new = item not in known.items
        known.items.add(item)
        self._close_if_complete(name, batch)
        return is_new

    def end(self, topic: str, end: TransactionEnd, batch: int) -> None:
        """Takes the end of a transaction."""
        name = (topic, end.id)
        if name in self._known:
            self._known[name].counts = end.counts
            self._close_if_complete(name, batch)
            return
        self._ended[name] = end.counts
        if len(self._ended) > MOST_ENDS:
            del self._ended[next(iter(self._ended))]

    def missing_ends(self) -> dict[str, float]:
        """Each topic whose ends the job waits for: Kafka's time of the oldest record of such a transaction."""
        found: dict[str, float] = {}
        for topic, open_ones in self._open.items():
            times = (self._known[one.name].seen.time for one in open_ones.values() if self._is_endless(one.name))
            if (oldest := min(times, default=inf)) < inf:
                found[topic] = oldest
        return found

    def give_up(self, before: float) -> None:
        """Waits no longer for the open ones that the job met before this moment."""
        for open_ones in self._open.values():
            while open_ones and (first := next(iter(open_ones.values()))).since <= before:
                del open_ones[first.number]
                self.given_up += 1

    def forget(self, batch: int, before: float) -> Iterator[tuple[TransactionName, set[Key]]]:
        """Forgets the transactions that were complete before this batch, and those without a record since `before`. Yields
        the items of each."""
        for name, known in list(self._known.items()):
            if known.touched < before if known.complete_in is None else known.complete_in != batch:
                yield name, self._drop(name)

    def retain(self, topics: Collection[str]) -> Iterator[Key]:
        """Forgets the transactions of other topics. Yields the items of each."""
        for name in [name for name in self._known if name[0] not in topics]:
            yield from self._drop(name)

    def _drop(self, name: TransactionName) -> set[Key]:
        known = self._known.pop(name)
        self._open.get(name[0], {}).pop(known.number, None)
        return known.items

    def _is_endless(self, name: TransactionName) -> bool:
        return self._known[name].counts is None

    def _close_if_complete(self, name: TransactionName, batch: int) -> None:
        known = self._known[name]
        if known.complete_in is None and self.missing(name) == {}:
            known.complete_in = batch
            self._open[name[0]].pop(known.number, None)
