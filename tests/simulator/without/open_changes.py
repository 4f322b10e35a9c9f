"""Switches for the protections against late indexes: overlay, evidence, settling, checks (rule 5 of docs/architecture.md)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import processor.engine.protocol.assemble as assemble
import processor.engine.protocol.find_roots as find_roots
import processor.engine.protocol.settle as settle
import processor.engine.rounds.driver as driver
import processor.engine.rounds.follow_up_stages as follow_up_stages
import processor.engine.rounds.publish_stage as publish_stage
import processor.engine.rounds.step_runner as step_runner
import processor.engine.rounds.write_stage as write_stage
import processor.job.run.worker as worker
from processor.engine.plan.plan import Plan
from processor.engine.plan.step import Lookup
from processor.engine.protocol.find_roots import ShownRows
from processor.engine.protocol.open_changes import OpenChanges
from processor.engine.protocol.segments import SegmentGroup, SettleOutcome
from processor.engine.rounds.step_runner import StepRunner
from processor.language.product.document import Match
from statestore import items, keys
from statestore.store import Done, Page
from tests.simulator.actor import TableClient
from tests.simulator.doubles import WorldClock
from tests.simulator.without.switch import Switch, always, combine, replacing, with_requests, with_result


def _without_overlay(request: Any) -> Any:
    """The request, with an answer that has no overlay."""
    return request._replace(overlay=False) if isinstance(request, Lookup) else request


no_overlay = replacing((StepRunner, "_open_rows", always({})))
own_batch_only = replacing((worker, "_overlays", always(())))
newest_group_only = replacing((worker, "_overlays", lambda overlays: lambda task: overlays(task)[-1:]))
own_task_only = replacing((worker, "SegmentGroup", always(SegmentGroup(()))))
no_overlay_in_assemble = replacing((publish_stage, "assemble_tree", lambda step: with_requests(step, _without_overlay)))
no_overlay_in_find_roots = replacing(
    (write_stage, "find_roots", lambda step: with_requests(step, _without_overlay)),
    (follow_up_stages, "find_roots", lambda step: with_requests(step, _without_overlay)),
)


def _shown_without_overlay(_: Any) -> Any:
    def changed(self: StepRunner, key: Any) -> Any:
        row = self.shown.rows.get(key) if self.shown else None
        return row and row.item

    return changed


shown_roots_although_open = replacing((StepRunner, "_shown_row", _shown_without_overlay))
no_overlay_over_shown_answers = replacing((StepRunner, "_open_rows_lacking", always(())))
roots_with_any_columns = replacing((Plan, "shows_root", always(True)))
consistent_stores_hand_over = replacing(
    (write_stage, "shown_rows", lambda _: lambda _store: ShownRows()),
    (follow_up_stages, "shown_rows", lambda _: lambda _store: ShownRows()),
)


def _first_labels(found: Any) -> Any:
    """The answer of a query that applies the join's limit in the index."""
    return sorted(found, key=lambda item: item["SK"])[:2] if all("#label" in item["PK"] for item in found) else found


limit_first = replacing(
    (
        step_runner,
        "apply_overlay",
        lambda lay: lambda page, rows: lay(page._replace(items=_first_labels(page.items)), rows),
    )
)


def _without_former_keys(left: Any) -> Any:
    def changed(self: SettleOutcome) -> Any:
        change = left.fget(self)
        return change and change._replace(former=frozenset())

    return property(changed)


left_by_newest_keys = replacing((SettleOutcome, "left", _without_former_keys))
no_former_keys = combine(
    replacing((write_stage, "open_change", lambda make: lambda entity, row, _former: make(entity, row, frozenset()))),
    left_by_newest_keys,
)


def _open_applied(open_: Any) -> Any:
    return lambda touches, *rest: open_([t for t in touches if t.outcome == "applied"], *rest)


refused_not_opened = replacing((write_stage, "open_touched", _open_applied))


def _oldest_version(rows: Any) -> Any:
    def changed(self: StepRunner, lookup: Any, query: Any) -> Any:
        found = rows(self, lookup, query)
        opened = self.opened.get((query.slot, query.value), ())
        return {key: min(row for at, row in opened if at == key) for key in found}

    return changed


oldest_version_counts = replacing((StepRunner, "_open_rows", _oldest_version))


def _write_nothing_durable(write: Any) -> Any:
    return lambda self, request: Done(None) if request.key.pk.startswith("OPEN#") else write(self, request)


only_in_memory = replacing((TableClient, "write", _write_nothing_durable))
no_reload = replacing((OpenChanges, "reload", always(None)))
# no history ends wrong with this switch: docs/correctness.md, "Not in the table"
reload_as_written = replacing(
    (OpenChanges, "reload", lambda reload: lambda self, items_, _read, now: reload(self, items_, lambda _: {}, now))
)
no_wait = replacing((WorldClock, "sleep", always(None)))


def _evidence_without_asking(selects: Callable[[Any], bool]) -> Switch:
    """Evidence that counts these probes as shown, without an answer."""
    return replacing((settle, "shows", lambda shows: lambda probe, *answer: selects(probe) or shows(probe, *answer)))


no_evidence = _evidence_without_asking(lambda _: True)
evidence_in_one_slot = _evidence_without_asking(lambda query: query.slot != "GSI_1")
evidence_down_only = _evidence_without_asking(lambda query: query.row.pk == "TABLE#user")
no_own_key = _evidence_without_asking(lambda query: keys.is_no_key(query.value))


def _see_any_version(sights: Any) -> Any:
    return lambda self: sights(replace(self, seen={at: "~" if version else "" for at, version in self.seen.items()}))


evidence_of_any_version = replacing(
    (settle, "shows", lambda _: lambda _probe, page, _version: bool(page.items)),
    (StepRunner, "sights", _see_any_version),
)


def _see_everywhere(see: Any) -> Any:
    return lambda self, sights, now: see(self, [s._replace(segment=name) for s in sights for name in self.held], now)


evidence_for_all_segments = replacing((OpenChanges, "see", _see_everywhere))


def _forget_left(record: Any) -> Any:
    return lambda self, settled, now: record(self, [one._replace(left=None) for one in settled], now)


nothing_left = replacing((OpenChanges, "record", _forget_left))


def _drop_all_items(drop: Any) -> Any:
    def changed(self: OpenChanges, names: Any) -> Any:
        items = {item for name in names for item in self.held[name].items}
        return sorted({*drop(self, names), *items})

    return changed


items_go_with_their_segment = replacing((OpenChanges, "_drop", _drop_all_items))


def _closed_at_once(take: Any) -> Any:
    def changed(self: OpenChanges, *args: Any) -> None:
        take(self, *args)
        for held in self.held.values():
            if held.shown:
                held.due = args[-1]

    return changed


closed_at_once = replacing((OpenChanges, "record", _closed_at_once), (OpenChanges, "confirm", _closed_at_once))
closed_on_time = combine(no_evidence, closed_at_once)
no_settling = replacing(
    (driver, "settle_stage", lambda stage: lambda *args: replace(stage(*args), roots={}, fan_outs=())),
)


def _first_roots(step: Any, found: dict[Any, Any]) -> Any:
    """find_roots, but a change keeps the roots that it had at first."""

    def changed(touch: Any, *args: Any) -> Any:
        at = (touch.row.key, touch.row.version)
        if at not in found:
            found[at] = yield from step(touch, *args)
        return found[at]

    return changed


@contextmanager
def settle_first_roots() -> Iterator[None]:
    """Settling uses the roots that the write stage found."""
    found: dict[Any, Any] = {}

    def remember(step: Any) -> Any:
        return _first_roots(step, found)

    with replacing((write_stage, "find_roots", remember), (follow_up_stages, "find_roots", remember))():
        yield


settle_without_former_keys = replacing(
    (
        follow_up_stages,
        "settle",
        lambda step: with_result(
            step,
            lambda settled: replace(settled, touch=settled.touch and settled.touch._replace(former_keys=frozenset())),
        ),
    )
)


def _all_rows(_: Any) -> Any:
    def rows(node: Any, _entity: Any, _key: str, answer: Any, _tally: Any) -> Any:
        found = answer.items if isinstance(answer, Page) else [answer] if answer is not None else []
        for item in found:
            columns = items.read_columns(item)
            if keys.entity_of(item["PK"]) == node.join.entity and columns is not None:
                yield Match(columns=columns, more=items.read_more(item))

    return rows


def _all_parents(_: Any) -> Any:
    def rows(_climb: Any, _tree: Any, node: Any, _key: str, found: Any, *_: Any) -> Any:
        for item in found:
            columns = items.read_columns(item)
            if keys.entity_of(item["PK"]) == node.above and columns is not None:
                yield item["SK"], columns

    return rows


no_check_in_assemble = replacing((assemble, "_rows", _all_rows))
no_check_in_find_roots = replacing((find_roots, "_holding", _all_parents))
