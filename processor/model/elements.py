"""The fields by which a row joins: columns, and the elements of an array column.

    username            a column
    ids[]               each element of an array column
    inner[].id          a member of each element, of an array of objects
    inner[].id::number  the same in a plan: json has no declared type, so the kind of value that joins is that of the other side

Promises: a row has one key a join, or one an element of its array, in the array's order; None where a part is null, or is of
another kind than what it should equal (text "7" is not number 7). Does not: know which side is asked how.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from processor.model.change import Value
from processor.model.entity import ColumnType, Entity
from statestore import keys

_ELEMENT = re.compile(r"(.+?)\[\](?:\.(.+?))?(?:::(\w+))?")
_KINDS: dict[type, tuple[str, ...]] = {
    bool: ("bool",),
    int: ("number",),
    Decimal: ("number",),
    str: ("string", "date", "timestamp"),
}


class Element(NamedTuple):
    """A field that reads the elements of array `column`, or their `member`. `kind`: of json, the kind of value that joins."""

    column: str
    member: str | None
    kind: str | None

    def of(self, element: Value) -> Value:
        """The field's value in one element; an element that is no object has no members."""
        if self.member is None:
            return element
        return element.get(self.member) if isinstance(element, dict) else None

    def joins(self, value: Value) -> Value:
        """The value, or None when it is of another kind."""
        return value if self.kind is None or self.kind in _KINDS.get(type(value), ()) else None


@lru_cache(maxsize=4096)
def element(field: str) -> Element | None:
    """What a field reads of an array; None for a column. No column is named like that."""
    found = _ELEMENT.fullmatch(field)
    return Element(*found.groups()) if found else None


def column_of(field: str) -> str:
    """The column that a field reads."""
    read = element(field)
    return field if read is None else read.column


@lru_cache(maxsize=4096)
def array_of(fields: Sequence[str]) -> str | None:
    """The array column that some of the fields read the elements of; None when all are columns."""
    return next((read.column for read in map(element, fields) if read is not None), None)


def type_of(field: str, entity: Entity) -> ColumnType:
    """The declared type of a field's values; json for a member."""
    read = element(field)
    return entity.columns[field] if read is None else replace(entity.columns[read.column], array=False)


def typed(field: str, entity: Entity, other: ColumnType) -> str:
    """The field as a plan has it, against a field of type `other`."""
    return f"{field}::{other.kind}" if element(field) and type_of(field, entity).name == "json" else field


def join_keys(fields: Sequence[str], columns: Mapping[str, Value]) -> list[str | None]:
    """The keys by which a row with these columns joins."""
    if array_of(fields) is None:
        return [keys.spell([*map(columns.get, fields)])]
    reads = [element(field) for field in fields]
    return [
        keys.spell([value if read is None else read.joins(value) for read, value in zip(reads, values, strict=True)])
        for values in element_values(fields, columns)
    ]


def element_values(fields: Sequence[str], columns: Mapping[str, Value]) -> Iterator[list[Value]]:
    """The fields' values for each element of the row's array, as they stand there; a null array has none."""
    reads = [element(field) for field in fields]
    for one in columns.get(array_of(fields) or "") or ():
        yield [columns.get(f) if read is None else read.of(one) for f, read in zip(fields, reads, strict=True)]
