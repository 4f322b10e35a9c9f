"""How a driver runs the stages of a round: the Protocol, and the executor that runs them in this process.

`processor.job.run.spark_executor` runs the same stages as tasks of Spark.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from time import perf_counter
from typing import Any, Protocol

from processor.engine.protocol.overlay import SegmentGroup, group_of
from processor.engine.rounds.keep_changes import hold_back
from processor.engine.rounds.publish_stage import AskLimit, publish_lane
from processor.engine.rounds.round import LaneResult, Round, Stage, StageResult
from processor.engine.rounds.stage_times import stage_time
from processor.engine.rounds.step_runner import OpenWriter, Outbox, StepRunner
from processor.environment.settings.settings import FAN_OUT_PAGE
from processor.values.framing import NO_SCHEMAS, FramedReader
from statestore.store import Store

Work = Any
"""Pieces of work, split into tasks: a sequence per task, or records in a form that the executor knows (a data frame)."""


class Executor(Protocol):
    """Runs stages over work."""

    def run_round(
        self, stage: Stage, work: Work, round_: Round, overlay: Mapping[int, SegmentGroup]
    ) -> list[LaneResult]:
        """Runs `stage` over the work of each task, then, when all tasks have ended, the publish stage of each lane. `overlay`:
        the open changes of earlier rounds, as `OpenChanges.overlay` has them."""

    def run_stage(self, stage: Stage, work: Work, round_: Round) -> list[StageResult]:
        """Runs `stage` over the work of each task, and publishes nothing."""


BeginAttempt = Callable[[Round], tuple[int, Outbox]]
"""Begins an attempt of the one lane: its number, and the outbox of its transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessExecutor:
    """Runs all stages in this process: the work of all tasks as one, and one lane. `begin`: begins an attempt;
    `ask_limit`: as `publish_lane` has it. `rejects`: where dead letters go. `page`, `schemas`, `open_writer`: as the step
    runner has them. The driver counts the requests of `store`, which it shares."""

    store: Store
    begin: BeginAttempt
    ask_limit: AskLimit | None = None
    rejects: Outbox | None = None
    page: int = FAN_OUT_PAGE
    schemas: FramedReader = NO_SCHEMAS
    open_writer: OpenWriter | None = None

    def run_round(
        self, stage: Stage, work: Iterable[Iterable[Any]], round_: Round, overlay: Mapping[int, SegmentGroup]
    ) -> list[LaneResult]:
        overlays = tuple(overlay.values())
        runner = StepRunner(
            store=self.store,
            outbox=self.rejects,
            overlays=overlays,
            page=self.page,
            schemas=self.schemas,
            open_writer=self.open_writer,
        )
        began = perf_counter()
        result = hold_back(stage(chain.from_iterable(work), round_, runner), round_, self.store)
        written, began = stage_time("write", began), perf_counter()
        opened = group_of(result.opened)

        def begin(attempted: Round) -> tuple[int, StepRunner]:
            attempt, outbox = self.begin(attempted)
            return attempt, replace(runner, outbox=outbox, overlays=(*overlays, opened))

        lane = publish_lane(0, result.roots, round_, begin, self.ask_limit) if result.roots else LaneResult(lane=0)
        tally = lane.tally + written + stage_time("publish", began)
        return [replace(lane, tally=tally, results=(replace(result, roots={}),), sights=runner.sights())]

    def run_stage(self, stage: Stage, work: Iterable[Iterable[Any]], round_: Round) -> list[StageResult]:
        runner = StepRunner(store=self.store, outbox=self.rejects, page=self.page, schemas=self.schemas)
        return [stage(chain.from_iterable(work), round_, runner)]
