"""Switches for the part of a row that the indexes show, and for the version of its last change (rules 3, 5d and 10)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import processor.rounds.write_stage as write_stage
import processor.steps.fill as fill
import processor.steps.settle as settle
import processor.steps.write_state as write_state
import tests.simulator.world as world
from statestore.item_attributes import key_of_item
from statestore.items import Row, read_columns
from statestore.keys import Key
from tests.simulator.without.switch import replacing

version_of_the_row = replacing(
    (Row, "version_in_indexes", lambda _: lambda row: row.version),
    (world, "MAX_REQUESTS", lambda _: 2_000),
)
"""An update that no index shows moves the version for which settling waits. A run that waits for ever ends soon."""


def _keep_version(merge: Any) -> Any:
    def changed(image: Any, seen: Any, *, keep_from: str) -> Any:
        write = merge(image, seen, keep_from=keep_from)
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
        fill,
        "layout_image",
        lambda make: lambda plan, seen: make(plan, seen) if seen.layout < plan.layout else None,
    )
)
"""A fill leaves rows alone that show too few columns in the indexes."""
