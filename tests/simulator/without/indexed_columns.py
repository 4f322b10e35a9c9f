"""Switches for the part of a row that the indexes show, and for the version of its last change (rules 3, 5d and 10)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import processor.engine.plan.planning as planning
import processor.engine.protocol.replays as replays
import processor.engine.protocol.settle as settle
import processor.engine.protocol.write_state as write_state
import processor.engine.rounds.write_stage as write_stage
import tests.simulator.world as world
from processor.engine.protocol import walks
from processor.engine.protocol.segments import OpenChange, SegmentGroup
from processor.engine.rounds.round_runner import RoundRunner
from statestore.items import Row, key_of_item, read_columns
from statestore.keys import Key
from tests.simulator.without.switch import always, replacing

version_of_the_row = replacing(
    (Row, "version_in_indexes", lambda _: lambda row: row.version),
    (world, "MAX_REQUESTS", lambda _: 2_000),
)
"""An update that no index shows moves the version for which settling waits. A run that waits for ever ends soon."""


def _keep_version(merge: Any) -> Any:
    def changed(image: Any, seen: Any, **kw: Any) -> Any:
        write = merge(image, seen, **kw)
        return write if seen is None else write._replace(set=write.set | {"_indexed_v": seen.version_in_indexes()})

    return changed


def _row_of_kept_version(written: Any) -> Any:
    def changed(image: Any, old: Any) -> Any:
        row = written(image, old)
        return row if old is None else row._replace(indexed_version=old.version_in_indexes())

    return changed


version_stays = replacing(
    (write_state, "merge_image", _keep_version), (write_state, "written_row", _row_of_kept_version)
)
"""A change that the indexes show leaves their version as it was, where the task has read the row."""


replay_keeps_version = replacing(
    (replays, "merge_image", _keep_version), (replays, "written_row", _row_of_kept_version)
)
"""A replay leaves the version in the indexes as it was."""


def _without_version(write_image: Any) -> Any:
    def changed(image: Any, **kw: Any) -> Any:
        write = write_image(image, **kw)
        return write._replace(set={name: value for name, value in write.set.items() if name != "_indexed_v"})

    return changed


truncate_keeps_version = replacing(
    (walks, "write_image", _without_version), (walks, "written_row", _row_of_kept_version)
)
"""The marker of a truncate leaves the version in the indexes as it was."""


def _without_dates(keep: Any) -> Any:
    def changed(image: Any, seen: Any) -> Any:
        known = {name: date for name, date in image.since.items() if name in seen.since}
        return image._replace(indexed_version=keep(image._replace(since=known), seen).indexed_version)

    return changed


values_without_dates = replacing((write_state, "keep_indexed", _without_dates))
"""An update leaves alone what the indexes show if the values are the same, of whatever date."""


@contextmanager
def decided_before_a_refusal() -> Iterator[None]:
    """A write that the store refuses continues with what the first read said of the indexes."""
    first: dict[tuple[Key, str], str] = {}

    def as_read_first(merge: Any) -> Any:
        def changed(image: Any, seen: Any, **kw: Any) -> Any:
            kept = first.setdefault((image.key, image.version), image.indexed_version)
            return merge(image._replace(indexed_version=kept) if seen else image, seen, **kw)

        return changed

    def row_as_read_first(written: Any) -> Any:
        def changed(image: Any, old: Any) -> Any:
            return written(image._replace(indexed_version=first.get((image.key, image.version), "")), old)

        return changed

    with replacing((write_state, "merge_image", as_read_first), (write_state, "written_row", row_as_read_first))():
        yield


@contextmanager
def columns_of_live_products() -> Iterator[None]:
    """A write shows in the indexes what live products read there, and not what a waiting one will read."""
    live: dict[tuple[Any, ...], Any] = {}

    def note(compile_plan: Any) -> Any:
        def changed(*args: Any, **kw: Any) -> Any:
            plan, alone = compile_plan(*args, **kw), compile_plan(*args, **{**kw, "waiting": ()})
            for name, entity in plan.entities.items():
                live[name, entity.layout, entity.indexed] = alone.entities[name].indexed
            return plan

        return changed

    def show_less(image_of: Any) -> Any:
        def changed(change: Any, plan: Any, *args: Any) -> Any:
            image = image_of(change, plan, *args)
            return image._replace(indexed=live.get((plan.name, plan.layout, plan.indexed), image.indexed))

        return changed

    with replacing((planning, "compile_plan", note), (write_state, "image_of", show_less))():
        yield


@contextmanager
def evidence_by_content() -> Iterator[None]:
    """An index shows a change if it shows the same columns, of whatever version."""
    written: dict[Key, Any] = {}

    def remember(make: Any) -> Any:
        def changed(entity: str, row: Row, former_keys: Any) -> Any:
            written[row.key] = row.columns
            return make(entity, row, former_keys)

        return changed

    def same(shows: Any) -> Any:
        def changed(probe: Any, page: Any, version: str) -> bool:
            now = written.get(probe.row) or {}
            shown = [read_columns(item) or {} for item in page.items if key_of_item(item) == probe.row]
            return shows(probe, page, version) or any(
                columns and all(now.get(name) == value for name, value in columns.items()) for columns in shown
            )

        return changed

    with replacing((write_stage, "open_change", remember), (settle, "shows", same))():
        yield


columns_not_filled = replacing(
    (
        walks,
        "layout_image",
        lambda make: lambda plan, seen: make(plan, seen) if seen.layout < plan.layout else None,
    )
)
"""A fill leaves rows alone that show too few columns in the indexes."""

left_while_open = replacing((SegmentGroup, "is_open", always(False)))
"""A deleted row leaves the indexes, also one that an index has not shown yet."""


def _all_proven(next_round: Any) -> Any:
    def changed(self: RoundRunner, *args: Any) -> Any:
        round_ = next_round(self, *args)
        return replace(round_, remembered=replace(round_.remembered, proven=frozenset(round_.plan.entities)))

    return changed


left_during_a_fill = replacing((RoundRunner, "next_round", _all_proven))
"""A deleted row leaves the indexes, also one that an index has not shown since a fill wrote it."""

gone_at_once = replacing((OpenChange, "gone", lambda _: property(lambda _change: ())))
"""The change of a row that leaves the indexes closes without evidence."""
