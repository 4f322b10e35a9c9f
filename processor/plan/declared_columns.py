"""Reads a stored row by the declaration of its entity as it is now.

A column that is declared later is undeclared in older rows: their items hold its value in `_more`, as the source sent it. These
functions convert such a value to the declared type. A value that does not fit, or that has two meanings, is null and counted.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from processor.plan.plan import EntityPlan
from processor.records.entity import ColumnType
from processor.records.record import Value
from processor.records.values import DEBEZIUM, canonical_value
from statestore.items import Row, read_columns, read_more, read_row
from statestore.store import Item

UNREADABLE: Final = "unreadable"
"""The count of values that were stored undeclared and do not fit the declared type."""


def declared_columns(item: Item, plan: EntityPlan, tally: Counter[str] | None = None) -> dict[str, Any] | None:
    """The declared columns of the row that an item holds; None for a delete marker. Counts in `tally` the values that do not
    fit."""
    columns = read_columns(item)
    if columns is None or plan.entity.columns.keys() <= columns.keys():
        return columns
    return columns | _declared_later(columns, read_more(item), plan, tally)


def undeclared_columns(item: Item, plan: EntityPlan) -> dict[str, Any]:
    """The columns of the row that the entity does not declare."""
    more = read_more(item)
    return {name: value for name, value in more.items() if name not in plan.entity.columns} if more else more


def declared_row(item: Item, plan: EntityPlan) -> Row:
    """The row that an item holds. Its `more` is as stored: a write that keeps `more` loses no value."""
    row = read_row(item)
    if row.columns is None or plan.entity.columns.keys() <= row.columns.keys():
        return row
    return row._replace(columns={**row.columns, **_declared_later(row.columns, row.more, plan, None)})


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
                    tally[UNREADABLE] += 1
    return found


def _converted(value: Value, column_type: ColumnType) -> Value:
    """The canonical value. Raises ValueError for a value that does not fit, and for text of a number: the text may be Debezium's
    bytes, and the row does not keep the schema that would tell."""
    values = value if column_type.array and type(value) is list else [value]
    if column_type.name in ("int", "float", "decimal") and any(type(one) in (str, dict) for one in values):
        raise ValueError("text of a number")
    return canonical_value(value, column_type, DEBEZIUM)
