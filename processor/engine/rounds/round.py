"""A round: one turn of the driver, in two stages with a barrier between them.

    1. The first stage is one of several, by its work: records, open changes, fan-outs, walks, backlog roots, dead letters -> the
       roots to publish.
    2. The publish stage: the roots of each lane -> assemble, publish.

All tasks of the first stage end before the first task of the publish stage begins. A round of little work is one task, which does
both. Here is what both stages share, and what they return, as plain data.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.touch import Root
from processor.engine.protocol.committed import Committed
from processor.engine.protocol.epochs import Incarnations
from processor.engine.protocol.erasures import Erased
from processor.engine.protocol.fan_outs import FanOut, ResumedFanOut
from processor.engine.protocol.held_portion import HeldPortion, SeenRecords, TransactionName
from processor.engine.protocol.ledger import Run
from processor.engine.protocol.open_changes import SettledSegment
from processor.engine.protocol.overlay import Sight
from processor.engine.protocol.replays import ReplayReport
from processor.engine.protocol.segment import DueSegment, Segment
from processor.engine.protocol.walk import TruncateGoal, WalkedPage
from processor.engine.rounds.freshness import RootTimes
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.update_counts import AbsentCounts, UpdateCounts
from processor.values.dead_letters import RefusedBy
from processor.values.decimal_forms import FormNote, Forms
from processor.values.record import MAX_MESSAGE_BYTES

CHUNK = 500
"""Steps that run side by side: enough to fill batched reads, few enough to bound the memory of a task. Reads are shared
within one chunk only: a document must never use a row that was read before its ledger entry."""


SMALL = 100
"""Pieces of work that one task does sooner than several: each further task of Spark costs 10 to 40 ms of CPU, and a second
stage of two tasks 100 ms."""


def size_of(work: Iterable[Iterable[Any]]) -> int:
    """How many pieces the work of the tasks has; each change of a segment counts."""
    pieces = chain.from_iterable(work)
    return sum(piece.segment.size if isinstance(piece, DueSegment) else 1 for piece in pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishSetup:
    """What a run knows of the topics and schemas to publish to: made once for each plan.

    letter_bytes: the largest dead letter, None for any.
    earlier_sequences: product -> the highest sequence that its topic had before the product published there.
    message_limits: product -> the most bytes of a message of its topic, 8 MiB where unknown.
    schema_ids: product -> the id of the Avro schema of its documents; those of the others are JSON.
    unready: product -> why the job cannot publish it."""

    letter_bytes: int | None = None
    earlier_sequences: Mapping[str, int] = field(default_factory=dict)
    message_limits: Mapping[str, int] = field(default_factory=dict)
    schema_ids: Mapping[str, int] = field(default_factory=dict)
    unready: Mapping[str, str] = field(default_factory=dict)

    @property
    def smallest_limit(self) -> int:
        """The bytes of a message that every topic takes to which the run publishes."""
        letters = MAX_MESSAGE_BYTES if self.letter_bytes is None else self.letter_bytes
        return min(letters, *self.message_limits.values(), MAX_MESSAGE_BYTES)

    def learn(self, limits: Mapping[str, int]) -> "PublishSetup":
        """The setup with the limits that topics had when they refused a message."""
        return replace(self, message_limits={**self.message_limits, **limits}) if limits else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The facts that all tasks of a round share. `run`: the run so far; `number`: of this round in the run; `batch`:
    the micro-batch, for message headers. `committed`: the records of earlier batches. `expires_at`: when
    DynamoDB may drop delete markers of this round; `oldest`: the time of the oldest dead letter that may be replayed
    (both in seconds since 1970). `stopped`: the products that failed in earlier rounds; `unfit`: the roots whose last
    document did not fit. `setup`: what the run knows of the topics and schemas to publish to. `partitions`: of each topic,
    one where it has none. `truncates`: of the entities that had one, until this round. `walk_page`: most rows of a page of
    a walk. `log_values`: whether texts for the log may show values of rows. `erased`: the rows that an operator erased.
    `incarnations`: of the topics, by their epochs. `release`: of statestore. `forms`: of decimals, as records settled
    them. `read_first`: the entities whose rows a task reads before it writes them; `proven`: those of which the indexes have
    shown all rows that are not open. `date`: of its begin, in seconds since 1970."""

    plan: Plan
    run: Run
    number: int
    batch: int
    committed: Committed
    expires_at: int
    oldest: float
    dead_letter_topic: str
    setup: PublishSetup
    stopped: frozenset[str]
    unfit: frozenset[Root] = frozenset()
    partitions: Mapping[str, int] = field(default_factory=dict)
    truncates: Mapping[str, TruncateGoal] = field(default_factory=dict)
    walk_page: int = 1
    log_values: bool = False
    erased: Erased = frozenset()
    incarnations: Incarnations = field(default_factory=dict)
    release: str = ""
    forms: Forms = field(default_factory=dict)
    read_first: frozenset[str] = frozenset()
    proven: frozenset[str] = frozenset()
    date: float = 0.0

    @property
    def refused_by(self) -> RefusedBy:
        """The job, as its dead letters name it."""
        return RefusedBy(release=self.release, registry_version=self.plan.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """The result of a task of a first stage. `roots`: to publish in this round if no gate holds them, with the time of the oldest
    record of each; `cleared`: those that no gate holds; `seen`: records of source transactions; `held`: what waits at gates.
    `fan_outs`: find further roots in later rounds. `opened`: the changes that the task opened. `sights`: of open rows in index
    answers. `settled`, `resumed`, `replayed`, `walked`: the outcome of each piece of work. `truncates`: the truncates that the
    task read, as entity and version. `letters`: the code of a reason -> the place and the reason of its last dead letter; the
    last of all is at the end. `forms`: the forms of decimals that the task settled, or found settled. `updates`: the writes by
    entity. `absent`: the declared columns that records lacked, by entity."""

    tally: Counter[str] = field(default_factory=Counter)
    roots: RootTimes = field(default_factory=dict)
    fan_outs: tuple[FanOut, ...] = ()
    opened: tuple[Segment, ...] = ()
    sights: tuple[Sight, ...] = ()
    settled: tuple[SettledSegment, ...] = ()
    resumed: tuple[ResumedFanOut, ...] = ()
    replayed: tuple[ReplayReport, ...] = ()
    walked: tuple[WalkedPage, ...] = ()
    truncates: tuple[tuple[str, str], ...] = ()
    letters: Mapping[str, str] = field(default_factory=dict)
    forms: tuple[FormNote, ...] = ()
    updates: Mapping[str, UpdateCounts] = field(default_factory=dict)
    absent: Mapping[str, AbsentCounts] = field(default_factory=dict)
    cleared: RootTimes = field(default_factory=dict)
    seen: Mapping[TransactionName, SeenRecords] = field(default_factory=dict)
    held: tuple[HeldPortion, ...] = ()


Stage = Callable[[Iterable[Any], Round, StepRunner], StageResult]
"""Each task of a first stage calls it for its work, with a runner that shows the overlay and sends dead letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneResult:
    """The result of a lane in the publish stage. `failed`: the products that failed in it, with the reason; `backlog`: the roots
    that these, and the products that stopped earlier, did not publish, and those of documents that do not fit. `unfit`: these
    roots, with the reason; `fits`: those of `Round.unfit` that are published now. `limits`: product -> the most bytes of a
    message, where its topic takes fewer than the round knew. `results`: of the first stage, on their way to the
    driver, without their roots. `sights`: of open rows in index answers. `times`: of the records that led to the published
    documents, where known."""

    lane: int
    attempt: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    times: tuple[float, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    backlog: frozenset[Root] = frozenset()
    unfit: Mapping[Root, str] = field(default_factory=dict)
    fits: frozenset[Root] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)
    results: tuple[StageResult, ...] = ()
    sights: tuple[Sight, ...] = ()
