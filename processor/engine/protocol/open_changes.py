"""Open changes: changes that an index may not show yet, as the driver holds them: in segments (`protocol.segment`).

While a change is open, the runner lays the row itself over every index answer that lacks it (`rounds.step_runner`). An
answer that shows the row at this version is evidence for its slot, and the runner hands it to the driver. Of a deleted row that
every index had shown, and that has left its slots, an answer without the row is evidence. S seconds after the
changes of a segment the driver settles it: a task asks the slots without evidence. The changes that some slot does not show are
left: they go into a segment of their own, which is due S later. The others close W after their evidence, whatever the row has
done meanwhile: a newer change of the row is open by itself.

Settling finds roots again only for a change of `again`: the overlay of this run did not cover all that happened to it. A
start reloaded it, also from another run, a replay opened it, or a slot did not show it in time.

The table holds the same changes, so a driver that loses its copy reloads it at its next start. A durable item stays until no
segment has changes of it, those that settling left included.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from processor.engine.protocol.pending import Moment, Request, Turn, Turns, split
from processor.engine.protocol.segments import (
    CHANGES_PER_ITEM,
    DueSegment,
    IndexObservation,
    OpenChange,
    Segment,
    SegmentGroup,
    group_of,
    item_key,
    make_segment,
    make_segments,
    open_change,
    open_items,
    read_changes,
    unproven_slots,
)
from statestore.items import key_of_item, read_row
from statestore.keys import Key
from statestore.store import Delete, Item, Store, Terminal, TooLarge

SPARE_SEGMENTS = 32
"""Segments of left changes beyond the needed ones before the driver gathers them: a row that moves all the time leaves one each
time, and settling asks for each."""
SMALL_GROUP = 500
"""A group of fewer changes travels again with the next segments, so that small rounds do not make many groups."""

ReadRows = Callable[[set[Key]], Mapping[Key, Item]]


class SettledSegment(NamedTuple):
    """The outcome of settling a segment. `left`: its changes that stay open; `late`: how many of them an index did not show."""

    segment: str
    left: Segment | None
    late: int = 0


@dataclass(slots=True, kw_only=True)
class HeldSegment:
    """A segment as the driver holds it. Times are on the job's clock."""

    segment: Segment
    items: frozenset[Key]
    """The durable items of its changes."""
    opened_at: float
    due: float
    """When the driver settles or closes it."""
    again: bool
    """See `DueSegment`."""
    shown: bool = False
    """Every slot showed it, and at `due` it closes."""
    seen: int = 0
    """See `DueSegment`."""

    @property
    def is_left(self) -> bool:
        """Whether settling left these changes."""
        return all(item.sk != self.segment.name for item in self.items)


@dataclass(slots=True, kw_only=True)
class OpenChanges:
    """The open changes of a job."""

    wait: float
    """W, in seconds."""
    settle: float
    """S, in seconds."""
    run: int = 0
    """The run that gathers segments."""
    samples: bool = True
    """Settling finds the roots of those that `SAMPLE` chose again, though nothing asks for it."""
    held: dict[str, HeldSegment] = field(default_factory=dict)
    """The segments by name."""
    groups: dict[int, SegmentGroup] = field(default_factory=dict)
    """Those that travelled to the workers, by number."""
    _new: list[Segment] = field(default_factory=list)
    _group_number: int = 0
    _again: int = 0
    _users: Counter[Key] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """How many changes are open. Other threads may ask."""
        return sum(one.segment.size for one in list(self.held.values()))

    def count_due(self, now: float) -> int:
        """How many changes wait for settling now. Other threads may ask."""
        return sum(one.segment.size for one in list(self.held.values()) if not one.shown and one.due <= now)

    def changes(self) -> Iterator[OpenChange]:
        """All open changes, decoded: not for each round."""
        for held in self.held.values():
            again = held.again and not held.shown
            yield from (change._replace(again=again) for change in held.segment.changes())

    def add(self, segments: Iterable[Segment], now: float, *, again: bool = False) -> None:
        """Takes durable segments. `again`: no round of this run has found their roots."""
        for one in segments:
            self._hold(one, frozenset([item_key(one.name)]), now, now + self.settle, again)

    def reload(self, items: Iterable[Item], read: ReadRows, now: float) -> None:
        """Takes the durable items of earlier runs, at a start. Each change takes over version and keys of its row as the
        table has it. `read`: reads rows by key."""
        for item in items:
            changes, key = read_changes(item), key_of_item(item)
            rows = read({change.key for change in changes})
            segment = make_segment(key.sk, (_latest(change, rows.get(change.key)) for change in changes))
            self._hold(segment, frozenset([key]), now, now + self.settle, again=True)

    def turns(self, moment: Moment) -> Turns:
        """Settles the segments that are due. Then closes those that the indexes have shown long enough, and gathers the others
        where they are many."""
        self.confirm(moment.now)
        if due := self.due(moment.now):
            moment = yield Turn(split(due, moment.lanes))
        at = self.next_due()
        if at is not None and (at <= moment.now or self.fragmented()):
            yield Turn(requests=self.clean_up(moment.now, moment.round))

    def take(self, found: Iterable[Segment], done: Iterable[SettledSegment], moment: Moment) -> Iterable[Request]:
        """Takes segments that tasks have made durable, and outcomes of settling."""
        self.add(found, moment.now)
        self.record(done, moment.now)
        return ()

    def overlay(self) -> Mapping[int, SegmentGroup]:
        """The groups with open segments, by numbers that never name another group. A worker needs only those that it lacks."""
        self.groups = {n: one for n, one in self.groups.items() if any(s.name in self.held for s in one.segments)}
        if new := [one for one in self._new if one.name in self.held]:
            last = next(reversed(self.groups), None)
            if last is not None and self.groups[last].size < SMALL_GROUP:
                new = [one for one in self.groups.pop(last).segments if one.name in self.held] + new
            self._group_number += 1
            self.groups[self._group_number] = group_of(tuple(new))
        self._new = []
        return self.groups

    def lags(self, sights: Iterable[IndexObservation], settled: Iterable[SettledSegment], now: float) -> list[float]:
        """The seconds since each open change behind which an answer, to live work or to settling, lags."""
        late = Counter({one.segment: one.late for one in settled})
        for sight in sights:
            late[sight.segment] += sight.late
        return [now - self.held[name].opened_at for name in late.elements() if name in self.held]

    def see(self, sights: Iterable[IndexObservation], now: float) -> None:
        """Notes which slots showed an open change at its version or newer, and which still showed a row that has left them. Such
        an answer cancels the evidence of others, also while the change waits to close: then it is open again."""
        known = [(held, sight) for sight in sights if (held := self.held.get(sight.segment))]
        for held, sight in known:
            held.seen |= sight.seen
        for held, sight in known:
            held.seen &= ~sight.lost
            if sight.lost and held.shown:
                self._open_again(held, sight.lost, now)

    def confirm(self, now: float) -> None:
        """Counts due segments as shown that live work saw in every slot, and that need nothing else."""
        for held in self._due(now):
            needs_roots = held.again or (self.samples and held.segment.sampled)
            if held.seen.bit_count() == held.segment.asked and not needs_roots:
                held.due, held.shown = now + self.wait, True

    def due(self, now: float) -> list[DueSegment]:
        """The segments to settle now."""
        return [DueSegment(held.segment, held.seen, held.again, self.samples) for held in self._due(now)]

    def next_due(self) -> float | None:
        """When the next segment is due; None when nothing is open."""
        return min((held.due for held in self.held.values()), default=None)

    def record(self, settled: Iterable[SettledSegment], now: float) -> None:
        """Takes the outcomes of settling."""
        for one in settled:
            held = self.held[one.segment]
            held.due, held.shown = now + self.wait, True
            if one.left is not None:
                self._hold(one.left, held.items, held.opened_at, now + self.settle, again=True)

    def close(self, now: float) -> list[Key]:
        """Closes the segments that the indexes showed W ago; returns the durable items that no open change needs any
        more."""
        return self._drop([name for name, held in self.held.items() if held.shown and held.due <= now])

    def clean_up(self, now: float, round_: int) -> list[Request]:
        """Closes segments, and gathers those that settling left where they are many."""
        unused, gathered = self.close(now), list[Segment]()
        if self.fragmented():
            gathered = self.gather(self.run, round_)
            unused += self.replace_left(gathered)
        return [*(one.write() for one in gathered), *(Delete(key=item) for item in unused)]

    def fragmented(self) -> bool:
        """Whether there are many more segments of left changes than these need."""
        left = self._left()
        return len(left) > SPARE_SEGMENTS + 2 * sum(one.segment.size for one in left) / CHANGES_PER_ITEM

    def gather(self, run: int, round_: int) -> list[Segment]:
        """Puts the changes that settling left into as few segments as possible, one change for each row; returns the segments
        to make durable before `replace_left`."""
        by_row: dict[Key, OpenChange] = {}
        for held in self._left():
            for change in held.segment.changes():
                known = by_row.get(change.key)
                by_row[change.key] = change if known is None else _merged(change, known)
        return list(make_segments(by_row.values(), run, round_, "gathered"))

    def replace_left(self, gathered: Iterable[Segment]) -> list[Key]:
        """Takes the gathered segments in place of those that settling left; returns the durable items that no open change needs
        any more."""
        left = self._left()
        due, opened_at = min(one.due for one in left), min(one.opened_at for one in left)
        for one in gathered:
            self._hold(one, frozenset([item_key(one.name)]), opened_at, due, again=True)
        return self._drop([one.segment.name for one in left])

    def _open_again(self, held: HeldSegment, lost: int, now: float) -> None:
        """Opens the changes of a segment again that have these places, unless their rows are open."""
        width = held.segment.width
        places = (1 << width) - 1
        waiting = group_of(tuple(one.segment for one in self.held.values() if not one.shown))
        changes = [one for n, one in enumerate(held.segment.changes()) if lost >> n * width & places]
        if again := [change for change in changes if not waiting.is_open(change.key)]:
            self._again += 1
            segment = make_segment(f"{held.segment.name.partition('@')[0]}+{self._again}", again)
            self._hold(segment, held.items, held.opened_at, now + self.settle, again=True)

    def _left(self) -> list[HeldSegment]:
        return [held for held in self.held.values() if held.is_left and not held.shown]

    def _due(self, now: float) -> list[HeldSegment]:
        return [held for held in self.held.values() if not held.shown and held.due <= now]

    def _hold(self, segment: Segment, items: frozenset[Key], opened_at: float, due: float, again: bool) -> None:
        self.held[segment.name] = HeldSegment(segment=segment, items=items, opened_at=opened_at, due=due, again=again)
        self._users.update(items)
        self._new.append(segment)

    def _drop(self, names: Iterable[str]) -> list[Key]:
        unused: list[Key] = []
        for name in names:
            for item in sorted(self.held.pop(name).items):
                self._users[item] -= 1
                if not self._users[item]:
                    del self._users[item]
                    unused.append(item)
        return unused


def keep_segment(segment: Segment, store: Store) -> None:
    """Makes open changes durable."""
    if isinstance(store.write(segment.write()), TooLarge):
        pk = segment.change(0).key.pk
        raise Terminal(
            f"{pk}: the former keys of a row, whose changes are open, fill an item: wait W, then start again"
        )


def stored_overlay(store: Store) -> Iterable[SegmentGroup]:
    """The overlay of all open changes that the table holds, for a reader that is no job."""
    changes = OpenChanges(wait=0, settle=0)
    changes.reload(open_items(store), store.get, 0)
    return changes.overlay().values()


def _latest(change: OpenChange, stored: Item | None) -> OpenChange:
    """The change, with the version and the keys of its row, if that is newer."""
    if stored is None:
        return change
    return _merged(open_change(change.entity, read_row(stored), change.former | set(change.slots)), change)


def _merged(new: OpenChange, known: OpenChange) -> OpenChange:
    """One change of a row for two: the higher version's keys are current, all others former."""
    high, low = (new, known) if new.version >= known.version else (known, new)
    slots = unproven_slots(low, high.slots)
    former = (high.former | low.former | set(low.slots)) - set(slots)
    return high._replace(slots=slots, former=frozenset(former))
