"""The replay stage: dead letters of some partitions -> decode by the present definitions, write, open the changes (rule
9).

A replay is input like a batch. Until its item records that it ended, the next replay does it again, and that is
harmless. A letter is read by the forms of decimals that are settled by now. The stage finds no roots: settle work publishes the
documents. A letter from before the last truncate of its table brings no row back: its replay leaves the delete marker of the
truncate.

The replay of a dead letter that takes the place of a document: has the document gone out since?

The replay publishes nothing: a change of the document does, and the next start of the job, if the document then fits its topic.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from processor.engine.plan.plan import Plan, root_of
from processor.engine.plan.row_image import version_of
from processor.engine.plan.step import Step
from processor.engine.protocol.decode import decode
from processor.engine.protocol.ledger import group_key, read_entry
from processor.engine.protocol.replays import ReplayOutcome, ReplayReport, letter_position, note_key, replay
from processor.engine.protocol.segments import changes_key, make_segment
from processor.engine.protocol.write_state import keep_edges
from processor.engine.rounds.decoding import SettledDecode, split_erased
from processor.engine.rounds.round import Round, StageResult
from processor.engine.rounds.step_runner import StepRunner
from processor.values.dead_letters import REPAIR, DeadLetter, seen_version
from processor.values.entity import Entity
from processor.values.reasons import OF_DOCUMENTS
from processor.values.record import Change, Decoded, Ignored, Record, Rejected, Truncated
from registry.model import LetterPosition
from statestore.items import decode_version

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
    stage refuses a letter from before `round_.oldest`, since DynamoDB may have dropped the marker of a later delete, and a
    letter that still keeps a cut record."""
    reports: list[ReplayReport] = []
    decoding = SettledDecode(store=runner.store, schemas=runner.schemas, forms=round_.forms)
    changes: list[Change] = []
    for letter in letters:
        record = letter.rejected.record
        if letter.kept_since < round_.oldest:
            reports.append(ReplayReport(record=record, outcome="refused", reason=TOO_OLD))
            continue
        if letter.rejected.cut is not None:
            reports.append(ReplayReport(record=record, outcome="refused", reason=CUT))
            continue
        if letter.rejected.code in OF_DOCUMENTS:
            reports += runner.run([replay_document(letter.rejected, round_.plan)])
            continue
        match _decoded(letter.rejected, round_.plan, decoding):
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
    counted, erased = split_erased(changes, round_.erased, round_.incarnations, runner.store)
    of_rows = [ReplayReport(record=change.record, outcome="superseded") for change in erased]
    by_key: dict[tuple[object, ...], list[Change]] = {}
    for change in counted:
        by_key.setdefault((change.entity, *change.key), []).append(change)
    steps = (_in_order(changes, round_) for changes in by_key.values())
    of_rows += (report for reports_of_key in runner.run(steps) for report in reports_of_key)
    reports += _of_letters(of_rows)
    segments = tuple(make_segment(item.sk, (change,)) for report in reports for item, change in report.opened)
    return StageResult(replayed=tuple(reports), opened=segments, forms=tuple(decoding.settled))


def _of_letters(of_rows: Iterable[ReplayReport]) -> Iterator[ReplayReport]:
    """One report of each letter, from those of its rows: refused where one row is, else applied where one is."""
    by_letter: dict[LetterPosition, list[ReplayReport]] = {}
    for report in of_rows:
        by_letter.setdefault(letter_position(report.record), []).append(report)
    for reports in by_letter.values():
        worst = min(reports, key=lambda report: _WORST_FIRST.index(report.outcome))
        yield replace(worst, opened=tuple(one for report in reports for one in report.opened))


def _decoded(letter: Rejected, plan: Plan, decoding: SettledDecode) -> Decoded:
    record = letter.record
    for entity in plan.entities.values():
        if entity.entity.topic == record.topic:
            return _repair(record, entity.entity) if letter.code == REPAIR else decoding.decode(record, entity.entity)
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
        replaying = replay(older or change, plan, note=note, opens=opens, expires_at=round_.expires_at)
        replayed = yield from keep_edges(replaying, plan)
        opened = ((opens, replayed.opened),) if replayed.opened is not None else ()
        outcome = "superseded" if older and replayed.outcome == "applied" else replayed.outcome
        reports.append(ReplayReport(record=record, outcome=outcome, reason=replayed.reason, opened=opened))
    return reports


def _older_than_truncate(change: Change, round_: Round) -> Change | None:
    """The delete of the row at the last truncate of its table; None for a change after that, such as a repair."""
    goal = round_.truncates.get(change.entity)
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
        root = root_of(plan.root_entity(product), (record.key or b"").decode())
        if product.product.topic == record.topic and root is not None:
            (item,) = yield (group_key(product.ledger, root),)
            if read_entry(item, product.number).unfit:
                return ReplayReport(record=record, outcome="refused", reason=letter.reason)
            return ReplayReport(record=record, outcome="superseded")
    return ReplayReport(record=record, outcome="ignored")
