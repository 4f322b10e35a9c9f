"""The backlog: the roots that stopped products did not publish, because a document could not be made or a topic refused
it.

    OPEN, backlog#<run>.<round>.<n>    a product, and some of its roots as one JSON text

A product that fails stops for the rest of the run. From then on its roots go to the backlog, and no task assembles
them. A backlog item is durable before the batch of its roots is committed, and never changes. The next run publishes
the backlog of earlier runs, some roots a round, and deletes an item once the broker acknowledged its documents. Roots
that fail again go into an item of that run.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from processor.engine.plan.touch import Root
from processor.engine.protocol.segment import BYTES_PER_ITEM
from statestore.items import key_of_item
from statestore.keys import Key, progress_partition
from statestore.store import Delete, Item, Write
from statestore.writes import write_note

PARTITION = progress_partition("OPEN")
"""Of the backlog and of fan-outs. Open changes have `segment.PARTITIONS`."""
ROOTS_PER_ROUND = 1_000


@dataclass(slots=True, kw_only=True)
class Backlog:
    """The backlog of a job. `stopped`: the products that failed in this run, with the reason; `waiting`: the roots of
    earlier runs, by durable item; `own`: the roots that this run added."""

    products: Collection[str]
    run: int
    stopped: dict[str, str] = field(default_factory=dict)
    waiting: dict[Key, tuple[Root, ...]] = field(default_factory=dict)
    own: set[Root] = field(default_factory=set)

    def reload(self, items: Iterable[Item]) -> list[Delete]:
        """Takes the backlog of earlier runs from the items of `PARTITION`; returns the deletes of items that no product
        of this run needs."""
        obsolete = []
        for item in (item for item in items if "roots" in item):
            key, product = key_of_item(item), item["product"]
            if product in self.products:
                self.waiting[key] = tuple((product, root) for root in json.loads(item["roots"]))
            elif _run_of(key) <= self.run:
                obsolete.append(Delete(key=key))
        return obsolete

    def stop(self, failures: Mapping[str, str]) -> dict[str, str]:
        """Stops products; returns those that were not stopped yet."""
        new = {product: reason for product, reason in failures.items() if product not in self.stopped}
        self.stopped |= new
        return new

    def add(self, round_: int, roots: Iterable[Root]) -> list[Write]:
        """Takes roots that a round did not publish; returns the writes that make them durable. This run also notes
        roots of earlier runs, because a zombie of such a run may delete its own item."""
        new = sorted(set(roots) - self.own)
        self.own.update(new)
        return [
            write_note(
                Key(PARTITION, f"backlog#{self.run:010d}.{round_:010d}.{n:06d}"), {"product": product, "roots": text}
            )
            for n, (product, text) in enumerate(_texts(new))
        ]

    def next(self) -> dict[Key, tuple[Root, ...]]:
        """The items whose roots the next round publishes; none of a stopped product."""
        items: dict[Key, tuple[Root, ...]] = {}
        room = ROOTS_PER_ROUND
        for key, roots in self.waiting.items():
            if room > 0 and roots[0][0] not in self.stopped:
                items[key] = roots
                room -= len(roots)
        return items

    def remove(self, items: Iterable[Key]) -> list[Delete]:
        """Forgets items whose roots a round published or noted again; returns the deletes that make that durable."""
        for key in items:
            del self.waiting[key]
        return [Delete(key=key) for key in items]


def stopped_line(product: str, reason: str) -> str:
    """The line that an operator reads about a stopped product."""
    return f"product {product} stopped: {reason}. The other products go on; the next start of the job publishes its backlog"


def _run_of(item: Key) -> int:
    return int(item.sk.split("#")[1].split(".")[0])


def _texts(roots: Iterable[Root]) -> Iterator[tuple[str, str]]:
    """The roots, which are in order, as (product, JSON text): each text of one product, and of a size that fits into an
    item."""
    portion: list[str] = []
    product, size = "", 0
    for name, root in roots:
        encoded = json.dumps(root)
        full = len(portion) == ROOTS_PER_ROUND or size + len(encoded) + 1 > BYTES_PER_ITEM
        if portion and (name != product or full):
            yield product, f"[{','.join(portion)}]"
            portion, size = [], 0
        product = name
        portion.append(encoded)
        size += len(encoded) + 1
    if portion:
        yield product, f"[{','.join(portion)}]"
