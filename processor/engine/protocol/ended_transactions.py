"""The ends of transactions that the job has read, and which of them were newest at a moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from processor.values.source_transaction import TransactionEnd

MOST_ENDS = 200_000
"""Ends that the job keeps of a topic: those of records that it has yet to read, and those that tell a copy from a new record."""
INTERLEAVED = 2_000
"""So many ends may come in another order than their times: of several partitions."""


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
