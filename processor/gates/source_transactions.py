"""The source transactions of which the job has read records, and which of them are complete.

A transaction is complete when its end is known, and the job has read as many records of each table as the end says, of the tables
that it reads. A record counts whatever became of it: applied, superseded, ignored, or a dead letter. Records are known by their
numbers, so a replayed batch counts none twice.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from processor.gates.held_portion import SeenRecords, TransactionName
from processor.gates.ranges import count
from processor.records.source_transaction import TransactionEnd
from statestore.keys import Key

MOST_ENDS = 200_000
"""Ends of transactions without a record that the job keeps: of topics that are read before those of the rows."""


@dataclass(slots=True, kw_only=True)
class _Transaction:
    """A transaction. `counts`: what its end says, None before it; `items`: the durable items that have records of it;
    `touched`: when the last record came, on the job's clock."""

    seen: SeenRecords = field(default_factory=lambda: SeenRecords(inf, {}))
    counts: Mapping[str, int] | None = None
    items: set[Key] = field(default_factory=set)
    touched: float = 0.0


@dataclass(slots=True, kw_only=True)
class SourceTransactions:
    """`tables`: of each transaction topic, the tables that the job reads, by the names in ends. A record of another table
    adds its own: definitions may call it otherwise."""

    tables: dict[str, set[str]] = field(default_factory=dict)
    _known: dict[TransactionName, _Transaction] = field(default_factory=dict)
    _ended: dict[TransactionName, Mapping[str, int]] = field(default_factory=dict)
    _complete: dict[TransactionName, int] = field(default_factory=dict)

    def waits(self, name: TransactionName) -> bool:
        """Whether the transaction is not complete."""
        return name in self._known and name not in self._complete

    def open_ones(self) -> Iterator[TransactionName]:
        """Those that are not complete."""
        return (name for name in self._known if name not in self._complete)

    def see(self, name: TransactionName, seen: SeenRecords, item: Key, now: float, batch: int) -> bool:
        """Takes records that a task has read; returns whether the transaction is complete now."""
        known = self._known.setdefault(name, _Transaction(counts=self._ended.pop(name, None)))
        known.seen, known.touched = known.seen.with_those_of(seen), now
        known.items.add(item)
        self.tables.setdefault(name[0], set()).update(seen.orders)
        return self._end_if_complete(name, batch)

    def end(self, topic: str, end: TransactionEnd, batch: int) -> bool:
        """Takes the end of a transaction; returns whether it is complete now."""
        name = (topic, end.id)
        if name in self._known:
            self._known[name].counts = end.counts
            return self._end_if_complete(name, batch)
        self._ended[name] = end.counts
        if len(self._ended) > MOST_ENDS:
            del self._ended[next(iter(self._ended))]
        return False

    def missing_ends(self) -> dict[str, float]:
        """Each topic whose ends the job waits for: Kafka's time of the oldest record of such a transaction."""
        found: dict[str, float] = {}
        for (topic, _), known in self._known.items():
            if known.counts is None:
                found[topic] = min(known.seen.time, found.get(topic, inf))
        return found

    def forget(self, batch: int, before: float) -> Iterator[Key]:
        """Forgets the transactions that were complete before this batch, and those without a record since `before`. Yields
        the items of each."""
        old = [name for name, at in self._complete.items() if at != batch]
        old += [name for name, known in self._known.items() if known.touched < before and name not in self._complete]
        for name in old:
            self._complete.pop(name, None)
            yield from self._known.pop(name).items

    def retain(self, topics: Collection[str]) -> Iterator[Key]:
        """Forgets the transactions of other topics. Yields the items of each."""
        for name in [name for name in self._known if name[0] not in topics]:
            self._complete.pop(name, None)
            yield from self._known.pop(name).items

    def incomplete(self, names: Iterable[TransactionName]) -> set[TransactionName]:
        """Those that are not complete."""
        return {name for name in names if self.waits(name)}

    def _end_if_complete(self, name: TransactionName, batch: int) -> bool:
        known = self._known[name]
        if known.counts is None or name in self._complete:
            return False
        read = self.tables.get(name[0], set())
        if any(count(known.seen.orders.get(table, ())) < most for table, most in known.counts.items() if table in read):
            return False
        self._complete[name] = batch
        return True
