"""Fan-out: the way up from a change with more rows above it than a page, in pages over several rounds (rule 8 of
docs/architecture.md).

    OPEN, fan-out#<product>#<join>#..#<key>    where the way up continues, for one join key of one join of a product

The batch of the change publishes the roots of the first page. The driver keeps the rest here and processes some pages a
round, in turn with batches. A cursor moves when the round that published its page has ended. A later change of the same
key asks for another pass from the start. So the last pass begins after the last change, and rows far back get their
turn however often the key changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from processor.engine.plan.product_plan import ProductPlan
from processor.engine.plan.touch import Root
from processor.engine.protocol.backlog import PARTITION
from registry.model import KeyPath
from statestore import keys
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.store import AbsentOrBelow, Delete, Item, Write
from statestore.writes import write_note

PAGES_PER_ROUND = 4


class FanOut(NamedTuple):
    """A pass over the rows above `key` of a product's join (an index into its joins). `after`: the row after which it
    continues, None at the start. `again`: another pass follows. `pages`: how many pages are done."""

    product: str
    node: int
    key: str
    after: Key | None
    again: bool = False
    pages: int = 0


class FoundRoots(NamedTuple):
    """The roots of a touched row, and the fan-outs that find the others."""

    roots: frozenset[Root]
    fan_outs: tuple[FanOut, ...]


class ResumedFanOut(NamedTuple):
    """The roots of the next page of a fan-out, and where the pass continues, None at its end."""

    fan_out: FanOut
    after: Key | None
    found: FoundRoots


@dataclass(slots=True, kw_only=True)
class FanOuts:
    """The fan-outs of a job, in the order of their turns. `run`: the run that writes them; it never overwrites those of
    a later run."""

    products: Mapping[str, ProductPlan]
    run: int
    waiting: dict[tuple[str, int, str], FanOut] = field(default_factory=dict)

    def reload(self, items: Iterable[Item]) -> list[Delete]:
        """Takes the fan-outs of earlier runs from the items of `PARTITION`; returns the deletes of those that no
        product continues."""
        obsolete = []
        for item in (item for item in items if "path" in item):
            product = self.products.get(item["product"])
            node = _node(product, tuple(item["path"])) if product else None
            if node is None:
                obsolete.append(Delete(key=key_of_item(item), when=AbsentOrBelow("run", self.run + 1)))
            else:
                after = Key(*item["after"]) if item["after"] else None
                self._put(FanOut(item["product"], node, item["key"], after, item["again"], item["pages"]))
        return obsolete

    def add(self, fan_out: FanOut) -> Write:
        """Takes a fan-out that a task began; returns the write that makes it durable."""
        current = self.waiting.get(fan_out[:3])
        return self._put(fan_out if current is None else current._replace(again=True))

    def next(self) -> list[FanOut]:
        """The fan-outs of the next round."""
        return list(self.waiting.values())[:PAGES_PER_ROUND]

    def advance(self, resumed: ResumedFanOut) -> Write | Delete:
        """Takes a page whose documents the broker acknowledged; returns the request that makes the progress durable."""
        current = self.waiting.pop(resumed.fan_out[:3])
        if resumed.after is not None:
            return self._put(current._replace(after=resumed.after, pages=current.pages + 1))
        if current.again:
            return self._put(current._replace(after=None, again=False, pages=0))
        return Delete(key=self._key(current), when=AbsentOrBelow("run", self.run + 1))

    def _put(self, fan_out: FanOut) -> Write:
        self.waiting[fan_out[:3]] = fan_out
        values: dict[str, Any] = {
            "run": self.run,
            "product": fan_out.product,
            "path": list(_path(self.products[fan_out.product], fan_out.node)),
            "key": fan_out.key,
            "after": list(fan_out.after or ()),
            "again": fan_out.again,
            "pages": fan_out.pages,
        }
        return write_note(self._key(fan_out), values, when=AbsentOrBelow("run", self.run + 1))

    def _key(self, fan_out: FanOut) -> Key:
        parts = ("fan-out", fan_out.product, *_path(self.products[fan_out.product], fan_out.node), fan_out.key)
        return Key(PARTITION, str(keys.encode(parts)))


def _node(product: ProductPlan, path: tuple[str, ...]) -> int | None:
    """The join with this path, if its way up still has pages."""
    for n, node in enumerate(product.nodes):
        if _path(product, n) == path and not isinstance(node.up, KeyPath):
            return n
    return None


def _path(product: ProductPlan, node: int | None) -> tuple[str, ...]:
    """The names of the joins from the root to a join."""
    if node is None:
        return ()
    return (*_path(product, product.nodes[node].parent), product.nodes[node].join.name)
