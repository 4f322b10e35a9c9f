"""Without parts of what makes late indexes harmless: overlay, evidence, settling, checks (rule 5)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import processor.batch as batch
import processor.job as job
import processor.lockstep as lockstep
import processor.steps.assemble as assemble
import processor.steps.find_roots as find_roots
import processor.worker as worker
from processor.lockstep import Lockstep
from processor.model import open_changes
from processor.model.document import Match
from processor.model.fan_out import Found
from processor.model.open_changes import OpenChanges
from processor.model.places import SentPlaces
from processor.model.step import Paged, Raw
from statestore import items, keys
from statestore.store import Done, Query
from tests.simulator.line import TableClient
from tests.simulator.without.switch import Answer, always, answering, asking, replacing, together


def _raw(request: Any) -> Any:
    """The request without open changes laid over the answer."""
    if isinstance(request, Paged):
        return request._replace(after=request.after or keys.Key("", ""))
    return Raw(request) if isinstance(request, Query) else request


def _shown(request: Any, believed: Callable[[Raw], bool]) -> Any:
    """The probe, or for one that is believed an answer that shows anything."""
    return Answer([_Anything()]) if isinstance(request, Raw) and believed(request) else request


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


no_overlay = replacing((Lockstep, "_open_rows", always(())))
own_batch_only = replacing((SentPlaces, "get", lambda _: lambda _self, _place, default: default))
own_task_only = replacing((worker, "places_of", always({})))
no_overlay_down = replacing((batch, "assemble", lambda step: asking(step, _raw)))
no_overlay_up = replacing((batch, "find_roots", lambda step: asking(step, _raw)))


def _first_labels(found: Any) -> Any:
    """An answer of the index, cut as a query with the join's limit would have it."""
    return sorted(found, key=lambda item: item["SK"])[:2] if all("#label" in item["PK"] for item in found) else found


limit_first = replacing((lockstep, "laid_over", lambda lay: lambda found, rows: lay(_first_labels(found), rows)))
former_forgotten = replacing(
    (batch, "entry_of", lambda make: lambda entity, row, left: make(entity, row, frozenset())),
    (open_changes, "_taken_over", lambda make: lambda new, current: make(new, current)._replace(former=frozenset())),
)


def _applied_only(open_: Any) -> Any:
    return lambda touches, *rest: open_([t for t in touches if t.how == "applied"], *rest)


refused_not_opened = replacing((batch, "_open", _applied_only))
newest_entry_only = replacing((open_changes, "_taken_over", lambda _: lambda new, _current: new))


def _open_nowhere(write: Any) -> Any:
    return lambda self, what: Done(None) if what.key.pk == open_changes.PARTITION else write(self, what)


kept_in_memory = replacing((TableClient, "write", _open_nowhere))
no_reload = replacing((OpenChanges, "reloaded", always(None)))
reload_as_written = replacing(
    (OpenChanges, "reloaded", lambda reload: lambda self, items_, _rows, now: reload(self, items_, {}, now))
)
no_wait = replacing((job, "sleep", always(None)))
no_evidence = replacing((batch, "settle", lambda step: asking(step, lambda r: _shown(r, lambda _: True))))
evidence_in_one_slot = replacing(
    (batch, "settle", lambda step: asking(step, lambda r: _shown(r, lambda raw: raw.query.slot != "GSI_1")))
)
evidence_down_only = replacing(
    (batch, "settle", lambda step: asking(step, lambda r: _shown(r, lambda raw: raw.query.pk == "TABLE#user")))
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
closed_on_time = together(no_evidence, closed_at_once)
no_settling = replacing(
    (worker, "settle_part", lambda part: lambda *args: (part(*args)[0], Found(frozenset(), ()))),
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
