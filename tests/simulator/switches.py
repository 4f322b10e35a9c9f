"""Takes protections of the product away, one at a time, for tests: each switch is a context manager."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import processor.batch as batch
import processor.job as job
import processor.model.ledger as ledger
import processor.steps.assemble as assemble
import processor.steps.dedupe as dedupe
import processor.steps.find_roots as find_roots
import processor.steps.publish as publish
import processor.steps.write_state as write_state
import processor.worker as worker
from processor.lockstep import Lockstep
from processor.model import open_changes
from processor.model.document import Match
from processor.model.open_changes import OpenChanges
from processor.model.places import SentPlaces
from processor.model.step import Paged, Raw
from statestore import items, keys
from statestore.store import Query
from tests.simulator.broker import Broker
from tests.simulator.leases import Registry
from tests.simulator.line import ProducerClient

Switch = Callable[[], Any]


def replacing(*places: tuple[Any, str, Callable[[Any], Any]]) -> Switch:
    """A switch that replaces attributes by what is made of them; makers are called anew for each run."""

    @contextmanager
    def switch() -> Iterator[None]:
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in places]
        for owner, name, make in places:
            setattr(owner, name, make(vars(owner)[name]))
        try:
            yield
        finally:
            for owner, name, original in before:
                setattr(owner, name, original)

    return switch


def always(value: Any) -> Callable[[Any], Any]:
    """A function that answers `value`, whatever it is asked."""
    return lambda _: lambda *_args, **_kw: value


def answering(step: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    """A step whose result is changed."""

    def changed(*args: Any, **kw: Any) -> Any:
        return change((yield from step(*args, **kw)))

    return changed


def asking(step: Callable[..., Any], ask: Callable[[Any], Any]) -> Callable[..., Any]:
    """A step whose requests are changed; one that becomes no request is its own answer."""

    def changed(*args: Any, **kw: Any) -> Any:
        running = step(*args, **kw)
        answers: Any = None
        while True:
            try:
                requests = next(running) if answers is None else running.send(answers)
            except StopIteration as end:
                return end.value
            asked = [ask(request) for request in requests]
            sent = iter((yield tuple(a for a in asked if not isinstance(a, list))))
            answers = tuple(a if isinstance(a, list) else next(sent) for a in asked)

    return changed


def _raw(request: Any) -> Any:
    """The request without open changes laid over the answer."""
    if isinstance(request, Paged):
        return request._replace(after=request.after or keys.Key("", ""))
    return Raw(request) if isinstance(request, Query) else request


def _shown(request: Any, believed: Callable[[Raw], bool]) -> Any:
    """The probe, or for one that is believed an answer that shows anything."""
    return [_Anything()] if isinstance(request, Raw) and believed(request) else request


class _Anything(dict[str, Any]):
    """An item that equals every key and is newer than every version."""

    def __missing__(self, _: str) -> Any:
        return _Any()


class _Any(str):
    def __eq__(self, _: object) -> bool:
        return True

    def __ge__(self, _: object) -> bool:
        return True

    __hash__ = str.__hash__


# open changes
no_overlay = replacing((Lockstep, "_open_rows", always(())))
own_batch_only = replacing((SentPlaces, "get", lambda _: lambda _self, _place, default: default))
own_task_only = replacing((worker, "places_of", always({})))
no_overlay_down = replacing((batch, "assemble", lambda step: asking(step, _raw)))
no_overlay_up = replacing((batch, "find_roots", lambda step: asking(step, _raw)))
former_forgotten = replacing(
    (batch, "entry_of", lambda make: lambda entity, row, left: make(entity, row, frozenset())),
    (open_changes, "_taken_over", lambda make: lambda new, current: make(new, current)._replace(former=frozenset())),
)


def _applied_only(open_: Any) -> Any:
    return lambda touches, *rest: open_([t for t in touches if t.how == "applied"], *rest)


refused_not_opened = replacing((batch, "_open", _applied_only))
newest_entry_only = replacing((open_changes, "_taken_over", lambda _: lambda new, _current: new))
no_reload = replacing((OpenChanges, "reloaded", always(None)))
reload_as_written = replacing(
    (OpenChanges, "reloaded", lambda reload: lambda self, items_, _rows, now: reload(self, items_, {}, now))
)
no_wait = replacing((job, "sleep", always(None)))
no_evidence = replacing((batch, "settle", lambda step: asking(step, lambda r: _shown(r, lambda _: True))))
evidence_in_one_slot = replacing(
    (batch, "settle", lambda step: asking(step, lambda r: _shown(r, lambda raw: raw.query.slot != "GSI_1")))
)
no_own_key = replacing(
    (batch, "settle", lambda step: asking(step, lambda r: _shown(r, lambda raw: keys.is_no_key(raw.query.value))))
)


def _any_version(step: Any) -> Any:
    def changed(entry: Any) -> Any:
        running = step(entry)
        answers: Any = None
        while True:
            try:
                requests = next(running) if answers is None else running.send(answers)
            except StopIteration as end:
                return end.value
            probes = bool(requests) and isinstance(requests[0], Raw)
            answers = yield requests
            if probes:
                answers = tuple([{**item, "_v": "~"} for item in found] for found in answers)

    return changed


evidence_of_any_version = replacing((batch, "settle", _any_version))


def _closed_at_once(settled: Any) -> Any:
    def changed(self: OpenChanges, outcomes: Any, now: float) -> None:
        settled(self, outcomes, now)
        for entry in [e for e in self.entries.values() if e.shown]:
            self._put(entry._replace(due=now))

    return changed


closed_at_once = replacing((OpenChanges, "settled", _closed_at_once))
no_settling = replacing(
    (worker, "settle_part", lambda part: lambda *args: (part(*args)[0], frozenset())),
)


def _remembered(step: Any) -> Any:
    """The roots of a change as they were found first."""
    found: dict[Any, Any] = {}

    def changed(touch: Any, plan: Any) -> Any:
        at = (touch.row.key, touch.row.version)
        if at not in found:
            found[at] = yield from step(touch, plan)
        return found[at]

    return changed


roots_settled = replacing((batch, "find_roots", _remembered))
settled_without_former = replacing(
    (
        batch,
        "settle",
        lambda step: answering(step, lambda probed: replace(probed, touch=probed.touch._replace(left=frozenset()))),
    )
)


def _unchecked_down(_: Any) -> Any:
    def rows(node: Any, _key: str, answer: Any) -> Any:
        found = answer if isinstance(answer, list) else [answer] if answer is not None else []
        for item in found:
            columns = items.read_columns(item)
            if keys.entity_of(item["PK"]) == node.join.entity and columns is not None:
                yield Match(columns=columns, more=items.read_more(item))

    return rows


def _unchecked_up(_: Any) -> Any:
    def rows(node: Any, _key: str, found: Any) -> Any:
        for item in found:
            columns = items.read_columns(item)
            if keys.entity_of(item["PK"]) == node.above and columns is not None:
                yield item["SK"], columns

    return rows


no_recheck_down = replacing((assemble, "_rows", _unchecked_down))
no_recheck_up = replacing((find_roots, "_holding", _unchecked_up))

# what a crash swallowed
old_parent_forgotten = replacing(
    (write_state, "_applied", lambda applied: lambda *args: applied(*args)._replace(left=frozenset()))
)
no_previous_keys = replacing(
    (write_state, "write_image", lambda make: lambda image, below: make(image, below=below)._replace(copy={}))
)
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

# deletes
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
ttl_kept = replacing((items, "_unset", lambda unset: lambda image: tuple(n for n in unset(image) if n != "ttl")))


# the publisher
def _yes(*_: Any) -> Any:
    yield from ()
    return True


suppress_anything = replacing((publish, "_acknowledged", lambda _: _yes))
any_attempt = replacing((ledger.Run, "kept", lambda _: lambda self, mark: mark.round <= self.through))
reserve_anyway = replacing((publish, "reserve", lambda make: lambda *args: make(*args)._replace(when=None)))
no_fence = replacing((Broker, "init", lambda _: lambda self, producer: self.epochs.setdefault(producer, 1)))


def _unleased(_: Any) -> Any:
    counts: dict[Any, Any] = {}

    def begin(_self: Any, lease: Any, slot: int, round_: int) -> Any:
        return next(counts.setdefault((lease.generation, slot, round_), itertools.count()))

    return begin


no_lease_check = replacing((Registry, "begin_attempt", _unleased))


def _deaf(flush: Any) -> Any:
    def changed(self: Any) -> None:
        try:
            flush(self)
        except Exception:
            return

    return changed


flush_unheard = replacing((ProducerClient, "flush", _deaf))

# the batch
no_filter = replacing((write_state, "_changed", lambda _: lambda _plan, _old, _row: None))
no_dead_letters = replacing(
    (batch, "_refuse", lambda _: lambda _round, _rejects, tally, _rejected: tally.update({"dead letters": 1}))
)
