"""A round: one turn of the driver, in two stages with a barrier between them.

    1. The first stage is one of several, by its work: records, open changes, fan-outs, walks, backlog roots, dead letters -> the
       roots to publish.
    2. The publish stage: the roots of each lane -> assemble, publish.

All tasks of the first stage end before the first task of the publish stage begins. A round of little work is one task, which
does both. Here is what both stages share, and what they return, as plain data.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from processor.counts import Count
from processor.engine.plan.plan import Plan
from processor.engine.plan.step import Root
from processor.engine.protocol.epochs import NOTHING, Committed, Incarnations
from processor.engine.protocol.erasures import Erased
from processor.engine.protocol.find_roots import ShownRows
from processor.engine.protocol.gate_items import Held, HeldPortion, SeenRecords, TransactionName, make_portions
from processor.engine.protocol.ledger import Run
from processor.engine.protocol.open_changes import SettledSegment
from processor.engine.protocol.pending import FanOut, ResumedFanOut
from processor.engine.protocol.replays import ReplayReport
from processor.engine.protocol.segments import DueSegment, IndexObservation, Segment
from processor.engine.protocol.walks import TruncateGoal, WalkedPage
from processor.engine.rounds.root_costs import RootCosts
from processor.engine.rounds.round_counts import AbsentCounts, RootTimes, UpdateCounts
from processor.engine.rounds.step_runner import StepRunner
from processor.values.dead_letters import LetterGroup, RefusedBy
from processor.values.decimal_forms import FormNote, Forms
from processor.values.record import MAX_MESSAGE_BYTES
from registry.model import KeptLetter
from statestore.store import Store

CHUNK = 500
"""Steps that run side by side: enough to fill batched reads, few enough to bound the memory of a task. Reads are shared
within one chunk only: a document uses no row that was read before its ledger entry, except by the way up of its round."""


SMALL = 100
"""Pieces of work that one task does sooner than several: each further task of Spark costs 10 to 40 ms of CPU, and a second
stage of two tasks 100 ms."""


def size_of(work: Iterable[Iterable[Any]]) -> int:
    """How many pieces the work of the tasks has; each change of a segment counts."""
    pieces = chain.from_iterable(work)
    return sum(piece.segment.size if isinstance(piece, DueSegment) else 1 for piece in pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishSetup:
    """What a run knows of the topics and schemas to publish to: made once for each plan."""

    letter_bytes: int | None = None
    """The largest dead letter, None for any."""
    earlier_sequences: Mapping[str, int] = field(default_factory=dict)
    """Product -> the highest sequence that its topic had before the product published there."""
    message_limits: Mapping[str, int] = field(default_factory=dict)
    """Product -> the most bytes of a message of its topic, 8 MiB where unknown."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Product -> the partitions of its topic, 1 where unknown."""
    schema_ids: Mapping[str, int] = field(default_factory=dict)
    """Product -> the id of the Avro schema of its documents; those of the others are JSON."""
    unready: Mapping[str, str] = field(default_factory=dict)
    """Product -> why the job cannot publish it."""

    @property
    def smallest_limit(self) -> int:
        """The bytes of a message that every topic takes to which the run publishes."""
        letters = MAX_MESSAGE_BYTES if self.letter_bytes is None else self.letter_bytes
        return min(letters, *self.message_limits.values(), MAX_MESSAGE_BYTES)

    def learn(self, limits: Mapping[str, int]) -> "PublishSetup":
        """The setup with the limits that topics had when they refused a message."""
        return replace(self, message_limits={**self.message_limits, **limits}) if limits else self


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTopics:
    """The topics that a round reads."""

    committed: Committed = NOTHING
    """The records of earlier batches."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """How many each topic has; one where it has none."""
    incarnations: Incarnations = field(default_factory=dict)
    """Of the topics, by their epochs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What the job remembers from earlier rounds."""

    stopped: frozenset[str] = frozenset()
    """The products that failed."""
    unfit: frozenset[Root] = frozenset()
    """The roots whose last document did not fit."""
    truncates: Mapping[str, TruncateGoal] = field(default_factory=dict)
    """Of the entities that had one, until this round."""
    erased: Erased = frozenset()
    """The rows that an operator erased."""
    forms: Forms = field(default_factory=dict)
    """The forms of decimals, as records settled them."""
    read_first: frozenset[str] = frozenset()
    """The entities whose rows a task reads before it writes them."""
    proven: frozenset[str] = frozenset()
    """The entities of which the indexes have shown all rows that are not open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRules:
    """What settings and release say of a round."""

    expires_at: int
    """When DynamoDB may drop delete markers of this round, in seconds since 1970."""
    oldest: float
    """The time of the oldest dead letter that may be replayed, in seconds since 1970."""
    dead_letter_topic: str
    walk_page: int = 1
    """The most rows of a page of a walk."""
    log_values: bool = False
    """Whether texts for the log may show values of rows."""
    release: str = ""
    """Of statestore."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The facts that all tasks of a round share."""

    plan: Plan
    """Without the products that wait for their walks."""
    run: Run
    """The run so far."""
    number: int
    """Of this round in the run."""
    batch: int
    """The micro-batch, for the headers of messages."""
    setup: PublishSetup
    """What the run knows of the topics and schemas to publish to."""
    rules: RoundRules
    topics: RoundTopics = RoundTopics()
    remembered: Remembered = Remembered()
    date: float = 0.0
    """When the round began, in seconds since 1970."""
    clock: int = 0
    """The clock of products (`protocol.ticks`), in seconds since 1970."""

    @property
    def refused_by(self) -> RefusedBy:
        """The job, as its dead letters name it."""
        return RefusedBy(release=self.rules.release, registry_version=self.plan.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """The result of a task of a first stage. Each kind of work takes its own pieces (`protocol.pending.Work`)."""

    roots: RootTimes = field(default_factory=dict)
    """To publish in this round if no gate holds them, with the time of the oldest record of each."""
    shown: ShownRows | None = None
    """What the way up has shown of them."""
    cleared: RootTimes = field(default_factory=dict)
    """Those that no gate holds."""
    held: tuple[HeldPortion, ...] = ()
    """What waits at gates."""
    opened: tuple[Segment, ...] = ()
    """The changes that the task opened."""
    fan_outs: tuple[FanOut, ...] = ()
    """They find further roots in later rounds."""
    truncates: tuple[tuple[str, str], ...] = ()
    """The truncates that the task read, as entity and version."""
    done: tuple[SettledSegment | ResumedFanOut | WalkedPage, ...] = ()
    """The outcomes of pieces of work."""
    replayed: tuple[ReplayReport, ...] = ()
    """How replays of dead letters ended."""
    sights: tuple[IndexObservation, ...] = ()
    """Of open rows in index answers."""
    seen: Mapping[TransactionName, SeenRecords] = field(default_factory=dict)
    """The records of source transactions."""
    forms: tuple[FormNote, ...] = ()
    """The forms of decimals that the task settled, or found settled."""
    tally: Counter[str] = field(default_factory=Counter)
    letters: Mapping[LetterGroup, str] = field(default_factory=dict)
    """The place and the reason of the last dead letter of each group. The last of all is at the end."""
    kept: tuple[KeptLetter, ...] = ()
    """The dead letters that the task wrote, for the account of the registry."""
    updates: Mapping[str, UpdateCounts] = field(default_factory=dict)
    """The writes, by entity."""
    absent: Mapping[str, AbsentCounts] = field(default_factory=dict)
    """The declared columns that records lacked, by entity."""


Stage = Callable[[Iterable[Any], Round, StepRunner], StageResult]
"""Each task of a first stage calls it for its work, with a runner that shows the overlay and sends dead letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneResult:
    """The result of a lane in the publish stage."""

    lane: int
    attempt: int = 0
    """Which attempt of the lane committed."""
    tally: Counter[str] = field(default_factory=Counter)
    times: tuple[float, ...] = ()
    """Those of the records that led to the published documents, where known."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The products that failed in the lane, with the reason."""
    backlog: frozenset[Root] = frozenset()
    """The roots that these products, and those that stopped earlier, did not publish, and those of documents that do not fit."""
    unfit: Mapping[Root, str] = field(default_factory=dict)
    """The roots of documents that do not fit, with the reason."""
    kept: tuple[KeptLetter, ...] = ()
    """The dead letters that took their places."""
    fits: frozenset[Root] = frozenset()
    """Those of `Remembered.unfit` that are published now."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Product -> the most bytes of a message, where its topic takes fewer than the round knew."""
    results: tuple[StageResult, ...] = ()
    """Of the first stage, on their way to the driver, without their roots."""
    sights: tuple[IndexObservation, ...] = ()
    """Of open rows in index answers."""
    due: tuple[int, ...] = ()
    """The first tick at which a root of the lane is due; empty where none is."""
    costs: RootCosts = field(default_factory=dict)
    """What the roots of the lane read that read the most."""


def hold_back(result: StageResult, round_: Round, store: Store) -> StageResult:
    """The result of a first stage, without the roots that wait at the gates of their products. They are durable when it
    returns."""
    gated = round_.plan.gated
    if not gated:
        return replace(result, roots={**result.roots, **result.cleared}, cleared={}) if result.cleared else result
    held = Held(
        roots={root: time for root, time in result.roots.items() if root[0] in gated},
        seen=result.seen,
        unfound=frozenset(one.product for one in result.fan_outs if one.product in gated),
    )
    portions = tuple(make_portions(held, round_.run.number, round_.number, round_.date))
    for portion in portions:
        store.write(portion.write())
    free = {root: time for root, time in result.roots.items() if root[0] not in gated}
    tally = result.tally + Counter({Count.HELD: len(held.roots)})
    return replace(result, tally=tally, roots={**free, **result.cleared}, cleared={}, seen={}, held=portions)
