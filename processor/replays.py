"""The replay of dead letters: decoded again, by the definitions as they are now, and written (rule 9 of the design).

    replay_part    dead letters of some partitions -> decode, write, changes opened; nothing is published here

A replay is input like a batch: until its item says that it ended, it is to be done again, and doing it again is harmless.
"""

from collections.abc import Iterable

from processor.batch import OVERSIZED, Round
from processor.lockstep import Lockstep
from processor.model.change import Change, Decoded, Ignored, Record, Rejected
from processor.model.images import version_of
from processor.model.open_changes import item_key
from processor.model.plan import Plan
from processor.model.replays import Letter, Replayed, replay_key
from processor.model.step import Step
from processor.steps.decode import decode
from processor.steps.keep_edges import Stands, keep_edges
from processor.steps.replay import Ended, replay


def replay_part(letters: Iterable[Letter], round_: Round, lockstep: Lockstep, *, oldest: float) -> list[Replayed]:
    """Replays dead letters, which hold all that are to be replayed of their partitions; those of one key in their order. One
    that was kept before `oldest` (seconds since 1970) is refused: a delete after it may be forgotten."""
    ended: list[Replayed] = []
    by_key: dict[tuple[object, ...], list[Change]] = {}
    for letter in letters:
        record = letter.rejected.record
        if letter.kept < oldest:
            ended.append(Replayed(record=record, outcome="refused", reason=TOO_OLD))
            continue
        match _decoded(record, round_.plan):
            case Change() as change:
                by_key.setdefault((change.entity, *change.key), []).append(change)
            case Rejected(reason=reason):
                ended.append(Replayed(record=record, outcome="refused", reason=reason))
            case Ignored():
                ended.append(Replayed(record=record, outcome="ignored"))
    steps = (_in_order(changes, round_) for changes in by_key.values())
    return [*ended, *(replayed for done in lockstep.run(steps) for replayed in done)]


TOO_OLD = (
    "kept for longer than the marker of a deleted row (marker_days), so the row may have been deleted since: "
    "let the source send the row again"
)


def _decoded(record: Record, plan: Plan) -> Decoded:
    for entity in plan.entities.values():
        if entity.entity.topic == record.topic:
            return decode(record, entity.entity)
    return Rejected(record=record, reason=f"no entity has the topic {record.topic} any more")


def _stands(done: Ended) -> Stands | None:
    return (done.row, done.opened.former) if done.row is not None and done.opened is not None else None


def _in_order(changes: list[Change], round_: Round) -> Step[list[Replayed]]:
    """Replays the changes of one key, one after the other."""
    ended = []
    for change in sorted(changes, key=version_of):
        record, plan = change.record, round_.plan.entities[change.entity]
        note = replay_key(record)
        opens = item_key(round_.run.number, round_.number, f"replay.{note.sk}", 0)
        replaying = replay(change, plan, note=note, opens=opens, forget=round_.forget)
        done = yield from (keep_edges(replaying, _stands) if plan.edges else replaying)
        opened = (opens, (done.opened,)) if done.opened is not None else None
        if done.outcome == "oversized":
            ended.append(Replayed(record=record, outcome="refused", reason=OVERSIZED, opened=opened))
        else:
            ended.append(Replayed(record=record, outcome=done.outcome, opened=opened))
    return ended
