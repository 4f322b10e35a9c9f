"""Fan-out: the way up from a change with more rows above it than a page, worked off page by page (rule 8 of the design).

    OPEN, fan-out#<product>#<join>#..#<key>    where the way up goes on, from one key of one join of a product

The batch of the change publishes what its first page finds; the rest is kept here, some pages a round, in turn with live work.
A cursor moves when the round that published its page has ended. A change of the same key meanwhile asks for another pass
after this one, from the start: so the last pass begins after the last change, and rows far back get their turn however
often it comes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from processor.model.access import KeyRead
from processor.model.open_changes import PARTITION
from processor.model.plan import ProductPlan
from processor.model.touch import Root
from statestore import keys
from statestore.keys import Key
from statestore.store import AbsentOrBelow, Delete, Item, Write

FORMAT = 1
PAGES = 4
"""Pages of a round."""


class FanOut(NamedTuple):
    """A pass over the rows above `key` of a product's join (an index into its nodes): `after` the row where it goes on, None for
    the start. `again`: another pass follows. `pages`: how many were done."""

    product: str
    node: int
    key: str
    after: Key | None
    again: bool = False
    pages: int = 0


class Found(NamedTuple):
    """The roots of a touch, and what is left for later."""

    roots: frozenset[Root]
    rest: tuple[FanOut, ...]


class Resumed(NamedTuple):
    """What the next page of a pass found, and where the pass goes on, None at its end."""

    fan_out: FanOut
    after: Key | None
    found: Found


@dataclass(slots=True, kw_only=True)
class FanOuts:
    """The fan-outs of a job, in the order of their turns. `run`: whose they are; a later run's are not touched any more."""

    products: Mapping[str, ProductPlan]
    run: int
    held: dict[tuple[str, int, str], FanOut] = field(default_factory=dict)

    def reloaded(self, items: Iterable[Item]) -> list[Delete]:
        """Takes what earlier runs left, of all that was open; returns what no product of now can go on with."""
        gone = []
        for item in (item for item in items if "path" in item):
            path = tuple(item["path"])
            product = self.products.get(item["product"])
            node = _node(product, path) if product else None
            if node is None:
                gone.append(Delete(key=Key(item["PK"], item["SK"])))
            else:
                after = Key(*item["after"]) if item["after"] else None
                self._put(FanOut(item["product"], node, item["key"], after, item["again"], item["pages"]))
        return gone

    def asked(self, fan_out: FanOut) -> Write:
        """Takes what a change left to do; returns the write that makes it durable."""
        held = self.held.get(fan_out[:3])
        return self._put(fan_out if held is None else held._replace(again=True))

    def next(self) -> list[FanOut]:
        """What the next round goes on with."""
        return list(self.held.values())[:PAGES]

    def moved(self, resumed: Resumed) -> Write | Delete:
        """Takes a page whose documents were acknowledged; returns what makes that durable."""
        held = self.held.pop(resumed.fan_out[:3])
        if resumed.after is not None:
            return self._put(held._replace(after=resumed.after, pages=held.pages + 1))
        if held.again:
            return self._put(held._replace(after=None, again=False, pages=0))
        return Delete(key=self._key(held), when=AbsentOrBelow("run", self.run + 1))

    def _put(self, fan_out: FanOut) -> Write:
        self.held[fan_out[:3]] = fan_out
        sets: dict[str, Any] = {
            "_f": FORMAT,
            "run": self.run,
            "product": fan_out.product,
            "path": list(_path(self.products[fan_out.product], fan_out.node)),
            "key": fan_out.key,
            "after": list(fan_out.after or ()),
            "again": fan_out.again,
            "pages": fan_out.pages,
        }
        return Write(key=self._key(fan_out), set=sets, when=AbsentOrBelow("run", self.run + 1))

    def _key(self, fan_out: FanOut) -> Key:
        parts = ("fan-out", fan_out.product, *_path(self.products[fan_out.product], fan_out.node), fan_out.key)
        return Key(PARTITION, str(keys.spell(parts)))


def _node(product: ProductPlan, path: tuple[str, ...]) -> int | None:
    """The node with this path, if it still has pages on the way up."""
    for n, node in enumerate(product.nodes):
        if _path(product, n) == path and not isinstance(node.up, KeyRead):
            return n
    return None


def _path(product: ProductPlan, node: int | None) -> tuple[str, ...]:
    """The names of the joins from the root to a node."""
    if node is None:
        return ()
    return (*_path(product, product.nodes[node].parent), product.nodes[node].join.name)
