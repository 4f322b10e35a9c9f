"""How long after its commit a change of an order is in the topic of a product. Pure."""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from tests.transactions.topic_watch import Arrival


class Commit(NamedTuple):
    """A change of an order: when its transaction had committed, and the revision after it, None of an order that is gone."""

    at: float
    order: int
    revision: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Seconds from commit to message, of all changes. `unseen`: changes of orders that were gone before any message."""

    seconds: list[float]
    unseen: int

    def share(self, part: float) -> float:
        """This many of the changes came within these seconds: 0.5 gives the median."""
        rising = sorted(self.seconds)
        return rising[max(0, ceil(part * len(rising)) - 1)] if rising else math.nan


def commits_of(lines: Iterable[Mapping[str, object]]) -> list[Commit]:
    """The changes in the lines that the application printed."""
    found = []
    for line in lines:
        orders = line["orders"]
        assert isinstance(orders, dict)
        found += [Commit(float(str(line["at"])), int(order), revision) for order, revision in orders.items()]
    return found


def freshness(commits: Iterable[Commit], arrivals: Iterable[Arrival]) -> Freshness:
    """When the first message came that shows each change, or a later one of its order. `arrivals`: of one product, in order."""
    revisions, moments = defaultdict[int, list[float]](list), defaultdict[int, list[float]](list)
    for arrival in arrivals:
        known = revisions[arrival.order]
        shown = math.inf if arrival.revision is None else arrival.revision
        known.append(max(shown, known[-1] if known else -math.inf))  # so the list rises
        moments[arrival.order].append(arrival.at)
    seconds, unseen = list[float](), 0
    for commit in commits:
        known = revisions[commit.order]
        place = bisect_left(known, math.inf if commit.revision is None else commit.revision)
        if place < len(known):
            seconds.append(moments[commit.order][place] - commit.at)
        else:
            unseen += 1
    return Freshness(seconds=seconds, unseen=unseen)
