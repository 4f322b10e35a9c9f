"""The step `write_state` writes one net change to the table, and returns the row that it touched.

    1. One conditional write. It succeeds where there is no row, or a row that a committed batch wrote from the same epoch and
       partition: that batch has published the row. The write itself keeps the previous keys. It is refused over a row that a
       replay of a dead letter wrote last.
    2. Refused, and the row in the table has this version or a newer one: the step writes nothing, unless newer changes
       did not send columns that this change knows (only the replay of a dead letter causes that). The row's current and
       pending keys are touched, because a crash may have swallowed their documents. All used columns count as changed.
    3. Refused, and the row in the table is older: a row of another epoch, or of an attempt that never committed. A second write,
       under the version seen, merges. The row counts as published if its record is committed, by its own epoch, partition and
       offset, and no replay wrote it. Else its former keys stay pending, and are touched. Refused again: back to 2 or 3. A replay
       that outlived its run may have written the row after a later run closed the open change, so nothing else names its keys.

The first write is also refused over a row of the same epoch from another partition. Then the step writes nothing, and
the change becomes a dead letter.

A value that the source did not send (unavailable) keeps its stored value and the version of that value: the step reads
the row first, and 3 writes it. Unless the change deletes the row, the step also reads it first where many updates of the
entity change nothing that the indexes show. Over a row that a committed batch has published, 3 then leaves alone what the
indexes show, so such an update costs no write of an index. A write that has not read the row always counts as a change
there: the same content as before is no proof, because the row may have had another one in between.

This read is weak. If its answer is old, the store refuses the write, and returns the row. Where the answer leads to no write,
the step reads the row again, strongly consistent.

A delete of a row that every index has shown, and that has no open change, takes the row out of the indexes: each drops the
entry, and shows no other in its place. A merge never does this, because it is unknown what the indexes have shown of its row.
A row with a place in an order stays there as a marker: without its columns nobody can ask for the place that it had.

Of a counted entity the step always reads the row first: the write also changes the totals, by what the row contributes now less
what the row says that it has contributed.

The step `keep_edges` keeps the edges of a row around its write (rule 12).

    1. Before each write of the row, the step puts every edge that the new version names, where the stored edge is
       older. New edges alone are not enough, since a task that removes edges of an earlier version may still be under
       way.
    2. The write step writes the row.
    3. The step removes the edges that this version of the row dropped, and those that it put and the row does not name
       in the end. It removes them in the name of the row's version, where the edge is older than that.

A crash leaves too many edges, never too few. The replay of the batch finds the dropped keys again, because the row
keeps them until then. A needless edge costs a read: assemble checks rows against the join.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.row_image import declared_row, filled_image, image_of, refuse_stray, version_of
from processor.engine.plan.step import UNDECLARED, RefusedChange, RowKeys, Step, Touch, TouchOutcome, WeakKey, oversized
from processor.engine.protocol.epochs import Published
from processor.values.record import UNAVAILABLE, Change
from statestore import keys
from statestore.items import Edge, Image, JoinKey, Row, written_row
from statestore.keys import Key
from statestore.store import Done, Item, Refused, TooLarge, Write
from statestore.writes import (
    drop_edge,
    edges_in,
    former_totals,
    keep_indexed,
    leaves_room,
    merge_image,
    put_edge,
    version_in,
    write_image,
)

T = TypeVar("T", bound="EdgedResult | None")


class EdgedResult(Protocol):
    """The result of a step that writes a row."""

    @property
    def row_keys(self) -> RowKeys | None:
        """The row as it is in the table now, and its former keys; None where the result names no row."""


def keep_edges(writing: Step[T], plan: EntityPlan) -> Step[T]:
    """Runs the step that writes a row of this entity, and keeps the row's edges."""
    if not plan.edges:
        return (yield from writing)
    put: set[Edge] = set()
    answers: Any = None
    while True:
        try:
            requests = writing.send(answers)
        except StopIteration as end:
            result: T = end.value
            break
        for write in [r for r in requests if isinstance(r, Write)]:
            if named := edges_in(write):
                put |= named
                yield tuple(put_edge(write.key, edge, version_in(write)) for edge in sorted(named))
        answers = yield requests
    if result is not None and (found := result.row_keys):
        row, former_keys = found
        dropped = put.union((fields, key) for fields, key in former_keys if isinstance(fields, str)) - row.edges
        if dropped:
            yield tuple(drop_edge(row.key, edge, row.version) for edge in sorted(dropped))
    return result


IsShown = Callable[[Key], bool]


def never_visible(_: Key) -> bool:
    """Assumes that no index shows the row yet."""
    return False


def write_state(
    change: Change,
    plan: EntityPlan,
    *,
    published: Published,
    expires_at: int,
    reads: bool = False,
    is_shown: IsShown = never_visible,
) -> Step[Touch | RefusedChange]:
    """Writes `change`. `published`: which stored rows are. `expires_at`: when DynamoDB may drop a delete marker, in seconds since
    1970. `reads`: the step reads the row first. `is_shown`: whether
    every index has shown the row that the table has."""
    sk = keys.encode(change.key)
    if sk is None:
        raise ValueError(f"a {change.entity} without a key reached the table")
    writing = _Writing(change, plan, plan.key(sk), published, expires_at)
    if plan.count or (change.row is not None and (reads or UNAVAILABLE in change.row.values())):
        (item,) = yield (WeakKey(writing.key),)
        return (yield from writing.merge(_row(item, plan), sure=False))
    image = image_of(change, plan, writing.key, None, expires_at)
    if change.row is None and not plan.orders and is_shown(writing.key):
        image = image._replace(slots={}, emptied=tuple(plan.slots))
    write = write_image(image, below=published.below, since=published.since)
    if not leaves_room(image, write):
        return oversized(change)
    (answer,) = yield (write,)
    if isinstance(answer, TooLarge):
        return oversized(change)
    if not isinstance(answer, Done):
        return (yield from writing.merge(_row(answer.current, plan), sure=True))
    old = _row(answer.old, plan)
    return writing.applied(image, old)


class _Merge(NamedTuple):
    """A write over the row that the step saw, the image that it makes, and how the write ends."""

    write: Write
    image: Image
    outcome: TouchOutcome


class _Writing(NamedTuple):
    """A change that the step writes."""

    change: Change
    plan: EntityPlan
    key: Key
    published: Published
    expires_at: int

    def merge(self, seen: Row | None, *, sure: bool) -> Step[Touch | RefusedChange]:
        """Merges over the row `seen`. `sure`: whether the table has, or just had, this row."""
        while True:
            planned = self._planned(seen)
            if isinstance(planned, _Merge):
                (answer,) = yield (planned.write,)
                if isinstance(answer, Done):
                    if former := former_totals(planned.image, seen):
                        yield former
                    return self._merged(planned, seen)
                if isinstance(answer, Refused):
                    seen, sure = _row(answer.current, self.plan), True
                    continue
                planned = oversized(self.change)
            if sure:
                return planned
            (item,) = yield (self.key,)
            seen, sure = _row(item, self.plan), True

    def applied(self, image: Image, old: Row | None) -> Touch:
        """The touch of a write over the published row `old`."""
        row = written_row(image, old)
        former_keys = old.keys() - row.keys() if old is not None else frozenset()
        return Touch(self.change.entity, row, former_keys, _changed(self.plan, old, row), "applied")

    def _planned(self, seen: Row | None) -> _Merge | Touch | RefusedChange:
        """The write over the row `seen`, or the end of the step without a write."""
        change, plan = self.change, self.plan
        if refused := refuse_stray(change, seen):
            return refused
        outcome: TouchOutcome = "applied"
        if seen is None or seen.version < version_of(change):
            image = image_of(change, plan, self.key, seen, self.expires_at)
            if seen is not None and self._is_published(seen):
                image = keep_indexed(image, seen)
        else:
            outcome = "replayed" if seen.version == version_of(change) else "superseded"
            fills = filled_image(change, plan, seen)
            if fills is None:
                return Touch(change.entity, seen, self._pending(seen) - seen.keys(), None, outcome)
            image = fills
        write = merge_image(image, seen, published=self.published)
        return _Merge(write, image, outcome) if leaves_room(image, write) else oversized(change)

    def _merged(self, done: _Merge, seen: Row | None) -> Touch:
        """The touch of a merge that the store did."""
        if seen is None or self._is_published(seen):  # as if the first write had succeeded
            return self.applied(done.image, seen)
        row = written_row(done.image, seen)
        former_keys = (seen.keys() | self._pending(seen)) - row.keys()
        return Touch(self.change.entity, row, former_keys, None, done.outcome)

    def _is_published(self, seen: Row) -> bool:
        """Whether a batch has published the row as it is."""
        return not seen.replayed and self.published(seen.version)

    def _pending(self, seen: Row) -> frozenset[JoinKey]:
        """The former keys of the row whose documents may be unpublished."""
        return frozenset((p.slot, p.key) for p in seen.pending if seen.replayed or not self.published(p.version))


def _row(item: Item | None, plan: EntityPlan) -> Row | None:
    return None if item is None else declared_row(item, plan)


def _changed(plan: EntityPlan, old: Row | None, row: Row) -> frozenset[str] | None:
    """The used columns that differ; None when the row came or went."""
    before, after = old.columns if old is not None else None, row.columns
    if before is None or after is None:
        return frozenset() if before is after else None
    used = plan.declared if plan.used is None else plan.used
    changed = {column for column in used if before.get(column) != after.get(column)}
    if plan.used is None and old is not None and old.more != row.more:
        changed.add(UNDECLARED)
    return frozenset(changed)
