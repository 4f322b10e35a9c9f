"""Reads the fields by which a row joins: columns, and elements of an array column.

    username            a column
    ids[]               each element of an array column
    inner[].id          a member of each element, of an array of objects
    inner[].id::number  the same in a plan: json has no declared type, so only values of the other side's kind join
    code::ci            in a plan: text that compares so (ci, trimmed or ci+trimmed); with a kind, `inner[].id::string+ci`

Promises: a row has one key for a join, or one key for each element of its array, in the array's order. A key is None if a part is
null or has another kind than the other side (text "7" is not number 7). Timestamps join by the microsecond, as in PostgreSQL.
Text of a column that says how it compares joins by its folded text (`expressions.text_functions`).
This module does not know access paths.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from processor.language.product.expressions.functions import FOLDS
from processor.values.entity import ColumnType, Compare, Entity
from processor.values.record import Value
from processor.values.values import round_to_microseconds
from registry.model import column_of
from statestore import keys

_WORDS = "|".join(map(re.escape, FOLDS))
_ELEMENT = re.compile(rf"(.+?)\[\](?:\.(.+?))?(?:::({_WORDS})|::(\w+)(?:\+({_WORDS}))?)?")
_COMPARED = re.compile(rf"(.+)::({_WORDS})")
_KINDS: dict[type, tuple[str, ...]] = {
    bool: ("bool",),
    int: ("number",),
    Decimal: ("number",),
    str: ("string", "date", "timestamp"),
}


class Element(NamedTuple):
    """A field that reads the elements of array `column`, or their `member`. `kind`: for json, the kind of values that join;
    `compare`: the words by which their text compares, as one text."""

    column: str
    member: str | None
    kind: str | None
    compare: str | None

    def value_in(self, element: Value) -> Value:
        """The field's value in one element. An element that is not an object has no members."""
        if self.member is None:
            return element
        return element.get(self.member) if isinstance(element, dict) else None

    def value_that_joins(self, value: Value) -> Value:
        """The value as it joins, or None if it has another kind."""
        if self.kind is not None and self.kind not in _KINDS.get(type(value), ()):
            return None
        return FOLDS[self.compare](value) if self.compare and isinstance(value, str) else value


@lru_cache(maxsize=4096)
def parse_element(field: str) -> Element | None:
    """The element of an array that a field reads; None if the field is a column. Column names never have this form."""
    found = _ELEMENT.fullmatch(field)
    if found is None:
        return None
    column, member, alone, kind, behind = found.groups()
    return Element(column, member, kind, alone or behind)


@lru_cache(maxsize=4096)
def array_of(fields: Sequence[str]) -> str | None:
    """The array column whose elements some of the fields read; None if all fields are columns."""
    return next((read.column for read in map(parse_element, fields) if read is not None), None)


def type_of(field: str, entity: Entity) -> ColumnType:
    """The declared type of a field's values. A member has type json."""
    read = parse_element(field)
    return entity.columns[column_of(field)] if read is None else replace(entity.columns[read.column], array=False)


@lru_cache(maxsize=4096)
def parse_compared(field: str) -> tuple[str, str] | None:
    """The column of a field, and the words by which its text compares; None for a column as it is, and for elements."""
    found = _COMPARED.fullmatch(field)
    return None if found is None or parse_element(field) else (found[1], found[2])


def typed_field(field: str, entity: Entity, other: ColumnType, compare: Compare) -> str:
    """The field in a plan, where a join compares it so with a field of type `other`."""
    is_json = parse_element(field) is not None and type_of(field, entity).name == "json"
    words = (*((str(other.kind),) if is_json else ()), *compare)
    return f"{field}::{'+'.join(words)}" if words else field


def converted_of(fields: Iterable[str], entity: Entity) -> tuple[str, ...]:
    """What has another form in a key than in the row: the columns of these fields that hold timestamps, and the fields of columns
    whose text is folded."""
    folded = tuple(field for field in dict.fromkeys(fields) if parse_compared(field))
    instants = (c for c in dict.fromkeys(map(column_of, fields)) if entity.columns[c].name == "timestamp")
    return (*instants, *folded)


def convert(columns: Mapping[str, Value], converted: Sequence[str]) -> Mapping[str, Value]:
    """The columns, with those that `converted` names in the form that keys have. A folded text comes under its field's name."""
    return {**columns, **{name: _converted(name, columns) for name in converted}} if converted else columns


def _converted(name: str, columns: Mapping[str, Value]) -> Value:
    compared = parse_compared(name)
    if compared is None:
        return _rounded(columns.get(name))
    value = columns.get(compared[0])
    return None if value is None else FOLDS[compared[1]](value)


def _rounded(value: Value) -> Value:
    if isinstance(value, list):
        return [_rounded(element) for element in value]
    return None if value is None else round_to_microseconds(value)


def join_keys(fields: Sequence[str], columns: Mapping[str, Value], converted: Sequence[str] = ()) -> list[str | None]:
    """The keys by which a row with these columns joins. `converted`: of the fields (`converted_of`)."""
    if converted:
        columns = convert(columns, converted)
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
