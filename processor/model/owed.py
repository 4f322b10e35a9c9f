"""What stopped products owe: the roots whose documents could not be made, or that their topic refused.

    OPEN, owed#<run>.<round>.<n>    a product, and some roots of it as one JSON text

A product that fails is stopped for the rest of the run; from then on its roots are owed without being assembled. An item is
durable before the batch of its roots is committed, and never changes. The next run publishes what earlier ones owe, some roots a
round, and deletes an item once its documents are acknowledged; roots that fail again are owed anew, by an item of that run.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from processor.model.open_changes import BYTES_AN_ITEM, PARTITION
from processor.model.touch import Root
from statestore.keys import Key
from statestore.store import Delete, Item, Write

FORMAT = 1
ROOTS_A_ROUND = 1_000


class Sent(NamedTuple):
    """What a publish part did. `failed`: the products that failed in it, with the reason; `owed`: the roots that these, and those
    that were stopped before, have not published."""

    tally: Counter[str]
    failed: dict[str, str]
    owed: frozenset[Root]


@dataclass(slots=True, kw_only=True)
class Owed:
    """The debts of a job. `stopped`: the products that failed in this run, with the reason; `waiting`: what earlier runs owe, by
    durable item; `kept`: what this run owes."""

    products: Collection[str]
    run: int
    stopped: dict[str, str] = field(default_factory=dict)
    waiting: dict[Key, tuple[Root, ...]] = field(default_factory=dict)
    kept: set[Root] = field(default_factory=set)

    def reloaded(self, items: Iterable[Item]) -> list[Delete]:
        """Takes what earlier runs owe, of all that was open; returns what products owe that are there no more."""
        gone = []
        for item in (item for item in items if "roots" in item):
            key, product = Key(item["PK"], item["SK"]), item["product"]
            if product in self.products:
                self.waiting[key] = tuple((product, root) for root in json.loads(item["roots"]))
            else:
                gone.append(Delete(key=key))
        return gone

    def failed(self, failures: Mapping[str, str]) -> dict[str, str]:
        """Stops products; returns those that were not stopped yet."""
        new = {product: why for product, why in failures.items() if product not in self.stopped}
        self.stopped |= new
        return new

    def asked(self, round_: int, roots: Iterable[Root]) -> list[Write]:
        """Takes what a round left to stopped products; returns the writes that make it durable. What an earlier run owes
        is noted again: a zombie of that run may delete its own item."""
        new = sorted(set(roots) - self.kept)
        self.kept.update(new)
        return [
            Write(
                key=Key(PARTITION, f"owed#{self.run:010d}.{round_:010d}.{n:06d}"),
                set={"_f": FORMAT, "product": product, "roots": text},
            )
            for n, (product, text) in enumerate(_texts(new))
        ]

    def next(self) -> dict[Key, tuple[Root, ...]]:
        """The items whose roots the next round publishes; none of a product that is stopped."""
        todo: dict[Key, tuple[Root, ...]] = {}
        left = ROOTS_A_ROUND
        for key, roots in self.waiting.items():
            if left > 0 and roots[0][0] not in self.stopped:
                todo[key] = roots
                left -= len(roots)
        return todo

    def paid(self, items: Iterable[Key]) -> list[Delete]:
        """Forgets items whose roots were published or owed anew; returns what makes that durable."""
        for key in items:
            del self.waiting[key]
        return [Delete(key=key) for key in items]


def stopped_line(product: str, why: str) -> str:
    """What an operator is told of a stopped product."""
    return f"product {product} stopped: {why}. The others go on; what it owes is published after the job's next start"


def _texts(roots: Iterable[Root]) -> Iterator[tuple[str, str]]:
    """The roots, which are in order, as (product, JSON text): of one product each, and of a size that fits into an item."""
    held: list[str] = []
    product, size = "", 0
    for name, root in roots:
        spelt = json.dumps(root)
        if held and (name != product or len(held) == ROOTS_A_ROUND or size + len(spelt) + 1 > BYTES_AN_ITEM):
            yield product, f"[{','.join(held)}]"
            held, size = [], 0
        product = name
        held.append(spelt)
        size += len(spelt) + 1
    if held:
        yield product, f"[{','.join(held)}]"
