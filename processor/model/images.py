"""What a change makes of a row: the image to write, over what stands there.

A value that the source left out (unavailable) stays as it stands, and keeps the version that it dates from: so a change that is
delivered late, a dead letter, is known to be newer than some columns of a row that is newer as a whole.
"""

from collections.abc import Mapping
from typing import Any

from processor.model.change import UNAVAILABLE, Change
from processor.model.plan import EntityPlan
from statestore import keys
from statestore.items import Image, Row, next_fill, spell_version
from statestore.keys import Key


def version_of(change: Change) -> str:
    return spell_version(change.record.epoch, change.record.offset)


def image_of(change: Change, plan: EntityPlan, key: Key, seen: Row | None, forget: int) -> Image:
    """The image of a change that is newer than `seen`, the row that stands there if it was read. `forget`: when a delete marker
    may be forgotten, in seconds since 1970."""
    version, row = version_of(change), change.row
    if row is None:
        return Image(
            key=key,
            version=version,
            columns=None,
            more={},
            declared=plan.declared,
            slots=dict.fromkeys(plan.slots),
            edges=plan.named(None),
            forget=forget,
        )
    declared = tuple(row) == plan.declared
    columns: dict[str, Any] = dict(row) if declared else {name: row.get(name) for name in plan.declared}
    since = _filled_since(change) if change.since else {}
    if UNAVAILABLE in row.values():
        for name in [n for n, value in columns.items() if value is UNAVAILABLE]:
            columns[name], since[name] = _stood(seen, name)
    more: dict[str, Any] = {}
    if not declared and not row.keys() <= plan.entity.columns.keys():
        rest = {name: value for name, value in row.items() if name not in plan.entity.columns}
        before = seen.more if seen is not None else {}
        more = {name: before.get(name) if value is UNAVAILABLE else value for name, value in rest.items()}
    return Image(key, version, columns, more, plan.declared, _slots(plan, columns), since, plan.named(columns))


def filled_image(change: Change, plan: EntityPlan, seen: Row) -> Image | None:
    """The image that fills, in a newer row, the columns whose values are older than the change: those that later changes left
    out. None where there is no such column."""
    if change.row is None or seen.columns is None:
        return None
    known = {name: value for name, value in change.row.items() if value is not UNAVAILABLE and name in seen.since}
    brought = dict.fromkeys(known, version_of(change)) | _filled_since(change)
    fills = {n: v for n, v in known.items() if n in plan.entity.columns and seen.since[n] < brought[n]}
    if not fills:
        return None
    return Image(
        key=seen.key,
        version=next_fill(seen.version),
        columns=fills,
        more=seen.more,
        declared=plan.declared,
        slots=_slots(plan, {**seen.columns, **fills}),
        since={name: brought[name] for name in fills},
        edges=plan.named({**seen.columns, **fills}),
    )


def _filled_since(change: Change) -> dict[str, str]:
    return {name: spell_version(*at) for name, at in change.since.items()}


def _stood(seen: Row | None, name: str) -> tuple[Any, str]:
    """A column's value as it stands, and the version that it dates from: none where it was never known."""
    if seen is None or seen.columns is None or name not in seen.columns:
        return None, ""
    return seen.columns[name], seen.since.get(name, seen.version)


def _slots(plan: EntityPlan, columns: Mapping[str, Any]) -> dict[int, str | None]:
    return {k: keys.spell([*map(columns.get, held)]) for k, held in plan.slots.items()}
