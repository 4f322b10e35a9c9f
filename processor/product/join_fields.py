"""Reads the fields by which a row joins: columns, and elements of an array column.

    username            a column
    ids[]               each element of an array column
    inner[].id          a member of each element, of an array of objects
    inner[].id::number  the same in a plan: json has no declared type, so only values of the other side's kind join

Promises: a row has one key for a join, or one key for each element of its array, in the array's order. A key is None if a part is
null or has another kind than the other side (text "7" is not number 7). Timestamps join by the microsecond, as in PostgreSQL.
This module does not know access paths.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from processor.records.entity import ColumnType, Entity
from processor.records.record import Value
from processor.records.times import round_to_microseconds
from registry.column_of import column_of
from statestore import keys

_ELEMENT = re.compile(r"(.+?)\[\](?:\.(.+?))?(?:::(\w+))?")
_KINDS: dict[type, tuple[str, ...]] = {
    bool: ("bool",),
    int: ("number",),
    Decimal: ("number",),
    str: ("string", "date", "timestamp"),
}


class Element(NamedTuple):
    """A field that reads the elements of array `column`, or their `member`. `kind`: for json, the kind of values that join."""

    column: str
    member: str | None
    kind: str | None

    def value_in(self, element: Value) -> Value:
        """The field's value in one element. An element that is not an object has no members."""
        if self.member is None:
            return element
        return element.get(self.member) if isinstance(element, dict) else None

    def value_that_joins(self, value: Value) -> Value:
        """The value, or None if it has another kind."""
        return value if self.kind is None or self.kind in _KINDS.get(type(value), ()) else None


@lru_cache(maxsize=4096)
def parse_element(field: str) -> Element | None:
    """The element of an array that a field reads; None if the field is a column. Column names never have this form."""
    found = _ELEMENT.fullmatch(field)
    return Element(*found.groups()) if found else None


@lru_cache(maxsize=4096)
def array_of(fields: Sequence[str]) -> str | None:
    """The array column whose elements some of the fields read; None if all fields are columns."""
    return next((read.column for read in map(parse_element, fields) if read is not None), None)


def type_of(field: str, entity: Entity) -> ColumnType:
    """The declared type of a field's values. A member has type json."""
    read = parse_element(field)
    return entity.columns[field] if read is None else replace(entity.columns[read.column], array=False)


def typed_field(field: str, entity: Entity, other: ColumnType) -> str:
    """The field in a plan, where it is compared with a field of type `other`."""
    return f"{field}::{other.kind}" if parse_element(field) and type_of(field, entity).name == "json" else field


def instants_of(fields: Iterable[str], entity: Entity) -> tuple[str, ...]:
    """The columns among these fields that hold timestamps."""
    return tuple(c for c in dict.fromkeys(map(column_of, fields)) if entity.columns[c].name == "timestamp")


def round_instants(columns: Mapping[str, Value], instants: Sequence[str]) -> Mapping[str, Value]:
    """The columns with the timestamps of the columns `instants` in microseconds."""
    return {**columns, **{name: _rounded(columns.get(name)) for name in instants}} if instants else columns


def _rounded(value: Value) -> Value:
    if isinstance(value, list):
        return [_rounded(element) for element in value]
    return None if value is None else round_to_microseconds(value)


def join_keys(fields: Sequence[str], columns: Mapping[str, Value], instants: Sequence[str] = ()) -> list[str | None]:
    """The keys by which a row with these columns joins. `instants`: the columns that hold timestamps (`instants_of`)."""
    if instants:
        columns = round_instants(columns, instants)
    if array_of(fields) is None:
        return [keys.encode([*map(columns.get, fields)])]
    reads = [parse_element(field) for field in fields]
    return [
        keys.encode(
            [value if read is None else read.value_that_joins(value) for read, value in zip(reads, values, strict=True)]
        )
        for values in element_values(fields, columns)
    ]


def element_values(fields: Sequence[str], columns: Mapping[str, Value]) -> Iterator[list[Value]]:
    """The fields' unchanged values for each element of the row's array. Null, and json of another kind, have no elements."""
    reads = [parse_element(field) for field in fields]
    array = columns.get(array_of(fields) or "")
    for one in array if type(array) is list else ():
        yield [columns.get(f) if read is None else read.value_in(one) for f, read in zip(fields, reads, strict=True)]
