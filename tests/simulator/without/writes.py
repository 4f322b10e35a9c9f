"""Without parts of what makes writes safe against crashes, replays and zombies (rules 2, 3, 4, 6, 8)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import processor.batch as batch
import processor.rounds as rounds
import processor.steps.dedupe as dedupe
import processor.steps.write_state as write_state
import processor.worker as worker
from statestore import items
from statestore.store import AbsentOrBelow, Delete, Done, Equals, Write
from tests.simulator.line import TableClient
from tests.simulator.without.switch import answering, replacing

old_parent_forgotten = replacing(
    (write_state, "_applied", lambda applied: lambda *args: applied(*args)._replace(left=frozenset()))
)
no_previous_keys = replacing(
    (write_state, "write_image", lambda make: lambda image, below: make(image, below=below)._replace(copy={}))
)


def _copied_afterwards(step: Any) -> Any:
    """The previous keys as a second write, from what the first one answered."""

    def changed(*args: Any, **kw: Any) -> Any:
        running = step(*args, **kw)
        requests = next(running)
        try:
            while True:
                answers = yield tuple(r._replace(copy={}) if isinstance(r, Write) else r for r in requests)
                request, answer = requests[0], answers[0]
                if isinstance(request, Write) and request.copy and isinstance(answer, Done) and answer.old:
                    former = {prev: answer.old[slot] for prev, slot in request.copy.items() if slot in answer.old}
                    yield (Write(key=request.key, set=former, when=Equals("_v", request.set["_v"])),)
                requests = running.send(answers)
        except StopIteration as end:
            return end.value

    return changed


previous_in_second_write = replacing((batch, "write_state", _copied_afterwards))
pending_dropped = replacing(
    (write_state, "merge_image", lambda make: lambda image, seen, keep_from: make(image, seen, keep_from="~"))
)
own_version_as_start = replacing(
    (write_state, "write_image", lambda make: lambda image, below: make(image, below=image.version))
)


def _nothing_when(how: str) -> Callable[[Any], Any]:
    def change(touch: Any) -> Any:
        return touch._replace(changed=frozenset()) if getattr(touch, "how", None) == how else touch

    return lambda step: answering(step, change)


replay_touches_nothing = replacing((batch, "write_state", _nothing_when("replayed")))
superseded_touches_nothing = replacing((batch, "write_state", _nothing_when("superseded")))


def _filtered_merge(merge: Any) -> Any:
    def changed(change: Any, plan: Any, key: Any, seen: Any, start: str, forget: int) -> Any:
        touch = yield from merge(change, plan, key, seen, start, forget)
        if getattr(touch, "how", None) == "applied" and seen is not None:
            return touch._replace(changed=write_state._changed(plan, seen, touch.row))
        return touch

    return changed


filter_after_merge = replacing((write_state, "_merge", _filtered_merge))
dedupe_first = replacing((dedupe, "net", lambda net: lambda parts: dedupe.Net(change=parts[0], parts=tuple(parts))))
toast_not_filled = replacing((dedupe, "_filled", lambda _: lambda parts: parts[-1].row))

marker_without_previous = replacing(
    (
        write_state,
        "write_image",
        lambda make: (
            lambda image, below: (
                make(image, below=below)._replace(copy={}) if image.columns is None else make(image, below=below)
            )
        ),
    )
)
delete_touches_nothing = replacing(
    (
        batch,
        "write_state",
        lambda step: answering(step, lambda t: t._replace(changed=frozenset()) if t.row.columns is None else t),
    )
)


def _really_deleted(write: Any) -> Any:
    def changed(self: TableClient, what: Write) -> Any:
        if "_deleted" not in what.set:
            return write(self, what)
        below = AbsentOrBelow("_v", what.set["_v"])
        return self.delete(Delete(key=what.key, when=below))

    return changed


no_marker = replacing((TableClient, "write", _really_deleted))
ttl_kept = replacing((items, "_unset", lambda unset: lambda image: tuple(n for n in unset(image) if n != "ttl")))


no_filter = replacing((write_state, "_changed", lambda _: lambda _plan, _old, _row: None))
no_dead_letters = replacing(
    (batch, "_refuse", lambda _: lambda _round, _rejects, tally, _rejected: tally.update({"dead letters": 1}))
)

# versions


def _stamped_by_source(record: Any) -> Any:
    def changed(*args: Any) -> Any:
        made = record(*args)
        return replace(made, offset=made.timestamp)

    return changed


version_by_lsn = replacing((worker, "_record", _stamped_by_source))


class _OfRun:
    """Epochs that are the run's number."""

    def __init__(self, run: int) -> None:
        self._run = run

    def of(self, *_: Any) -> int:
        return self._run


def _in_run(write_rows: Any) -> Any:
    def changed(rows: Any, task: Any) -> Any:
        return write_rows(rows, replace(task, record_epochs=_OfRun(task.lease.generation)))

    return changed


epoch_of_the_run = replacing((rounds, "write_rows", _in_run))
