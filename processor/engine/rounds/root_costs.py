"""The roots whose documents read the most: of each task, and of the last hour of a run.

The cost of a root is what its assembly reads: rows, and read units by the rules of DynamoDB (`protocol.assemble.RootReads`). The
ledger and the way up are left out, since they do not follow the size of a root.

A sketch is bounded (Misra and Gries): it has at most MOST roots, each with a weight. Where more come, each loses the weight of
the first without a place. So a root with more than a MOST-th of all read units is surely in the sketch. The figures of a root
count from its entry into the sketch, so they are never too high.

    task     the cost of each root that it assembled, and of them a sketch for the driver
    driver   `CostlyRoots`: a sketch for each ten minutes, and of each list the most rows that it had

A key is a value of a row. A root goes by its key only where `log_values` allows that, else by the hash that the certificate of an
erasure shows. A run begins with nothing.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any, Final, NamedTuple, TypeVar

from processor.engine.protocol.assemble import RootReads
from processor.engine.protocol.erasures import erasure_key

MOST: Final = 100
SHOWN: Final = 10
SPAN_SECONDS: Final = 600.0
SPANS: Final = 6
"""Spans of an hour."""
LONG: Final = 100
"""Rows of a list from which on the driver notes them."""
Name = TypeVar("Name", bound=Hashable)


class RootName(NamedTuple):
    """The root of documents. `key`: of its messages, or the first digits of the SHA-256 of entity and key."""

    entity: str
    key: str


class RootCost(NamedTuple):
    """What a root cost. `weight`: in a sketch; `half_units`, `rows`: read; `documents`: how often it was assembled; `most`: the
    half units of the most expensive time; `list_rows`: the most rows of a join below one row, of the entity `of`; `products`:
    those that were made of these rows."""

    weight: int
    half_units: int
    rows: int
    most: int
    list_rows: int
    of: str
    products: tuple[str, ...]
    documents: int = 1

    def plus(self, other: "RootCost") -> "RootCost":
        """Both together."""
        longest = max(self, other, key=lambda one: one.list_rows)
        return RootCost(
            weight=self.weight + other.weight,
            half_units=self.half_units + other.half_units,
            rows=self.rows + other.rows,
            most=max(self.most, other.most),
            list_rows=longest.list_rows,
            of=longest.of,
            products=tuple(dict.fromkeys((*self.products, *other.products))),
            documents=self.documents + other.documents,
        )


RootCosts = Mapping[RootName, RootCost]


def cost_of(reads: RootReads, products: tuple[str, ...]) -> RootCost:
    """The cost of one assembly."""
    half = reads.half_units
    return RootCost(half, half, reads.rows, half, reads.longest, reads.of, products)


def root_name(entity: str, sk: str, key: str, *, shows: bool) -> RootName:
    """The name of the root with the encoded key `sk`, whose messages have this key. `shows`: whether it may show values."""
    return RootName(entity, key if shows else erasure_key(entity, sk).sk[:16])


def heaviest(costs: Mapping[Name, RootCost]) -> dict[Name, RootCost]:
    """The sketch of these costs."""
    if len(costs) <= MOST:
        return dict(costs)
    *_, cut = nlargest(MOST + 1, (cost.weight for cost in costs.values()))
    return {name: cost._replace(weight=cost.weight - cut) for name, cost in costs.items() if cost.weight > cut}


@dataclass(slots=True)
class CostlyRoots:
    """The roots of the last hour of a run. Only the thread of the rounds adds; other threads may read."""

    spans: deque[tuple[float, dict[RootName, RootCost]]] = field(default_factory=lambda: deque(maxlen=SPANS))
    """When each span of ten minutes began, on the job's clock, and its sketch."""
    lists: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """Entity of the root and entity of the rows -> the most rows of a list in this run, and the half units of that root."""

    def add(self, lanes: Iterable[RootCosts], now: float) -> None:
        """Adds the costs of the lanes of a round."""
        for name, cost in (one for costs in lanes for one in costs.items()):
            if not self.spans or now - self.spans[-1][0] >= SPAN_SECONDS:
                self.spans.append((now, {}))
            began, span = self.spans[-1]
            span[name] = span[name].plus(cost) if name in span else cost
            if len(span) > 2 * MOST:
                self.spans[-1] = began, heaviest(span)
            if cost.list_rows >= LONG and cost.list_rows > self.lists.get((name.entity, cost.of), (0, 0))[0]:
                self.lists[name.entity, cost.of] = cost.list_rows, cost.most

    def forget(self) -> None:
        """Forgets all roots: an operator erased one."""
        self.spans.clear()

    def report(self, now: float) -> dict[str, Any]:
        """The most expensive roots of the last hour, and the longest lists of the run, as JSON values."""
        costs: dict[RootName, RootCost] = {}
        for began, span in list(self.spans):
            if began > now - SPANS * SPAN_SECONDS:
                for name, cost in dict(span).items():
                    costs[name] = costs[name].plus(cost) if name in costs else cost
        first = nlargest(SHOWN, costs.items(), key=lambda one: one[1].half_units)
        return {
            "costly_roots": [
                {
                    "entity": name.entity,
                    "key": name.key,
                    "products": list(cost.products),
                    "documents": cost.documents,
                    "rows": cost.rows,
                    "read_units": cost.half_units / 2,
                    "most_read_units": cost.most / 2,
                    "list": cost.of,
                    "list_rows": cost.list_rows,
                }
                for name, cost in first
            ],
            "longest_lists": [
                {"root": root, "list": of, "rows": rows, "read_units": half / 2}
                for (root, of), (rows, half) in sorted(self.lists.copy().items())
            ],
        }
