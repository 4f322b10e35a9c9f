"""Switches for the protections of truncates: where the source empties a table, and a walk deletes the rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import processor.engine.rounds.follow_up_stages as follow_up_stages
import processor.engine.rounds.write_stage as write_stage
from processor.engine.protocol import walks
from processor.engine.protocol.pending import Request
from processor.engine.protocol.walks import NEVER, TruncateGoal, Walks, walk_key
from processor.engine.rounds.round_runner import RoundRunner
from processor.engine.rounds.run_progress import RunProgress
from processor.values.record import Change, Truncated
from statestore.store import Equals, Write
from tests.simulator.actor import TableClient
from tests.simulator.without.switch import Switch, always, replacing


def _moved(place: Callable[[list[int]], int]) -> Switch:
    """A truncate counts at another offset of its batch: `place` chooses it from the offsets of the batch's changes of its
    table."""

    def changed(changes: Any) -> Any:
        def moved(*args: Any) -> Iterator[Change | Truncated]:
            found = list(changes(*args))
            for one in found:
                topic = one.record.topic
                others = [other.record.offset for other in found if other.record.topic == topic]
                record = replace(one.record, offset=place(others))
                yield replace(one, record=record) if isinstance(one, Truncated) else one

        return moved

    return replacing((write_stage._Task, "changes", changed))


newer_rows_deleted = _moved(lambda offsets: max(offsets) + 1)
rows_of_its_batch_kept = _moved(min)


def _without_version(write: Any) -> Any:
    def changed(self: TableClient, request: Write) -> Any:
        if "_deleted" in request.set and isinstance(request.when, Equals):
            request = request._replace(set={**request.set, "_v": request.when.value})
        return write(self, request)

    return changed


marker_without_version = replacing((TableClient, "write", _without_version))
marker_overwrites = replacing((walks, "Equals", always(None)))


def _at_its_end(keep: Any) -> Any:
    def changed(self: RunProgress, requests: Iterable[Request]) -> None:
        under_way = {
            walk_key(name) for name, walk in self.walks.walks.items() if name[0] == "truncate" and not walk.done
        }
        keep(self, [request for request in requests if request.key not in under_way])

    return changed


walk_not_recorded = replacing((RunProgress, "keep", _at_its_end))


def _other_walks(load: Any) -> Any:
    return lambda self, items: load(self, [item for item in items if not item["SK"].startswith("truncate#")])


walk_not_reloaded = replacing((Walks, "load", _other_walks))


def _in_the_middle(truncate: Any) -> Any:
    def changed(self: Walks, *args: Any) -> Any:
        before = {name: walk for name, walk in self.walks.items() if name[0] == "truncate" and not walk.done}
        writes = truncate(self, *args)
        self.walks.update({name: replace(self.walks[name], left=walk.left) for name, walk in before.items()})
        return writes

    return changed


second_truncate_in_the_middle = replacing((Walks, "truncate", _in_the_middle))


def _at_the_last(truncate: Any) -> Any:
    def changed(self: Walks, *args: Any) -> Any:
        writes = truncate(self, *args)
        for name, walk in self.walks.items():
            if isinstance(walk.goal, TruncateGoal) and not walk.done:
                self.walks[name] = replace(walk, goal=TruncateGoal(walk.goal.version, walk.goal.version))
        return writes

    return changed


first_truncate_forgotten = replacing((Walks, "truncate", _at_the_last))


def _unaware(truncates: Mapping[str, TruncateGoal]) -> dict[str, TruncateGoal]:
    return {name: goal._replace(since=NEVER) for name, goal in truncates.items()}


def _unaware_batch(next_round: Any) -> Any:
    def changed(self: RoundRunner, *args: Any) -> Any:
        round_ = next_round(self, *args)
        remembered = replace(round_.remembered, truncates=_unaware(round_.remembered.truncates))
        return replace(round_, remembered=remembered) if args else round_

    return changed


writes_look_at_their_batch_only = replacing((RoundRunner, "next_round", _unaware_batch))


def _once(step: Any) -> Any:
    return lambda item, plan, goal, **kw: step(item, plan, goal._replace(since=NEVER), **kw)


markers_not_touched_again = replacing((follow_up_stages, "truncate_row", _once))
deleted_rows_not_open = replacing((follow_up_stages, "open_touched", always({})))
older_letters_come_back = replacing((follow_up_stages, "_older_than_truncate", always(None)))
