"""The image that a change makes of a row: what the step writes over the row in the table.

A column that the source did not send (unavailable) keeps its value, and the version that the value dates from. So a
change that comes late, from a dead letter, can be newer than some columns of a row that is newer as a whole.

Reads a stored row by the declaration of its entity as it is now.

Wide declared columns that no product reads are in `_more` (`plan.row_image`). So is a column that is declared later, in older
items, as the source sent it. These functions convert a value of `_more` to the declared type. A value that does not fit, or
that has two meanings, is null and counted. A column that is declared no more is undeclared in all rows. Older items hold its
value in an attribute of its own, and the next write of the row moves it to `_more`, or replaces it. An entity with `keep:
declared` shows no undeclared column, and the next write of an older row drops those that it holds.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from processor.counts import Count
from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.step import RefusedChange
from processor.language.product.product import GroupEntity
from processor.values.entity import ColumnType
from processor.values.record import UNAVAILABLE, Change, Truncated, Value
from processor.values.values import DEBEZIUM, canonical_value
from statestore.items import (
    Image,
    Row,
    are_comparable,
    decode_version,
    encode_version,
    next_fill,
    read_columns,
    read_more,
    read_row,
)
from statestore.keys import Key
from statestore.store import Item
from statestore.values import WORTHWHILE

"""The count of values that were stored undeclared and do not fit the declared type."""


def declared_columns(item: Item, plan: EntityPlan, tally: Counter[str] | None = None) -> dict[str, Any] | None:
    """The declared columns of the row that an item holds; None for a delete marker. Counts in `tally` the values that do not
    fit."""
    columns = read_columns(item)
    if columns is None:
        return None
    for name in plan.dropped:
        columns.pop(name, None)
    if plan.entity.columns.keys() <= columns.keys():
        return columns
    return columns | _declared_later(columns, read_more(item), plan, tally)


def group_of_item(item: Item, plan: EntityPlan, group: GroupEntity) -> str | None:
    """The encoded key of the group of the row that an item holds; None for a delete marker, and for a row in no group."""
    columns = declared_columns(item, plan)
    return None if columns is None else group.key_of_row(columns)


def undeclared_columns(item: Item, plan: EntityPlan) -> dict[str, Any]:
    """The columns of the row that the entity does not declare, and keeps."""
    return held_undeclared(item, plan) if plan.entity.keeps_undeclared else {}


def held_undeclared(item: Item, plan: EntityPlan) -> dict[str, Any]:
    """The columns that the item holds and the entity does not declare, also those that the next write of the row drops."""
    more = read_more(item)
    if plan.dropped:
        more = _undeclared(read_columns(item), more, plan)
    return {name: value for name, value in more.items() if name not in plan.entity.columns} if more else more


def declared_row(item: Item, plan: EntityPlan) -> Row:
    """The row that an item holds. Its `more` has all values that no declared column has, and that the entity keeps: a write that
    keeps `more` loses none of them."""
    row = _declared_row(item, plan)
    if not row.more or plan.entity.keeps_undeclared:
        return row
    return row._replace(more={name: value for name, value in row.more.items() if name in plan.entity.columns})


def _declared_row(item: Item, plan: EntityPlan) -> Row:
    row = read_row(item)
    if row.columns is None:
        return row
    if plan.dropped:
        declared = {name: value for name, value in row.columns.items() if name not in plan.dropped}
        row = row._replace(columns=declared, more=_undeclared(row.columns, row.more, plan))
    if plan.entity.columns.keys() <= (row.columns or {}).keys():
        return row
    columns = row.columns or {}
    return row._replace(columns={**columns, **_declared_later(columns, row.more, plan, None)})


def _undeclared(columns: Mapping[str, Any] | None, more: Mapping[str, Any], plan: EntityPlan) -> dict[str, Any]:
    """The values outside declared columns: those of `_more`, and those of dropped columns."""
    held = {name: columns[name] for name in plan.dropped if name in columns} if columns else {}
    return {**held, **more}


def _declared_later(
    columns: Mapping[str, Any], more: Mapping[str, Any], plan: EntityPlan, tally: Counter[str] | None
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, column_type in plan.entity.columns.items():
        if name not in columns and name in more:
            try:
                found[name] = _converted(more[name], column_type)
            except ValueError:
                found[name] = None
                if tally is not None:
                    tally[Count.UNREADABLE] += 1
    return found


def _converted(value: Value, column_type: ColumnType) -> Value:
    """The canonical value. Raises ValueError for a value that does not fit, and for text of a number: the text may be Debezium's
    bytes, and the row does not keep the schema that would tell."""
    values = value if column_type.array and type(value) is list else [value]
    if column_type.name in ("int", "float", "decimal") and any(type(one) in (str, dict) for one in values):
        raise ValueError("text of a number")
    return canonical_value(value, column_type, DEBEZIUM)


def version_of(change: Change | Truncated) -> str:
    """The version of a row that this change wrote, or that this truncate deleted. A repair from the source comes directly behind
    the version that it repairs: every later record of the stream is newer."""
    if isinstance(change, Change) and change.seen:
        return next_fill(change.seen)
    return encode_version(change.record.epoch, change.record.partition, change.record.offset)


def refuse_stray(change: Change, seen: Row | None) -> RefusedChange | None:
    """Refuses a change that comes from another partition than the row in the table, in the same epoch: their offsets have no
    common order. None for every other change."""
    if seen is None or are_comparable(seen.version, version_of(change)):
        return None
    _, partition, _ = decode_version(seen.version)
    return RefusedChange(
        change=change,
        reason=(
            f"the row has changes from partition {partition} too, so their order is unknown: let the producer send all changes "
            f"of a key to one partition, pause it, run `statestore epoch {change.record.topic}`, and let the source send the row "
            "again"
        ),
        code="other-partition",
    )


def image_of(change: Change, plan: EntityPlan, key: Key, seen: Row | None, expires_at: int) -> Image:
    """The image of a change that is newer than `seen`, the row in the table if the step read it. `expires_at`: when
    DynamoDB may drop a delete marker, in seconds since 1970."""
    version, row = version_of(change), change.row
    if row is None:
        return deleted_image(plan, key, version, expires_at)
    declared = tuple(row) == plan.declared
    columns: dict[str, Any] = dict(row) if declared else {name: row.get(name) for name in plan.declared}
    since = _filled_since(change) if change.since else {}
    if UNAVAILABLE in row.values():
        for name in [n for n, value in columns.items() if value is UNAVAILABLE]:
            columns[name], since[name] = _stored_value(seen, name)
    more: dict[str, Any] = {}
    if not declared and plan.entity.keeps_undeclared and not row.keys() <= plan.entity.columns.keys():
        undeclared = {name: value for name, value in row.items() if name not in plan.entity.columns}
        before = seen.more if seen is not None else {}
        more = {name: before.get(name) if value is UNAVAILABLE else value for name, value in undeclared.items()}
    slots, edges = plan.slots_of(columns), plan.edges_of(columns)
    names = plan.names_of(key, columns) if plan.orders else {}
    totals = plan.totals_of(columns, version) if plan.count else None
    packed = _packed(columns, since, plan)
    if packed:
        columns, more = {name: value for name, value in columns.items() if name not in packed}, {**more, **packed}
    return Image(
        key,
        version,
        columns,
        more,
        plan.declared,
        slots,
        since,
        edges,
        layout=plan.layout,
        dropped=(*plan.dropped, *packed),
        indexed=plan.indexed,
        names=names,
        totals=totals,
    )


def _packed(columns: Mapping[str, Any], since: Mapping[str, str], plan: EntityPlan) -> dict[str, Any]:
    """The columns that no product reads, where they are wide enough to be stored together with the undeclared ones. A value that
    is older than the row stays alone, with its version."""
    if not plan.unread:
        return {}
    packed = {name: columns[name] for name in plan.unread if name not in since}
    wide = sum(len(value) for value in packed.values() if type(value) in (str, list, dict))
    return packed if packed and wide >= WORTHWHILE else {}


def deleted_image(plan: EntityPlan, key: Key, version: str, expires_at: int) -> Image:
    """The image of a delete marker with this version."""
    return Image(
        key=key,
        version=version,
        columns=None,
        more={},
        declared=plan.declared,
        slots=dict.fromkeys(plan.slots),
        edges=plan.edges_of(None),
        forget=expires_at,
        layout=plan.layout,
        dropped=plan.dropped,
        indexed=plan.indexed,
        totals=plan.totals_of(None, version),
    )


def filled_image(change: Change, plan: EntityPlan, seen: Row) -> Image | None:
    """The image that fills columns of a newer row: those whose values are older than the change, because later changes
    did not send them. Where no column is older, the image of `layout_image`, or None."""
    if change.row is None or seen.columns is None:
        return layout_image(plan, seen)
    known = {name: value for name, value in change.row.items() if value is not UNAVAILABLE and name in seen.since}
    brought = dict.fromkeys(known, version_of(change)) | _filled_since(change)
    fills = {n: v for n, v in known.items() if n in plan.entity.columns and seen.since[n] < brought[n]}
    return _filled(plan, seen, fills, {name: brought[name] for name in fills}) if fills else layout_image(plan, seen)


def layout_image(plan: EntityPlan, seen: Row) -> Image | None:
    """The image that fills the slots and edges of a row that follows an older layout than the plan's, or shows fewer columns in
    indexes than products read there. None for other rows, and for delete markers, which no join finds. The layout keeps a task of
    an older plan from undoing this; of one layout, the row shows the columns of both plans."""
    if seen.columns is None:
        return _uncounted(plan, seen)
    shows_all = seen.indexed is None or (plan.indexed is not None and plan.indexed <= seen.indexed)
    is_filled = seen.layout > plan.layout or (seen.layout == plan.layout and shows_all and is_counted(plan, seen))
    return None if is_filled else _filled(plan, seen, {}, {})


def is_counted(plan: EntityPlan, seen: Row) -> bool:
    """Whether totals have of the row what it has now. A task of a plan that counts no rows leaves alone what they had before."""
    if not plan.count:
        return True
    held = seen.totals
    return held is not None and (held.number > plan.count or (held.number, held.version) == (plan.count, seen.version))


def _uncounted(plan: EntityPlan, seen: Row) -> Image | None:
    """The image of a delete marker that no total has any more; None where that is so already."""
    held = seen.totals
    if held is None or held.number != plan.count or not held.of:
        return None
    return deleted_image(plan, seen.key, next_fill(seen.version), seen.forget)._replace(replayed=seen.replayed)


def _filled(plan: EntityPlan, seen: Row, fills: Mapping[str, Any], since: Mapping[str, str]) -> Image:
    """The image of a row that gets some values, and the slots and edges of the plan. The indexes go on showing what they
    show, and all that the plan reads there: null for a column that the source never sent."""
    columns = {**(seen.columns or {}), **fills}
    indexed = None if plan.indexed is None or seen.indexed is None else plan.indexed | seen.indexed
    moved = [name for name in dict.fromkeys((*columns, *plan.declared)) if indexed is None or name in indexed]
    dates = dict(seen.since) | {name: "" for name in moved if name not in columns} | dict(since)
    return Image(
        key=seen.key,
        version=next_fill(seen.version),
        columns={**{name: columns.get(name) for name in moved}, **fills},
        more=seen.more,
        declared=plan.declared,
        slots=plan.slots_of(columns),
        since=dates,
        edges=plan.edges_of(columns),
        layout=plan.layout,
        dropped=plan.dropped,
        indexed=indexed if plan.slots else frozenset(),
        replayed=seen.replayed,
        names=plan.names_of(seen.key, columns) if plan.orders else {},
        totals=plan.totals_of(columns, next_fill(seen.version)),
    )


def _filled_since(change: Change) -> dict[str, str]:
    partition = change.record.partition
    return {name: encode_version(epoch, partition, offset) for name, (epoch, offset) in change.since.items()}


def _stored_value(seen: Row | None, name: str) -> tuple[Any, str]:
    """A column's value in the table, and the version that it dates from; empty where the source never sent the column."""
    if seen is None or seen.columns is None or name not in seen.columns:
        return None, ""
    return seen.columns[name], seen.since.get(name, seen.version)
