"""Switches for what settling repeats: the roots of changes that the overlay of this run did not cover (rule 5d)."""

from dataclasses import replace
from typing import Any

import processor.engine.protocol.settle as settle
import processor.engine.rounds.follow_up_stages as follow_up_stages
from processor.engine.protocol.open_changes import OpenChanges
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.step_runner import StepRunner
from statestore.items import version_shown
from statestore.store import Query
from tests.simulator.without.switch import replacing, with_result


def _take_as_covered(changes: OpenChanges, segments: Any) -> None:
    """Counts the changes of these segments as changes that the overlay of this run has covered."""
    for name in segments & changes.held.keys():
        changes.held[name].again = False


def _reload_covers(reload: Any) -> Any:
    def changed(self: OpenChanges, items: Any, read: Any, now: float) -> None:
        reload(self, items, read, now)
        _take_as_covered(self, self.held.keys())

    return changed


not_after_a_start = replacing((OpenChanges, "reload", _reload_covers))


def _replay_covers(replay: Any) -> Any:
    def changed(self: Driver, letters: Any) -> Any:
        reports = replay(self, letters)
        _take_as_covered(self.progress.open_changes, {item.sk for r in reports for item, _ in r.opened})
        return reports

    return changed


not_after_a_replay = replacing((Driver, "replay", _replay_covers))


def _only_shown(settled: Any) -> Any:
    change = settled.outcome.change
    return settled if settled.outcome.shown or change.again else replace(settled, touch=None)


def _record_covers(record: Any) -> Any:
    def changed(self: OpenChanges, settled: Any, now: float) -> None:
        covered = {one.left.name for one in settled if one.left and not self.held[one.segment].again}
        record(self, settled, now)
        _take_as_covered(self, covered)

    return changed


# no history ends wrong with this switch: docs/correctness.md, "Not in the table"
not_without_evidence = replacing(
    (follow_up_stages, "settle", lambda step: with_result(step, _only_shown)),
    (OpenChanges, "record", _record_covers),
)


def _see_overlay(lacking: Any) -> Any:
    def changed(self: StepRunner, lookup: Any, page: Any) -> Any:
        if isinstance(lookup.source, Query):
            for key, row in self._open_rows(lookup, lookup.source).items():
                self.seen[key, lookup.source.slot] = row.version
        return lacking(self, lookup, page)

    return changed


evidence_with_overlay = replacing((StepRunner, "_lacking_rows", _see_overlay))


def _any_version_will_do(lacking: Any) -> Any:
    def changed(self: StepRunner, lookup: Any, page: Any) -> Any:
        rows = lacking(self, lookup, page)
        if not isinstance(lookup.source, Query):
            return rows
        shown = {(item["PK"], item["SK"]) for item in page.items if version_shown(item)}
        return [key for key in rows if key not in shown]

    return changed


overlay_of_missing_rows_only = replacing((StepRunner, "_lacking_rows", _any_version_will_do))


def _asked_once(lacking: Any) -> Any:
    def changed(change: Any, places: Any) -> Any:
        places = list(places)
        if all(place in change.slots for place in places):
            return (yield from lacking(change, places))
        return dict(places)  # as if no answer showed the row there

    return changed


only_under_the_key_of_the_change = replacing((settle, "_lacking", _asked_once))

slots_that_went = replacing(
    (follow_up_stages, "settle", lambda step: lambda change, *_: step(change, range(1, 21))),
)
"""Settling asks the slots that an entity has given up, too."""
