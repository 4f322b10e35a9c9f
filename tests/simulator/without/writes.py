"""Switches for the protections of writes against crashes, replays and zombies (docs/architecture.md: rules 2, 3, 4, 6, 8, 9)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import processor.engine.protocol.decode as decode
import processor.engine.protocol.write_state as write_state
import processor.engine.rounds.write_stage as write_stage
import processor.job.run.job as job
import processor.job.run.worker as worker
from statestore import writes
from statestore.store import AbsentOrBelow, Delete, Done, Equals, Write
from tests.simulator.actor import TableClient
from tests.simulator.without.switch import replacing, with_result

former_parent_forgotten = replacing(
    (write_state._Writing, "applied", lambda applied: lambda *args: applied(*args)._replace(former_keys=frozenset()))
)
no_previous_keys = replacing(
    (write_state, "write_image", lambda make: lambda *args, **kw: make(*args, **kw)._replace(copy={}))
)


def _keep_previous_keys_later(step: Any) -> Any:
    """A second write keeps the previous keys, from the answer of the first write."""

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


previous_in_second_write = replacing((write_stage, "write_state", _keep_previous_keys_later))
pending_keys_dropped = replacing(
    (write_state, "merge_image", lambda make: lambda image, seen, published: make(image, seen, published=bool))
)
own_version_as_start = replacing(
    (write_state, "write_image", lambda make: lambda image, below, since: make(image, below=image.version))
)


def _nothing_changed_if(outcome: str) -> Callable[[Any], Any]:
    def change(touch: Any) -> Any:
        return touch._replace(changed=frozenset()) if getattr(touch, "outcome", None) == outcome else touch

    return lambda step: with_result(step, change)


replayed_finds_no_roots = replacing((write_stage, "write_state", _nothing_changed_if("replayed")))
superseded_finds_no_roots = replacing((write_stage, "write_state", _nothing_changed_if("superseded")))


def _filtered_merge(merge: Any) -> Any:
    def changed(writing: Any, seen: Any, *, sure: bool) -> Any:
        touch = yield from merge(writing, seen, sure=sure)
        if getattr(touch, "outcome", None) == "applied" and seen is not None:
            return touch._replace(changed=write_state._changed(writing.plan, seen, touch.row))
        return touch

    return changed


filter_after_merge = replacing((write_state._Writing, "merge", _filtered_merge))
unconditional_merge = replacing(
    (write_state, "merge_image", lambda make: lambda *args, **kw: make(*args, **kw)._replace(when=None))
)
dedupe_first = replacing(
    (decode, "net_change", lambda net: lambda changes: decode.NetChange(changes[0], tuple(changes)))
)
toast_not_filled = replacing((decode, "_filled", lambda _: lambda changes: changes[-1].row))

marker_without_previous = replacing(
    (
        write_state,
        "write_image",
        lambda make: (
            lambda image, **kw: make(image, **kw)._replace(copy={}) if image.columns is None else make(image, **kw)
        ),
    )
)
delete_finds_no_roots = replacing(
    (
        write_stage,
        "write_state",
        lambda step: with_result(step, lambda t: t._replace(changed=frozenset()) if t.row.columns is None else t),
    )
)


def _really_deleted(write: Any) -> Any:
    def changed(self: TableClient, request: Write) -> Any:
        if "_deleted" not in request.set:
            return write(self, request)
        below = AbsentOrBelow("_v", request.set["_v"])
        return self.delete(Delete(key=request.key, when=below))

    return changed


no_marker = replacing((TableClient, "write", _really_deleted))
ttl_kept = replacing((writes, "_unset", lambda unset: lambda image: tuple(n for n in unset(image) if n != "ttl")))


no_filter = replacing((write_state, "_changed", lambda _: lambda _plan, _old, _row: None))
no_dead_letters = replacing(
    (write_stage._Task, "_reject", lambda _: lambda self, *_args, **_kw: self.tally.update({"dead letters": 1}))
)

# versions


def _stamped_by_source(record: Any) -> Any:
    def changed(*args: Any) -> Any:
        made = record(*args)
        return replace(made, offset=made.timestamp)

    return changed


version_by_lsn = replacing((worker, "_record", _stamped_by_source))


class _RunEpochs:
    """Epochs: the number of the run for every record."""

    def __init__(self, run: int) -> None:
        self._run = run

    def of(self, *_: Any) -> int:
        return self._run


def _in_run(hand_over: Any) -> Any:
    def changed(elements: Any, stage: Any, read: Any, task: Any) -> Any:
        if isinstance(read, partial):  # reads records, with their epochs
            read = partial(read.func, epochs=_RunEpochs(task.lease.generation))
        return hand_over(elements, stage, read, task)

    return changed


epoch_of_the_run = replacing((job, "hand_over", _in_run))
