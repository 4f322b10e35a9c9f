"""What a reader sees of the registry and of the table, read at most once in LOOK_SECONDS: the definitions with the job's reports,
the roots that wait at gates, and the open changes, to lay over index answers.

Promises: a look at open changes reads only the segments of the last round that the view knows, and of later rounds. Once in
WHOLE_SECONDS a look reads all segments. Then those go that the job has closed, and those come that a task of an earlier round
wrote late. A closed change in the view changes no answer.

Does not: read the rows of open changes, as a start of a job does. A row whose newest change has no durable segment yet is as the
index shows it.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic, time
from typing import Final, Generic, NamedTuple, TypeVar

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_of
from processor.engine.plan.step import Root
from processor.engine.protocol.gates import Wait, stored_roots, wait_of
from processor.engine.protocol.held_roots import HeldRoots
from processor.engine.protocol.segments import PARTITIONS, Segment, SegmentGroup, make_segment, read_changes
from processor.tools.web.problem import LookUpProblem
from registry.model import JobStatus, Snapshot
from statestore.keys import Key
from statestore.store import Item, Read, Store

LOOK_SECONDS: Final = 1.0
WHOLE_SECONDS: Final = 20.0
MOST_CHANGES: Final = 1_000_000
"""Open changes that a process holds: 100 MB."""
PAGE: Final = 100
ROUND_LENGTH: Final = len("0000000000.0000000000")
"""The begin of a segment's name: run and round, which rise."""
T = TypeVar("T")


class Cached(Generic[T]):
    """The last value of a read. Threads may share it, and take turns. An error is not kept: the next look reads again."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: tuple[float, T] | None = None

    def get(self, seconds: float, read: Callable[[], T]) -> T:
        """The value, which is read again where the last read began `seconds` ago or earlier. Errors as of the read."""
        with self._lock:
            now = monotonic()
            if self._kept is None or now - self._kept[0] >= seconds:
                self._kept = None  # before the read: a process holds one value, not two
                self._kept = now, read()
            return self._kept[1]


class SeenRegistry(NamedTuple):
    """The plan, and the jobs with their reports, as they were at `at` (`time.monotonic()`)."""

    at: float
    plan: Plan
    jobs: tuple[JobStatus, ...]


def no_jobs() -> tuple[JobStatus, ...]:
    """The jobs of a registry without jobs."""
    return ()


@dataclass(slots=True, kw_only=True)
class PlanView:
    """The definitions and the job's reports. `snapshot`, `jobs`: ask the registry."""

    snapshot: Callable[[], Snapshot]
    jobs: Callable[[], tuple[JobStatus, ...]] = no_jobs
    plan_of: Callable[[Snapshot], Plan] = plan_of
    _seen: Cached[SeenRegistry] = field(default_factory=Cached)
    _plan: Plan | None = None
    """Of the last version: a look makes a plan only of a new one."""

    def now(self) -> SeenRegistry:
        """What the registry has. Raises RegistryError."""
        return self._seen.get(LOOK_SECONDS, self._look)

    def _look(self) -> SeenRegistry:
        at, snapshot, plan = monotonic(), self.snapshot(), self._plan
        if plan is None or plan.version != snapshot.version:
            self._plan = plan = self.plan_of(snapshot)
        return SeenRegistry(at, plan, self.jobs())


class GateView:
    """The roots that wait at gates: the backlog partition, whole."""

    def __init__(self) -> None:
        self._held = Cached[HeldRoots]()

    def wait(self, plan: Plan, store: Store, root: Root) -> Wait | None:
        """Why the root waits, without the ends of transactions, which no table has; None where it does not wait."""
        return wait_of(self._held.get(LOOK_SECONDS, lambda: stored_roots(plan, store, time())), root)


class OpenView:
    """The open changes: their segments by name, and the groups that index them."""

    def __init__(self) -> None:
        self._seen = Cached[tuple[SegmentGroup, ...]]()
        self._known: dict[str, int] = {}
        self._groups: list[SegmentGroup] = []
        self._read_whole = float("-inf")

    def overlays(self, store: Store) -> tuple[SegmentGroup, ...]:
        """The overlays of now. Raises LookUpProblem where more changes are open than a process holds."""
        return self._seen.get(LOOK_SECONDS, lambda: self._look(store))

    def _look(self, store: Store) -> tuple[SegmentGroup, ...]:
        now = monotonic()
        if now - self._read_whole >= WHOLE_SECONDS:
            self._known, self._groups = {}, []
            self._take(store, "")
            self._read_whole = now
        else:
            self._take(store, max(self._known, default="")[:ROUND_LENGTH])
        return tuple(self._groups)

    def _take(self, store: Store, since: str) -> None:
        """Takes the segments whose names are not below `since`."""
        items = (item for item in _items(store, since) if item["SK"] not in self._known)
        found = tuple(_segments(items))
        if found:
            self._groups.append(SegmentGroup(found))
            self._known |= {one.name: one.size for one in found}
        if (count := sum(self._known.values())) > MOST_CHANGES:
            raise LookUpProblem(
                503, f"{count:,} changes are open, more than {MOST_CHANGES:,}: wait until the job settles"
            )


def _items(store: Store, since: str) -> Iterable[Item]:
    waiting = [Read(pk, Key(pk, since) if since else None, PAGE) for pk in PARTITIONS]
    while waiting:
        pages = store.read(waiting)
        yield from (item for page in pages for item in page.items)
        rest = zip(waiting, pages, strict=True)
        waiting = [read._replace(after=page.after) for read, page in rest if page.after is not None]


def _segments(items: Iterable[Item]) -> Iterable[Segment]:
    return (make_segment(item["SK"], changes) for item in items if (changes := read_changes(item)))


def state_age(jobs: Iterable[JobStatus], topics: Collection[str]) -> float | None:
    """How old the state is at most, in seconds, for the rows of these topics. None where no job has reported how far it is in
    each of them. The table keeps no time of a row or of a message. A job reports what it has not read of its topics, and since
    when that waits. So a reader knows: the table has each change that Kafka had before this age."""
    reports = [(one.report_age, one.report) for one in jobs if one.report is not None and one.report_age is not None]
    if not reports:
        return None
    report_age, report = min(reports, key=lambda one: one[0])
    waits = [report["topics"].get(topic, {}).get("seconds") for topic in topics]
    if None in waits or "looked" not in report:
        return None
    return float(max(0.0, report_age) + (report["at"] - report["looked"]) + max(waits, default=0.0))
