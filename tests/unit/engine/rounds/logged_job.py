"""A driver whose lease checks, rounds and writes are in one log, with an executor that answers what the test prepared."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.epochs import NOTHING
from processor.engine.protocol.ledger import Run
from processor.engine.protocol.open_changes import OpenChanges, SettledSegment
from processor.engine.protocol.pending import FanOut
from processor.engine.protocol.segments import OpenChange, Segment, changes_key, make_segment
from processor.engine.rounds.driver import make_driver
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.round import LaneResult, Round, Stage, StageResult
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Absent, AbsentOrBelow, Delete, Done, Equals, Refused, Write, WriteOutcome

DEFINITIONS = {
    "entities.yaml": """
        user: {key: [id], columns: {id: int, name: string}}
        star: {key: [id], columns: {id: int, who: string}}
    """,
    "profile.yaml": """
        product: profile
        root: user
        fields: [name]
        embed: {stars: {many: star, on: {who: name}, value: id}}
    """,
}
PLAN = plan_alone(load(DEFINITIONS), 3)
RUN_ITEM = Key("RUNS", "0000000002")
CHANGE = OpenChange("star", Key("TABLE#star", "5"), "1", ((1, "ada"),), frozenset())
OPEN_ITEM = changes_key(2, 0, "star.0", 0)
SEGMENT = make_segment(OPEN_ITEM.sk, [CHANGE])
LEFT = make_segment(f"{OPEN_ITEM.sk}@1", [CHANGE])
FAN_OUT = FanOut("profile", 0, "ada", Key("TABLE#user", "7"))
FAN_OUT_ITEM = Key("OPEN", "fan-out#profile#stars#ada")
BACKLOG_ITEM = Key("OPEN", "backlog#0000000002.0000000001.000000")
PUBLISHED = Counter(published=1)


class Job:
    """A driver of run 2. `log`: its lease checks, rounds and writes, in order. `lanes`: the results of the next rounds."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.lanes: list[list[LaneResult]] = []
        self.on_write: Callable[[], object] = lambda: None
        self.rounds: list[Round] = []
        self.works: list[Any] = []
        self.store = Table(self)
        self.clock = VirtualClock()
        self.driver = make_driver(
            settings=Settings(),
            plan=PLAN,
            store=self.store,
            executor=self,
            clock=self.clock,
            run=Run(number=2),
            check_lease=lambda: self.log.append("check lease"),
        )

    def run_round(self, stage: Stage, work: Any, round_: Round, overlay: Any) -> list[LaneResult]:
        assert overlay is self.driver.progress.open_changes.groups
        self.log.append(stage)
        self.rounds.append(round_)
        self.works.append(work)
        return self.lanes.pop(0) if self.lanes else []

    def run_stage(self, stage: Stage, work: Any, round_: Round) -> list[StageResult]:
        raise AssertionError("no test here replays dead letters")

    def batch(self, *lanes: LaneResult) -> Counter[str]:
        """One micro-batch, whose lanes end with these results."""
        self.lanes.append(list(lanes))
        return self.driver.process_batch([], NOTHING)


class Table(MemoryStore):
    """A table that logs the writes and deletes of a job."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job

    def write(self, write: Write) -> WriteOutcome:
        self._job.log.append(write)
        self._job.on_write()
        return super().write(write)

    def delete(self, delete: Delete) -> Done | Refused:
        self._job.log.append(delete)
        return super().delete(delete)


def lane(number: int = 0, *, attempt: int = 0, tally: Counter[str] | None = None, **more: Any) -> LaneResult:
    return LaneResult(lane=number, attempt=attempt, tally=tally or Counter(), **more)


def opening() -> LaneResult:
    """A lane whose first stage opened a change."""
    return lane(results=(StageResult(opened=(SEGMENT,)),))


def settling(*, shown: bool, segment: Segment = SEGMENT) -> LaneResult:
    """A lane whose first stage settled the segment with the change. Where no slot showed it, it is left in `LEFT`."""
    return lane(results=(StageResult(done=(SettledSegment(segment.name, None if shown else LEFT),)),))


def open_in(changes: OpenChanges) -> list[OpenChange]:
    """The changes that are open."""
    return list(changes.changes())


def end_of_round(through: int, before: int | None = None, **attempts: Any) -> Write:
    """`before`: the last round with messages before, -1 for none; by default that with the number before."""
    known = through - 1 if before is None else before
    when = Absent() if known < 0 else Equals("through", known)
    return Write(RUN_ITEM, {"_f": 1, "through": through, **attempts}, when=when)


def fan_out_write(after: str, pages: int) -> Write:
    values = {
        "_f": 1,
        "run": 2,
        "product": "profile",
        "path": ["stars"],
        "key": "ada",
        "after": ["TABLE#user", after],
        "again": False,
        "pages": pages,
    }
    return Write(FAN_OUT_ITEM, values, when=AbsentOrBelow("run", 3))


BACKLOG_WRITE = Write(BACKLOG_ITEM, {"_f": 1, "product": "profile", "roots": '["8"]'})
