"""Work that rounds leave to later rounds. Every kind of it has one shape (`Work`). Here are the two simple kinds.

The table keeps the work, and the driver has a copy. A round gives each kind what the round found for it. Between batches the
driver asks each kind for its turns, and runs a round for each turn with tasks.

The backlog: the roots that stopped products did not publish, because a document could not be made or a topic refused
it.

    OPEN, backlog#<run>.<round>.<n>    a product, and some of its roots as one JSON text

A product that fails stops for the rest of the run. From then on its roots go to the backlog, and no task assembles
them. A backlog item is durable before the batch of its roots is committed, and never changes. The next run publishes
the backlog of earlier runs, some roots a round, and deletes an item once the broker acknowledged its documents. Roots
that fail again go into an item of that run.

Fan-out: the way up from a change with more rows above it than a page, in pages over several rounds (rule 8 of
docs/architecture.md).

    OPEN, fan-out#<product>#<join>#..#<key>    where the way up continues, for one join key of one join of a product

The batch of the change publishes the roots of the first page. The driver keeps the rest here and processes some pages a
round, in turn with batches. A cursor moves when the round that published its page has ended. A later change of the same
key publishes the first page itself. This pass then goes to the end, and another one goes from there to where the change
found the cursor. So each row is read once after the last change, and rows far back get their turn however often the key
changes. Products that ask for the same page are in one task, which reads it once and publishes their documents together.
"""

import json
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

from processor.engine.plan.plan import Plan, ProductPlan
from processor.engine.plan.step import Root
from processor.engine.protocol.segments import BYTES_PER_ITEM
from registry.model import EdgePath, KeyPath
from statestore import keys
from statestore.items import key_of_item
from statestore.keys import Key, progress_partition
from statestore.store import AbsentOrBelow, Delete, Item, Write
from statestore.writes import write_note

PARTITION = progress_partition("OPEN")
"""Of the backlog and of fan-outs. Open changes have `segments.PARTITIONS`."""
ROOTS_PER_ROUND = 1_000


T = TypeVar("T")
Request = Write | Delete


class Moment(NamedTuple):
    """When a kind of work has its turn, or takes the results of a round."""

    now: float
    """Seconds on the job's clock."""
    date: float
    """Seconds since 1970."""
    round: int
    """The number of the next round."""
    plan: Plan
    """That of the registry's version."""
    lanes: int
    """The most tasks of a round."""


class Turn(NamedTuple):
    """What a kind of work asks of the driver: a round, or else some requests without one."""

    tasks: Sequence[Sequence[Any]] = ()
    """The pieces of work of each task of the round."""
    requests: Sequence[Request] = ()
    """What must be durable before the next turn. The driver checks the lease first."""
    ends: Sequence[Any] = ()
    """Pieces that the end of the round ends, whatever its tasks find."""
    incomplete: int = 0
    """Roots of the round that may show a part of a transaction."""


Turns = Generator[Turn, Moment, None]


class Work(Protocol):
    """A kind of work. Its stage and its name are in `rounds.driver`."""

    def turns(self, moment: Moment) -> Turns:
        """What there is to do now. After each turn the driver sends the moment of the next one."""

    def take(self, found: Iterable[Any], done: Iterable[Any], moment: Moment) -> Iterable[Request]:
        """Takes the results of a round. Returns the requests that make them durable, in their order. `found`: new pieces of this
        kind; `done`: the outcomes of the pieces of its own round."""

    def next_due(self) -> float | None:
        """When the next work is due, on the job's clock: minus infinity for at once, None where there is none."""


def split(work: Sequence[T], tasks: int) -> list[Sequence[T]]:
    """The work, dealt out to at most this many tasks."""
    return [work[n::tasks] for n in range(min(len(work), tasks))]


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

    def remove(self, items: Collection[Key]) -> list[Delete]:
        """Forgets items whose roots a round published or noted again; returns the deletes that make that durable."""
        for key in items:
            del self.waiting[key]
        return [Delete(key=key) for key in items]

    def stop(self, failures: Mapping[str, str]) -> dict[str, str]:
        """Stops products; returns those that were not stopped yet."""
        new = {product: reason for product, reason in failures.items() if product not in self.stopped}
        self.stopped |= new
        return new

    def turns(self, moment: Moment) -> Turns:
        """Some items of the backlog of earlier runs, in one task."""
        if items := self.next():
            yield Turn([list(chain.from_iterable(items.values()))], ends=list(items))

    def take(self, found: Iterable[Root], done: Iterable[Key], moment: Moment) -> list[Request]:
        """Takes roots that a round did not publish, and items whose roots it published or noted again."""
        return [*self.add(moment.round, found), *self.remove(list(done))]

    def next_due(self) -> float | None:
        """At once, while a product that is not stopped has a backlog."""
        return -inf if self.next() else None

    def next(self) -> dict[Key, tuple[Root, ...]]:
        """The items whose roots the next round publishes; none of a stopped product."""
        items: dict[Key, tuple[Root, ...]] = {}
        room = ROOTS_PER_ROUND
        for key, roots in self.waiting.items():
            if room > 0 and roots[0][0] not in self.stopped:
                items[key] = roots
                room -= len(roots)
        return items


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


PAGES_PER_ROUND = 4


class FanOut(NamedTuple):
    """A pass over the rows above `key` of a product's join (an index into its joins). `after`: the row after which it
    continues, None at the start. `again`: another pass follows. `pages`: how many pages are done. `end`: the row at which the
    pass ends; `next_after`, `next_end`: those of the other pass; None for the first or the last row."""

    product: str
    node: int
    key: str
    after: Key | None
    again: bool = False
    pages: int = 0
    end: Key | None = None
    next_after: Key | None = None
    next_end: Key | None = None


PLACES = ("after", "end", "next_after", "next_end")
"""The fields with a row, as an item has them: a release before may know the first one only, and reads all rows again."""


def page_of(fan_out: FanOut, product: ProductPlan) -> tuple[object, ...]:
    """The page of a fan-out: the same for each product that asks for it."""
    node = product.nodes[fan_out.node]
    return node.above, node.up, fan_out.key, fan_out.after


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
                rows = [Key(*item[name]) if item.get(name) else None for name in PLACES]
                self._put(FanOut(item["product"], node, item["key"], rows[0], item["again"], item["pages"], *rows[1:]))
        return obsolete

    def turns(self, moment: Moment) -> Turns:
        """The next pages, each in a task of its own."""
        if pages := self.next():
            yield Turn(pages)

    def take(self, found: Iterable[FanOut], done: Iterable[ResumedFanOut], moment: Moment) -> Iterator[Request]:
        """Takes fan-outs that tasks began, and pages whose documents the broker acknowledged."""
        yield from map(self.add, found)
        yield from map(self.advance, done)

    def next_due(self) -> float | None:
        """At once, while a fan-out waits."""
        return -inf if self.waiting else None

    def add(self, fan_out: FanOut) -> Write:
        """Takes a fan-out that a task began, behind the page whose documents its round publishes; returns the write that makes it
        durable."""
        current = self.waiting.get(fan_out[:3])
        if current is None or self._is_behind(fan_out, current.after):
            return self._put(fan_out)
        return self._put(current._replace(again=True, end=None, next_after=fan_out.after, next_end=current.after))

    def next(self) -> list[list[FanOut]]:
        """The fan-outs of the next round, by their pages."""
        pages: dict[tuple[object, ...], list[FanOut]] = {}
        for fan_out in self.waiting.values():
            page = page_of(fan_out, self.products[fan_out.product])
            if page in pages or len(pages) < PAGES_PER_ROUND:
                pages.setdefault(page, []).append(fan_out)
        return list(pages.values())

    def advance(self, resumed: ResumedFanOut) -> Request:
        """Takes a page whose documents the broker acknowledged; returns the request that makes the progress durable."""
        current = self.waiting.pop(resumed.fan_out[:3])
        at = current._replace(after=resumed.after, pages=current.pages + 1)
        if resumed.after is not None and (current.end is None or not self._is_behind(at, current.end)):
            return self._put(at)
        if current.again:
            return self._put(FanOut(*current[:3], after=current.next_after, end=current.next_end))
        return Delete(key=self._key(current), when=AbsentOrBelow("run", self.run + 1))

    def _is_behind(self, fan_out: FanOut, row: Key | None) -> bool:
        """Whether a fan-out has read this row, and perhaps rows behind it."""
        if fan_out.after is None or row is None:
            return row is None
        if isinstance(self.products[fan_out.product].nodes[fan_out.node].up, EdgePath):
            return fan_out.after.sk >= row.sk
        return keys.index_row(fan_out.after) >= keys.index_row(row)

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
            **{name: list(row) for name in PLACES[1:] if (row := getattr(fan_out, name)) is not None},
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
