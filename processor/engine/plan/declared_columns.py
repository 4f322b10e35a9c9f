"""Reads a stored row by the declaration of its entity as it is now.

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
from processor.values.entity import ColumnType
from processor.values.record import Value
from processor.values.values import DEBEZIUM, canonical_value
from statestore.items import Row, read_columns, read_more, read_row
from statestore.store import Item

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
