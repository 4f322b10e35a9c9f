"""First stages whose work is not records: follow-up work that the driver holds.

settle_stage    open changes that are due -> what the indexes show of them, and their roots again
resume_stage    fan-outs -> the roots of their next page
backlog_stage   roots of stopped products -> the same roots, to publish now
release_stage   roots that waited at their gates -> the same roots, to publish now
repair_stage    roots whose documents differ from the state -> the same roots, their ledger entries invalidated

The walk stage: pages of walks -> rows filled and probed, or deleted, and the roots to publish.

Each page is read strongly consistent. The rows of a page are filled, or deleted, side by side. A page of deleted rows is like a
batch of deletes: their changes are open, and durable, before the round sends its first message.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from processor.counts import Count
from processor.engine.plan.plan import Plan
from processor.engine.plan.row_image import group_of_item
from processor.engine.plan.step import Root
from processor.engine.protocol.find_roots import find_roots, resume
from processor.engine.protocol.ledger import Mark, read_entry
from processor.engine.protocol.open_changes import SettledSegment
from processor.engine.protocol.pending import FanOut, FoundRoots
from processor.engine.protocol.publish import invalidate
from processor.engine.protocol.segments import DueSegment, OpenChange, Segment, SegmentGroup, make_segment
from processor.engine.protocol.settle import SettledChange, settle
from processor.engine.protocol.walk_steps import FilledRow, fill, fill_again, truncate_row
from processor.engine.protocol.walks import WalkedPage, WalkPage
from processor.engine.protocol.write_state import keep_edges
from processor.engine.rounds.round import Round, StageResult
from processor.engine.rounds.round_counts import UNKNOWN
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.write_stage import open_touched, run_in_chunks, union
from statestore.items import key_of_item, read_columns
from statestore.keys import Key
from statestore.store import Page


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
        done=tuple(_settled(due, changes, settled, round_)),
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
        done=tuple(r._replace(found=FoundRoots(frozenset(), ())) for r in resumed),
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


class EmptiedPage(NamedTuple):
    """A page after its rows are deleted. `deleted`: how many of them the task deleted; `opened`: as in `StageResult`."""

    deleted: int
    opened: tuple[Segment, ...]
    found: FoundRoots


def walk_stage(pages: Iterable[WalkPage], round_: Round, runner: StepRunner) -> StageResult:
    """Processes pages of walks. A fill probes where the page says so."""
    walked: list[WalkedPage] = []
    roots: list[Root] = []
    opened: list[Segment] = []
    fan_outs: list[FanOut] = []
    tally: Counter[str] = Counter()
    for page in pages:
        kind, name = page.walk
        answer = _read(page, round_, runner)
        if kind == "publish":
            roots += [(name, sk) for sk in _roots(page, answer, round_.plan, runner)]
            walked.append(WalkedPage(page, _sort_key(answer), rows=len(answer.items)))
            continue
        if kind == "truncate":
            emptied = _emptied(page, answer, round_, runner)
            opened += emptied.opened
            roots += emptied.found.roots
            fan_outs += emptied.found.fan_outs
            walked.append(WalkedPage(page, _sort_key(answer), rows=len(answer.items), written=emptied.deleted))
            tally[Count.DELETED] += emptied.deleted
            continue
        plan = round_.plan.entities[name]
        steps = [fill(item, plan, probe=page.probes) for item in answer.items]
        steps += [fill_again(Key(pk, sk), plan, version=version) for pk, sk, version in page.unseen]
        filled = list(run_in_chunks(runner, (keep_edges(step, plan) for step in steps)))
        walked.append(_filled(page, answer, filled, _refusal(filled, round_)))
        tally[Count.FILLED] += walked[-1].written
    tally[Count.WALKED] = sum(one.rows for one in walked)
    return StageResult(
        tally=tally,
        roots=dict.fromkeys(roots, UNKNOWN),
        fan_outs=tuple(fan_outs),
        opened=tuple(opened),
        done=tuple(walked),
    )


def _read(page: WalkPage, round_: Round, runner: StepRunner) -> Page:
    """The rows of a page of a partition. Unseen rows have no page. Goes past empty pages: a retried task must find again the
    roots that the lost one reserved, or their reservations would look acknowledged."""
    if page.unseen:
        return Page([], None)
    after = None if page.after is None else Key(page.pk, page.after)
    answer = runner.store.page(page.pk, after, round_.walk_page)
    while not answer.items and answer.after is not None:
        answer = runner.store.page(page.pk, answer.after, round_.walk_page)
    return answer


def _roots(page: WalkPage, answer: Page, plan: Plan, runner: StepRunner) -> list[str]:
    """The roots in a page: the rows; and of the ledger, the roots whose row is gone, or all of a retracted product. An entry
    without a document counts too: nobody may have acknowledged its tombstone."""
    product = plan.products[page.walk[1]]
    entity = plan.entities[product.product.root]
    if page.pk in entity.partitions() and product.group is not None:
        groups = dict.fromkeys(group_of_item(item, entity, product.group) for item in answer.items)
        return [group for group in groups if group is not None]
    if page.pk in entity.partitions():
        return [key_of_item(item).sk for item in answer.items if read_columns(item) is not None]
    entries = [key_of_item(item).sk for item in answer.items if read_entry(item, product.number).mark is not None]
    if product.retracted or product.group is not None:  # no row of its own says whether a group is there
        return entries
    rows = runner.store.get([entity.key(sk) for sk in entries])
    return [sk for sk in entries if (row := rows.get(entity.key(sk))) is None or read_columns(row) is None]


def _emptied(page: WalkPage, answer: Page, round_: Round, runner: StepRunner) -> EmptiedPage:
    """Deletes the rows of a page that are older than the truncate, opens their changes, and finds their roots."""
    plan = round_.plan.entities[page.walk[1]]
    goal = round_.truncates[plan.name]
    steps = [truncate_row(item, plan, goal, expires_at=round_.expires_at) for item in answer.items]
    edged = (keep_edges(step, plan) for step in steps)
    touches = [touch for touch in run_in_chunks(runner, edged) if touch is not None]
    opened = open_touched(touches if plan.slots else (), round_, f"{page.pk}.truncate", runner.store)
    runner = replace(runner, overlays=(*runner.overlays, SegmentGroup(opened)))
    found = union(run_in_chunks(runner, (find_roots(touch, round_.plan) for touch in touches)))
    return EmptiedPage(sum(touch.outcome == "applied" for touch in touches), opened, found)


def _refusal(filled: Iterable[FilledRow], round_: Round) -> str:
    """The reason of the first row that cannot be filled, with its key where the log may show it."""
    for row, refused in ((one.row, one.refused) for one in filled if one.refused):
        key = f"{row.key.pk} / {row.key.sk}" if row and round_.log_values else "a row (log_values = true names it)"
        return f"{key}: {refused}"
    return ""


def _filled(page: WalkPage, answer: Page, filled: Sequence[FilledRow], refused: str) -> WalkedPage:
    unseen = tuple((one.row.key.pk, one.row.key.sk, one.unseen) for one in filled if one.row and one.unseen)
    written = sum(one.written for one in filled)
    return WalkedPage(page, _sort_key(answer), len(answer.items), written, unseen, refused)


def _sort_key(answer: Page) -> str | None:
    return None if answer.after is None else answer.after.sk
