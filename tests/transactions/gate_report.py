"""What the messages of each product say: how many there are, how many are broken, and how long after its commit a change came."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from processor.language.definitions.describe import describe_product
from processor.language.product.product import Product
from processor.text import duration_text
from tests.transactions.broken_messages import Place, longest_waits, place_of
from tests.transactions.freshness import Commit, freshness
from tests.transactions.order_documents import broken
from tests.transactions.topic_watch import Arrival

SETTLED_SECONDS = 30.0
"""The changes of this many seconds before the first kill count to neither time: their messages may come after it."""
TIMES = ("without kills", "with kills")


def printed_lines(lines: Iterable[str]) -> list[Mapping[str, Any]]:
    """The lines of the application that are JSON."""
    return [json.loads(line) for line in lines if line.startswith("{")]


@dataclass(slots=True, kw_only=True)
class GateReport:
    """`arrivals`: all messages, in the order in which they came; `began`: the end of the first load; `kills`: their begin."""

    products: Iterable[Product]
    arrivals: Sequence[Arrival]
    commits: Sequence[Commit]
    began: float
    kills: float
    _waits: Mapping[Place, float] = field(init=False)

    def __post_init__(self) -> None:
        self._waits = longest_waits(self.arrivals, self.commits)

    def table(self) -> Iterator[tuple[str, ...]]:
        """A line for each product."""
        times = (f"{share}, {when}" for when in TIMES for share in ("p50", "p99"))
        yield ("product", "publish", "messages", "broken", "broken at `at_most`", *times)
        for product in self.products:
            messages, found = self._messages(product), self._broken(product)
            late = len(found) - len(self._early(product))
            gate = describe_product(product).get("publish", {})
            words = ", ".join(f"{name}: {value}" for name, value in gate.items())
            counts = (len(messages), len(found) - late, late)
            yield (product.name, words, *map(str, counts), *self._freshness(product))

    def torn(self) -> list[Arrival]:
        """The broken messages of products with whole transactions that came before `at_most` ran out."""
        return [arrival for product in self.products if product.gate.whole for arrival in self._early(product)]

    def describe(self, arrival: Arrival) -> str:
        """A line for a broken message."""
        record = arrival.record
        place = f"{record.topic}, partition {record.partition}, offset {record.offset}, at {arrival.at:.3f}"
        waited = duration_text(self._waits[place_of(arrival)])
        return f"{place}: order {arrival.order}, waited {waited}: {'; '.join(broken(arrival.document))}"

    def _messages(self, product: Product) -> list[Arrival]:
        return [one for one in self.arrivals if one.record.topic == product.topic and one.at >= self.began]

    def _broken(self, product: Product) -> list[Arrival]:
        return [one for one in self._messages(product) if broken(one.document)]

    def _early(self, product: Product) -> list[Arrival]:
        """The broken messages before `at_most`; without a gate, all."""
        found, longest = self._broken(product), product.gate.at_most
        return [one for one in found if self._waits[place_of(one)] < longest] if product.gated else found

    def _freshness(self, product: Product) -> Iterator[str]:
        """The median and the 99th of 100, in each of the two times."""
        of_product = [one for one in self.arrivals if one.record.topic == product.topic]
        calm = [one for one in self.commits if one.at < self.kills - SETTLED_SECONDS]
        rough = [one for one in self.commits if one.at >= self.kills]
        for commits in (calm, rough):
            found = freshness(commits, of_product)
            yield from (duration_text(found.share(part)) if found.seconds else "" for part in (0.5, 0.99))
