"""First stages whose work is not records: follow-up work that the driver holds.

settle_stage    open changes that are due -> what the indexes show of them, and their roots again
resume_stage    fan-outs -> the roots of their next page
backlog_stage   roots of stopped products -> the same roots, to publish now
release_stage   roots that waited at their gates -> the same roots, to publish now
repair_stage    roots whose documents differ from the state -> the same roots, their ledger entries invalidated
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from processor.counts import Count
from processor.engine.plan.touch import Root
from processor.engine.protocol.find_roots import find_roots, resume
from processor.engine.protocol.ledger import Mark
from processor.engine.protocol.open_changes import SettledSegment
from processor.engine.protocol.pending import FanOut, FoundRoots
from processor.engine.protocol.publish import invalidate
from processor.engine.protocol.segments import DueSegment, OpenChange, make_segment
from processor.engine.protocol.settle import SettledChange, settle
from processor.engine.rounds.freshness import UNKNOWN
from processor.engine.rounds.round import Round, StageResult
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.write_stage import run_in_chunks, union


class RootToRepair(NamedTuple):
    """A root to publish again, and the key of its message."""

    root: Root
    message_key: str


def settle_stage(due: Iterable[DueSegment], round_: Round, runner: StepRunner) -> StageResult:
    """Settles open changes: what the indexes show of them, and the roots of those that must find them again."""
    due = list(due)
    changes = [(one.segment.name, change) for one in due for change in one.changes()]
    settled = list(run_in_chunks(runner, (settle(change) for _, change in changes)))
    touches = [s.touch for s in settled if s.touch is not None]
    found = union(run_in_chunks(runner, (find_roots(touch, round_.plan) for touch in touches)))
    return StageResult(
        tally=Counter({Count.SETTLED: len(settled)}),
        roots=dict.fromkeys(found.roots, UNKNOWN),
        fan_outs=found.fan_outs,
        settled=tuple(_settled(due, changes, settled, round_)),
    )


def _settled(
    due: Iterable[DueSegment],
    changes: Sequence[tuple[str, OpenChange]],
    settled: Sequence[SettledChange],
    round_: Round,
) -> Iterator[SettledSegment]:
    """The outcome of each segment. `changes`: those that the task settled, with the name of their segment."""
    left: dict[str, list[OpenChange]] = {}
    late: Counter[str] = Counter()
    for (name, _), one in zip(changes, settled, strict=True):
        late[name] += not one.outcome.shown
        if (stays := one.outcome.left) is not None:
            left.setdefault(name, []).append(stays)
    for name in (one.segment.name for one in due):
        item = name.partition("@")[0]
        again = make_segment(f"{item}@{round_.number}", left[name]) if name in left else None
        yield SettledSegment(name, again, late[name])


def resume_stage(fan_outs: Iterable[FanOut], round_: Round, runner: StepRunner) -> StageResult:
    """Continues fan-outs, a page each: where each one is then, and the roots of the pages."""
    resumed = list(run_in_chunks(runner, (resume(fan_out, round_.plan) for fan_out in fan_outs)))
    found = union(r.found for r in resumed)
    return StageResult(
        tally=Counter({Count.FAN_OUT_PAGES: len(resumed)}),
        roots=dict.fromkeys(found.roots, UNKNOWN),
        fan_outs=found.fan_outs,
        resumed=tuple(r._replace(found=FoundRoots(frozenset(), ())) for r in resumed),
    )


def backlog_stage(roots: Iterable[Root], _round: Round, _runner: StepRunner) -> StageResult:
    """Publishes roots of the backlog."""
    return StageResult(roots=dict.fromkeys(roots, UNKNOWN))


def repair_stage(roots: Iterable[RootToRepair], round_: Round, runner: StepRunner) -> StageResult:
    """Invalidates the ledger entries of roots, so that the publish stage sends their documents even where the ledger has the
    same hash."""
    roots = list(roots)
    mark = Mark(round_.run.number, round_.number, 0, 0)
    earlier = round_.setup.earlier_sequences
    products = round_.plan.products
    runner.run(invalidate(products[name].ledger, sk, key, mark, earlier.get(name, 0)) for (name, sk), key in roots)
    return StageResult(cleared=dict.fromkeys((repair.root for repair in roots), UNKNOWN))


def release_stage(roots: Iterable[tuple[Root, float]], _round: Round, _runner: StepRunner) -> StageResult:
    """Publishes roots that their gates let through."""
    times = dict(roots)
    return StageResult(cleared=times, tally=Counter({Count.RELEASED: len(times)}))
