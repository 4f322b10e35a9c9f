"""The walk stage: pages of walks -> rows filled and probed, or deleted, and the roots to publish.

Each page is read strongly consistent. The rows of a page are filled, or deleted, side by side. A page of deleted rows is like a
batch of deletes: their changes are open, and durable, before the round sends its first message.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from processor.counts import Count
from processor.engine.plan.plan import EntityPlan, Plan
from processor.engine.plan.step import Step
from processor.engine.plan.touch import Root, Touch
from processor.engine.protocol.fan_outs import FanOut, FoundRoots
from processor.engine.protocol.fill import FilledRow, fill, fill_again
from processor.engine.protocol.find_roots import find_roots
from processor.engine.protocol.keep_edges import RowKeys, keep_edges
from processor.engine.protocol.ledger import read_entry
from processor.engine.protocol.overlay import SegmentGroup
from processor.engine.protocol.segment import Segment
from processor.engine.protocol.truncate_row import truncate_row
from processor.engine.protocol.walk import WalkedPage, WalkPage
from processor.engine.rounds.freshness import UNKNOWN
from processor.engine.rounds.round import Round, StageResult
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.write_stage import open_touched, run_in_chunks, union
from statestore.items import key_of_item, read_columns
from statestore.keys import Key
from statestore.store import Page


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
        filled = list(run_in_chunks(runner, [_edged(step, plan) for step in steps]))
        walked.append(_filled(page, answer, filled, _refusal(filled, round_)))
        tally[Count.FILLED] += walked[-1].written
    tally[Count.WALKED] = sum(one.rows for one in walked)
    return StageResult(
        tally=tally,
        roots=dict.fromkeys(roots, UNKNOWN),
        fan_outs=tuple(fan_outs),
        opened=tuple(opened),
        walked=tuple(walked),
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
    if page.pk in entity.partitions():
        return [key_of_item(item).sk for item in answer.items if read_columns(item) is not None]
    entries = [key_of_item(item).sk for item in answer.items if read_entry(item, product.number).mark is not None]
    if product.retracted:
        return entries
    rows = runner.store.get([entity.key(sk) for sk in entries])
    return [sk for sk in entries if (row := rows.get(entity.key(sk))) is None or read_columns(row) is None]


def _emptied(page: WalkPage, answer: Page, round_: Round, runner: StepRunner) -> EmptiedPage:
    """Deletes the rows of a page that are older than the truncate, opens their changes, and finds their roots."""
    plan = round_.plan.entities[page.walk[1]]
    goal = round_.truncates[plan.name]
    steps = [truncate_row(item, plan, goal, expires_at=round_.expires_at) for item in answer.items]
    edged = [keep_edges(step, _touched_keys) if plan.edges else step for step in steps]
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


def _edged(step: Step[FilledRow], plan: EntityPlan) -> Step[FilledRow]:
    return keep_edges(step, _row_keys) if plan.edges else step


def _touched_keys(touch: Touch | None) -> RowKeys | None:
    return (touch.row, touch.former_keys) if touch is not None else None


def _row_keys(filled: FilledRow) -> RowKeys | None:
    return (filled.row, filled.former_keys) if filled.row is not None and filled.written else None
