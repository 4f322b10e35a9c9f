"""First stages whose work is not records of a batch: follow-up work that the driver holds, and replays.

settle_stage    open changes that are due -> what the indexes show of them, and their roots again
resume_stage    fan-outs -> the roots of their next page
backlog_stage   roots of stopped products -> the same roots, to publish now
release_stage   roots that waited at their gates -> the same roots, to publish now
repair_stage    roots whose documents differ from the state -> the same roots, their ledger entries invalidated

The walk stage: pages of walks -> rows filled and probed, or deleted, and the roots to publish.

Each page is read strongly consistent. The rows of a page are filled, or deleted, side by side. A page of deleted rows is like a
batch of deletes: their changes are open, and durable, before the round sends its first message.

The replay stage: dead letters of some partitions -> decode by the present definitions, write, open the changes (rule 9). A replay
is input like a batch. Until its item records that it ended, the next replay does it again, and that is harmless. A letter is read
by the forms of decimals that are settled by now. The stage finds no roots: settle work publishes the documents. A letter from
before the last truncate of its table brings no row back: its replay leaves the delete marker of the truncate. The replay of a
dead letter in place of a document publishes nothing: the stage looks whether the document has gone out since.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple

from processor.counts import Count
from processor.engine.plan.plan import Plan
from processor.engine.plan.row_image import group_of_item, version_of
from processor.engine.plan.step import Root, Step
from processor.engine.protocol.decode import TopicEntities, decode
from processor.engine.protocol.find_roots import find_roots, resume
from processor.engine.protocol.ledger import Mark, Placed, group_key, read_entry
from processor.engine.protocol.open_changes import SettledSegment
from processor.engine.protocol.pending import FanOut, FoundRoots, page_of
from processor.engine.protocol.publish import invalidate
from processor.engine.protocol.replays import ReplayOutcome, ReplayReport, letter_position, note_key, replay
from processor.engine.protocol.segments import DueSegment, OpenChange, Segment, SegmentGroup, changes_key, make_segment
from processor.engine.protocol.settle import SettledChange, settle
from processor.engine.protocol.walks import FilledRow, WalkedPage, WalkPage, fill, fill_again, truncate_row
from processor.engine.protocol.write_state import keep_edges
from processor.engine.rounds.decoding import SettledDecode, split_erased
from processor.engine.rounds.round import Round, StageResult
from processor.engine.rounds.round_counts import UNKNOWN, count_nulled
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.write_stage import open_touched, run_in_chunks, shown_rows, union
from processor.language.product.document import key_of_root
from processor.values.dead_letters import REPAIR, DeadLetter, seen_version
from processor.values.entity import Entity
from processor.values.reasons import OF_DOCUMENTS
from processor.values.record import Change, Decoded, Ignored, Record, Rejected, Truncated
from registry.model import LetterPosition
from statestore.items import decode_version, key_of_item, read_columns
from statestore.keys import Key
from statestore.store import Page


class RootToRepair(NamedTuple):
    """A root to publish again, and the key of its message. `partitions`: those that show a document of it, where they are not the
    one of its key alone."""

    root: Root
    message_key: str
    partitions: tuple[int, ...] = ()


def settle_stage(due: Iterable[DueSegment], round_: Round, runner: StepRunner) -> StageResult:
    """Settles open changes: what the indexes show of them, and the roots of those that must find them again."""
    due, entities = list(due), round_.plan.entities
    changes = [(one.segment.name, change) for one in due for change in one.changes()]
    steps = (
        settle(change, entities[change.entity].slots, entities[change.entity].orders.keys()) for _, change in changes
    )
    settled = list(run_in_chunks(runner, steps))
    touches = [s.touch for s in settled if s.touch is not None]
    shown = shown_rows(runner.store)
    found = union(run_in_chunks(runner, (find_roots(touch, round_.plan, shown) for touch in touches)))
    return StageResult(
        tally=Counter({Count.SETTLED: len(settled)}),
        roots=dict.fromkeys(found.roots, UNKNOWN),
        shown=shown,
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
    shown = shown_rows(runner.store)
    pages: dict[object, list[FanOut]] = {}
    for fan_out in fan_outs:
        pages.setdefault(page_of(fan_out, round_.plan.products[fan_out.product]), []).append(fan_out)
    steps = (resume(some, round_.plan, shown) for some in pages.values())
    resumed = list(chain.from_iterable(run_in_chunks(runner, steps)))
    found = union(r.found for r in resumed)
    return StageResult(
        tally=Counter({Count.FAN_OUT_PAGES: len(resumed)}),
        roots=dict.fromkeys(found.roots, UNKNOWN),
        shown=shown,
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

    def step(repair: RootToRepair) -> Step[None]:
        name, sk = repair.root
        product = products[name].product
        shown = Placed(product.topic, repair.partitions) if repair.partitions else None
        key = key_of_root(product, repair.message_key) or repair.message_key
        return invalidate(products[name].ledger, sk, key, mark, earlier.get(name, 0), shown)

    runner.run(map(step, roots))
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
    answer = runner.store.page(page.pk, after, round_.rules.walk_page)
    while not answer.items and answer.after is not None:
        answer = runner.store.page(page.pk, answer.after, round_.rules.walk_page)
    return answer


def _roots(page: WalkPage, answer: Page, plan: Plan, runner: StepRunner) -> list[str]:
    """The roots in a page: the rows; and of the ledger, the roots whose row is gone, or all of a retracted product. An entry
    without a document counts too: its tombstone may not be acknowledged."""
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
    goal = round_.remembered.truncates[plan.name]
    steps = [truncate_row(item, plan, goal, expires_at=round_.rules.expires_at) for item in answer.items]
    edged = (keep_edges(step, plan) for step in steps)
    touches = [touch for touch in run_in_chunks(runner, edged) if touch is not None]
    opened = open_touched(touches if plan.slots else (), round_, f"{page.pk}.truncate", runner.store)
    runner = replace(runner, overlays=(*runner.overlays, SegmentGroup(opened)))
    shown = shown_rows(runner.store)
    found = union(run_in_chunks(runner, (find_roots(touch, round_.plan, shown) for touch in touches)))
    return EmptiedPage(sum(touch.outcome == "applied" for touch in touches), opened, found)


def _refusal(filled: Iterable[FilledRow], round_: Round) -> str:
    """The reason of the first row that cannot be filled, with its key where the log may show it."""
    for row, refused in ((one.row, one.refused) for one in filled if one.refused):
        key = (
            f"{row.key.pk} / {row.key.sk}" if row and round_.rules.log_values else "a row (log_values = true names it)"
        )
        return f"{key}: {refused}"
    return ""


def _filled(page: WalkPage, answer: Page, filled: Sequence[FilledRow], refused: str) -> WalkedPage:
    unseen = tuple((one.row.key.pk, one.row.key.sk, one.unseen) for one in filled if one.row and one.unseen)
    written = sum(one.written for one in filled)
    return WalkedPage(page, _sort_key(answer), len(answer.items), written, unseen, refused)


def _sort_key(answer: Page) -> str | None:
    return None if answer.after is None else answer.after.sk


_WORST_FIRST: Final[tuple[ReplayOutcome, ...]] = ("refused", "applied", "superseded", "ignored")
TOO_OLD = (
    "kept for longer than the marker of a deleted row (marker_days), so the row may have been deleted since: "
    "let the source send the row again"
)
TRUNCATE = (
    "the record says that the source emptied the table, and a replay deletes no rows: let the source empty it again"
)
MOVED = (
    "the update moves a row to another key, and a replay moves none: `verify --source --repair` corrects both rows, or the "
    "source deletes the old key and sends the row again"
)
CUT = (
    "the dead letter keeps only a part of the record, and the source topic no longer holds the whole record: "
    "let the source send the row again"
)


def replay_stage(letters: Iterable[DeadLetter], round_: Round, runner: StepRunner) -> StageResult:
    """Replays dead letters, which are all those to replay of their partitions; letters of one key in their order. The
    stage refuses a letter from before `round_.rules.oldest`, since DynamoDB may have dropped the marker of a later delete, and
    a letter that still keeps a cut record."""
    reports: list[ReplayReport] = []
    decoding = SettledDecode(store=runner.store, schemas=runner.schemas, forms=round_.remembered.forms)
    entities = TopicEntities(planned.entity for planned in round_.plan.entities.values())
    changes: list[Change] = []
    for letter in letters:
        record = letter.rejected.record
        if letter.kept_since < round_.rules.oldest:
            reports.append(ReplayReport(record=record, outcome="refused", reason=TOO_OLD))
            continue
        if letter.rejected.cut is not None:
            reports.append(ReplayReport(record=record, outcome="refused", reason=CUT))
            continue
        if letter.rejected.code in OF_DOCUMENTS:
            reports += runner.run([replay_document(letter.rejected, round_.plan)])
            continue
        match _decoded(letter.rejected, entities, decoding):
            case Change(former=None) as change:
                changes += (change, *change.others)
            case Change():
                reports.append(ReplayReport(record=record, outcome="refused", reason=MOVED))
            case Truncated():
                reports.append(ReplayReport(record=record, outcome="refused", reason=TRUNCATE))
            case Rejected(reason=reason, plain=plain):
                reports.append(ReplayReport(record=record, outcome="refused", reason=reason, plain=plain))
            case Ignored():
                reports.append(ReplayReport(record=record, outcome="ignored"))
    counted, erased = split_erased(changes, round_.remembered.erased, round_.topics.incarnations, runner.store)
    of_rows = [ReplayReport(record=change.record, outcome="superseded") for change in erased]
    by_key: dict[tuple[object, ...], list[Change]] = {}
    for change in counted:
        by_key.setdefault((change.entity, *change.key), []).append(change)
    steps = (_in_order(changes, round_) for changes in by_key.values())
    of_rows += (report for reports_of_key in runner.run(steps) for report in reports_of_key)
    reports += _of_letters(of_rows)
    segments = tuple(make_segment(item.sk, (change,)) for report in reports for item, change in report.opened)
    tally = count_nulled(counted)
    return StageResult(tally=tally, replayed=tuple(reports), opened=segments, forms=tuple(decoding.settled))


def _of_letters(of_rows: Iterable[ReplayReport]) -> Iterator[ReplayReport]:
    """One report of each letter, from those of its rows: refused where one row is, else applied where one is."""
    by_letter: dict[LetterPosition, list[ReplayReport]] = {}
    for report in of_rows:
        by_letter.setdefault(letter_position(report.record), []).append(report)
    for reports in by_letter.values():
        worst = min(reports, key=lambda report: _WORST_FIRST.index(report.outcome))
        yield replace(worst, opened=tuple(one for report in reports for one in report.opened))


def _decoded(letter: Rejected, entities: TopicEntities, decoding: SettledDecode) -> Decoded:
    record = letter.record
    entity = entities.of_letter(letter, decoding.schemas)
    if entity is not None:
        return _repair(record, entity) if letter.code == REPAIR else decoding.decode(record, entity)
    return Rejected(record=record, reason=f"no entity has the topic {record.topic} any more")


def _repair(record: Record, entity: Entity) -> Decoded:
    """The change of a repair from the source: a plain row, whatever the records of the entity are."""
    change = decode(record, replace(entity, format="plain", decimals=None))
    return change._replace(seen=seen_version(record)) if isinstance(change, Change) else change


def _in_order(changes: list[Change], round_: Round) -> Step[list[ReplayReport]]:
    """Replays the changes of one key, one after the other."""
    reports = []
    for change in sorted(changes, key=version_of):
        record, plan = change.record, round_.plan.entities[change.entity]
        note, older = note_key(letter_position(record), change.part), _older_than_truncate(change, round_)
        opens = changes_key(round_.run.number, round_.number, f"replay.{note.sk}", 0)
        replaying = replay(older or change, plan, note=note, opens=opens, expires_at=round_.rules.expires_at)
        replayed = yield from keep_edges(replaying, plan)
        opened = ((opens, replayed.opened),) if replayed.opened is not None else ()
        outcome = "superseded" if older and replayed.outcome == "applied" else replayed.outcome
        reports.append(ReplayReport(record=record, outcome=outcome, reason=replayed.reason, opened=opened))
    return reports


def _older_than_truncate(change: Change, round_: Round) -> Change | None:
    """The delete of the row at the last truncate of its table; None for a change after that, such as a repair."""
    goal = round_.remembered.truncates.get(change.entity)
    if goal is None or change.seen is not None or goal.version <= version_of(change):
        return None
    epoch, partition, offset = decode_version(goal.version)
    at = replace(change.record, epoch=epoch, partition=partition, offset=offset)
    return change._replace(row=None, record=at)


def replay_document(letter: Rejected, plan: Plan) -> Step[ReplayReport]:
    """`superseded` where the ledger has a later message of the root; `refused`, for the same reason, where it has none; `ignored`
    without the product."""
    record = letter.record
    for product in plan.products.values():
        root = plan.root_of(product, (record.key or b"").decode())
        if product.product.topic == record.topic and root is not None:
            (item,) = yield (group_key(product.ledger, root),)
            if read_entry(item, product.number).unfit:
                return ReplayReport(record=record, outcome="refused", reason=letter.reason)
            return ReplayReport(record=record, outcome="superseded")
    return ReplayReport(record=record, outcome="ignored")
