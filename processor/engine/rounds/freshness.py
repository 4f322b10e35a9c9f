"""Freshness: the age of a published document, as a histogram.

The age counts from Kafka's timestamp of the oldest record of the batch that led to the document, until the broker acknowledged
the document and committed its transaction. The clock of the publish task says when that was. The timestamp is the one that the
topic keeps (CreateTime or LogAppendTime), never a time in the source's row.

A tally holds the histogram: a counter for each bucket that is not empty, and the sum. So histograms add up over tasks, rounds
and a whole run like all counts. Does not: count documents that no record of their round led to: corrections, repairs, the
backlog, and the later pages of a fan-out.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from processor.engine.plan.touch import Root

RootTimes = Mapping[Root, float]
"""Root -> Kafka's time of the oldest record that led to it, in seconds since 1970; UNKNOWN where no record of the round did."""
UNKNOWN = inf
BOUNDS = tuple(
    float(f"{step}e{power}") for power in (-1, 0, 1, 2) for step in (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8)
)[:-1]
"""The upper bound of each bucket, in seconds: ten for a factor of ten, from 0.1 to 630. The last bucket has no bound."""
FRESHNESS = "freshness "
BUCKETS = (*(f"{FRESHNESS}<= {bound:g} s" for bound in BOUNDS), f"{FRESHNESS}> {BOUNDS[-1]:g} s")
"""The counter of each bucket in a tally. A document counts in one bucket only."""
SUM = f"{FRESHNESS}ms"
"""The counter of the ages of all documents together, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """The ages of documents. `counts`: how many in each bucket; `seconds`: the sum of the ages."""

    counts: tuple[int, ...]
    seconds: float

    @property
    def count(self) -> int:
        """The number of documents."""
        return sum(self.counts)

    def quantile(self, share: float) -> float:
        """The age in seconds that this share of the documents (above 0, at most 1) does not exceed: between the bounds of
        its bucket, in proportion. Infinite in the last bucket. There must be documents."""
        lower, upper = self.bucket(share)
        if upper == inf:
            return inf
        n = BOUNDS.index(upper)
        below = sum(self.counts[:n])
        return lower + (upper - lower) * (share * self.count - below) / self.counts[n]

    def bucket(self, share: float) -> tuple[float, float]:
        """The bounds of the bucket that has the age of `quantile`: 0 below the first one, infinite above the last one."""
        n = bisect_left(list(accumulate(self.counts)), share * self.count)
        return BOUNDS[n - 1] if n else 0.0, BOUNDS[n] if n < len(BOUNDS) else inf


def count_ages(ages: Iterable[float]) -> Counter[str]:
    """The counters of documents of these ages, in seconds. A negative age, from clocks that differ, counts as 0."""
    ages = [max(age, 0.0) for age in ages]
    tally = Counter(BUCKETS[bisect_left(BOUNDS, age)] for age in ages)
    tally[SUM] = round(1000 * sum(ages))
    return tally


def read_freshness(tally: Mapping[str, int]) -> Freshness:
    """The histogram in a tally."""
    return Freshness(counts=tuple(tally.get(name, 0) for name in BUCKETS), seconds=tally.get(SUM, 0) / 1000)


def oldest(times: Iterable[RootTimes]) -> dict[Root, float]:
    """All roots, each with its oldest time."""
    found: dict[Root, float] = {}
    for root_times in times:
        for root, time in root_times.items():
            found[root] = min(time, found.get(root, time))
    return found
