"""The clock of products: roots whose documents change when time passes, without a change of any row.

    DUE#<bucket>#<shard>, <tick>#<hash>    a root of a product, whose document may differ from this tick on
    CLOCK, clock                           the clock of the last round that published by it, and the first bucket with items

A task renders a document at the clock of its round, and learns the first later tick at which the document may differ. An item
with this tick is durable before the ledger has the document. The ledger names the tick, too: where it names an earlier one that
is still to come, that item is there, and the task writes none. So a root has one item, however often it changes.

The driver reads the bucket of the present, and later again when a tick of it is due. A round publishes the roots of the items
that are due, and then deletes these items. An item too many costs one look at its root.

1. The clock of a round is durable before its tasks begin, and never goes back: not after a start on a machine whose clock is
   behind, either. So a tick that a round has reached is over for all later ones.
2. Items of later ticks stay where they are. A day without a tick costs the reads of its buckets.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from math import gcd, inf
from typing import Final, NamedTuple
from zlib import crc32

from processor.engine.plan.plan import Plan
from processor.engine.plan.step import Root, Step
from processor.engine.protocol.pending import Moment, Turn, Turns, split
from statestore.items import key_of_item
from statestore.keys import Key, progress_partition
from statestore.store import AbsentOrBelow, Delete, Item, Write
from statestore.writes import write_note

BUCKET_SECONDS = 3_600
SHARDS = 4
"""Partitions of a bucket: at midnight all roots of a product may be due."""
PAGE: Final = 100
"""Items that the driver reads together."""
ROOTS_PER_ROUND: Final = 1_000
CLOCK: Final = Key(progress_partition("CLOCK"), "clock")


class DueRoot(NamedTuple):
    """A root whose document may differ from a tick on, in seconds since 1970."""

    tick: int
    root: Root


def write_due(due: DueRoot) -> Write:
    """The write of the item of a due root."""
    product, root = due.root
    return write_note(due_key(due), {"product": product, "root": root})


def due_key(due: DueRoot) -> Key:
    """The key of the item of a due root. It shows no value of a row."""
    name = "\0".join(due.root).encode()
    shard = crc32(name) % SHARDS
    return Key(_partition(due.tick // BUCKET_SECONDS, shard), f"{due.tick:012d}#{sha256(name).hexdigest()[:16]}")


def read_due(item: Item) -> DueRoot:
    """The due root of an item."""
    return DueRoot(int(item["SK"].partition("#")[0]), (item["product"], item["root"]))


def clock_in(item: Item | None) -> int:
    """The clock of the last round, by the item `CLOCK`; 0 without one."""
    return 0 if item is None else int(item["time"])


def job_clock(step: int) -> Step[int]:
    """The clock at which the job published last, for the documents of a product whose clock has this step; 0 without a clock."""
    if not step:
        return 0
    (item,) = yield (CLOCK,)
    return clock_in(item)


def _partition(bucket: int, shard: int) -> str:
    return progress_partition("DUE", f"{bucket:08d}#{shard:02d}")


@dataclass(slots=True, kw_only=True)
class Ticks:
    """The clock of a run, and the roots that are due. `step`: of the clocks of all products together, 0 without one. `products`:
    those that the job publishes. `time`: the clock, in seconds since 1970."""

    run: int
    step: int = 0
    products: Collection[str] = ()
    time: int = 0
    waiting: dict[Key, Root] = field(default_factory=dict)
    """The due items that the driver has read."""
    _kept: int = 0
    _bucket: int | None = None
    _next: float = -inf
    _ahead: float = 0.0
    _loaded: bool = False

    @property
    def needs_load(self) -> bool:
        """Whether the run needs the item `CLOCK`, and has not read it yet."""
        return bool(self.step) and not self._loaded

    def load(self, item: Item | None) -> None:
        """Takes over the clock of the runs before."""
        self._loaded, self.time = True, clock_in(item)
        if item is not None:
            self._kept, self._bucket = self.time, int(item["bucket"])

    def adopt(self, plan: Plan) -> None:
        """Continues with the clocks of these products. Forgets what it has read: the items are still there."""
        self.step = gcd(*(planned.product.clock for planned in plan.products.values()))
        self.products = plan.products.keys()
        self.waiting, self._next = {}, -inf

    def advance(self, date: float) -> list[Write]:
        """Sets the clock for the next round; returns the write that must be durable before it."""
        self._move(date)
        if not self.step or (self.time == self._kept and self._bucket is not None):
            return []
        if self._bucket is None:
            self._bucket, self._next = self.time // BUCKET_SECONDS, -inf
        self._kept = self.time
        values = {"run": self.run, "time": self.time, "bucket": self._bucket}
        return [write_note(CLOCK, values, when=AbsentOrBelow("run", self.run + 1))]

    def unread(self, now: float, date: float) -> list[str]:
        """The partitions of the bucket to read next; none where nothing is due."""
        self._ahead = now - date
        self._move(date)
        if self._bucket is None:
            self._next = inf  # no round has written an item
        if self.waiting or self._bucket is None or self.time < self._next:
            return []
        if self._next == (self._bucket + 1) * BUCKET_SECONDS:
            self._bucket += 1  # nothing is left of the one before: its items are read, and tasks said which they added
        self._next = (self._bucket + 1) * BUCKET_SECONDS
        return [_partition(self._bucket, shard) for shard in range(SHARDS)]

    def add(self, items: Iterable[Item]) -> bool:
        """Takes items of a partition, in their order. Returns False where the next items are not due, or are too many."""
        for item in items:
            tick, root = read_due(item)
            if tick > self.time:
                self._next = min(self._next, tick)
                return False
            self.waiting[key_of_item(item)] = root
        return len(self.waiting) < ROOTS_PER_ROUND

    def end_bucket(self) -> None:
        """Ends the reading of a bucket. One that is over, and has no item, is never read again."""
        if self.waiting:
            self._next = -inf
        elif self._bucket is not None and self.time >= (self._bucket + 1) * BUCKET_SECONDS:
            self._bucket, self._next = self._bucket + 1, -inf

    def turns(self, moment: Moment) -> Turns:
        """A round of the roots that are due. Items of products that publish nothing now go: a walk finds their roots."""
        due = [(key, root) for key, root in self.waiting.items() if root[0] in self.products][:ROOTS_PER_ROUND]
        if other := [key for key, root in self.waiting.items() if root[0] not in self.products]:
            yield Turn(requests=list(self._ended(other)))
        if due:
            yield Turn(split(list(dict.fromkeys(root for _, root in due)), moment.lanes), ends=[key for key, _ in due])

    def take(self, found: Iterable[int], done: Iterable[Key], moment: Moment) -> Iterator[Delete]:
        """Takes the ticks of new items, and the items whose roots a round has published."""
        self._next = min([self._next, *found])
        yield from self._ended(done)

    def next_due(self) -> float | None:
        """When the next bucket or tick is due, on the job's clock; None where none is known."""
        if not self.step or self._next == inf:
            return None
        if self.waiting or self._next == -inf:
            return -inf
        return -(-self._next // self.step) * self.step + self._ahead

    def _move(self, date: float) -> None:
        if self.step:
            self.time = max(self.time, int(date) // self.step * self.step)

    def _ended(self, items: Iterable[Key]) -> Iterator[Delete]:
        for key in items:
            self.waiting.pop(key, None)
            yield Delete(key=key)
