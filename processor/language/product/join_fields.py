"""Reads the join fields of a row: columns, and elements of an array column.

    username            a column
    ids[]               each element of an array column
    inner[].id          a member of each element, of an array of objects
    inner[].id::number  the same in a plan: json has no declared type, so only values of the other side's kind join
    code::ci            in a plan: text that compares so (ci, trimmed or ci+trimmed); with a kind, `inner[].id::string+ci`
    =int {...}          an expression over columns of the row, in place of a column (`registry.text`)

Promises: a row has one key for a join, or one key for each element of its array, in the array's order. A key is None if a part is
null or has another kind than the other side (text "7" is not number 7). Timestamps join by the microsecond, as in PostgreSQL.
Text of a column that says how it compares joins by its folded text (`expressions.text_functions`).
This module does not know access paths.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, cast

from processor.language.product.expressions.catalogue import FUNCTIONS, fold_function
from processor.language.product.expressions.expression import (
    ZONED,
    Call,
    Column,
    Computed,
    ExpressionNode,
    Literal,
    Match,
    compile_expression,
)
from processor.language.product.expressions.functions import FOLDS
from processor.language.product.expressions.zones import OtherRelease
from processor.values.entity import ColumnType, Compare, Entity, TypeName
from processor.values.record import Value
from processor.values.values import round_to_microseconds
from registry.fields import column_of, computed_column
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
    `compare`: the comparison of their text, as one text."""

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
    column = column_of(field)
    computed = computed_column(column)
    declared = entity.columns[column] if computed is None else _type_of_computed(computed.type, computed.compare)
    return declared if parse_element(field) is None else replace(declared, array=False)


def _type_of_computed(name: str, compare: Sequence[str]) -> ColumnType:
    return ColumnType(name=cast(TypeName, name), compare=cast(Compare, tuple(compare)))


def write_computed(node: ExpressionNode, compare: Compare = ()) -> str:
    """The field of an expression over columns of the row alone."""
    words = "".join(f"+{word}" for word in compare)
    return f"={_type_of_node(node)}{words} {_write_node(node)}"


def read_computed(column: str) -> Computed | None:
    """The expression in place of a column; None for a column. Raises ValueError for a function that this release lacks."""
    computed = computed_column(column)
    if computed is None:
        return None
    node = _read_node(computed.node)
    assert isinstance(node, Call)
    return Computed(text="", node=node, compare=cast(Compare, computed.compare))


def _type_of_node(node: ExpressionNode) -> str:
    assert isinstance(node, Call)
    return str(node.type)


def _write_node(node: ExpressionNode) -> str:
    match node:
        case Column(name=name):
            return _quoted(name)
        case Literal(value=value, type=type_):
            text = value if value is None or isinstance(value, str | bool) else str(value)
            return f"[{_quoted(type_ or 'null')},{_quoted(text) if isinstance(text, str) else json.dumps(text)}]"
        case Call(function=function, args=args):
            return f"{{{_quoted(function)}:[{','.join(map(_write_node, args))}]}}"
    raise TypeError(f"not of one row: {node}")


def _quoted(text: str) -> str:
    """JSON text. Brackets within it are escaped, so that `[]` marks only the elements of an array."""
    return json.dumps(text).replace("[", "\\u005b").replace("]", "\\u005d")


def _read_node(node: Any) -> ExpressionNode:
    if isinstance(node, str):
        return Column(name=node)
    if isinstance(node, list):
        type_, value = node
        if isinstance(value, str) and type_ in ("int", "decimal", "float"):
            value = int(value) if type_ == "int" else Decimal(value)
        return Literal(value=value, type=None if type_ == "null" else type_)
    ((function, args),) = node.items()
    if function not in FUNCTIONS:
        raise ValueError(
            f"this release has no function {function}, which a join in the registry uses: run a newer release"
        )
    return Call(function=function, args=tuple(map(_read_node, args)), type=FUNCTIONS[function].gives)


@lru_cache(maxsize=4096)
def _evaluation(column: str) -> Callable[[Mapping[str, Value]], Value]:
    """The value of an expression in place of a column, for the columns of a row."""
    computed = read_computed(column)
    assert computed is not None
    evaluate = compile_expression(computed, _NO_JOINS)

    def value(columns: Mapping[str, Value]) -> Value:
        try:
            return evaluate((Match(columns, {}), None))
        except (ValueError, OtherRelease):  # a text that is too long for any key; a slot that no product may read now
            return None

    return value


_NO_JOINS: Any = None
"""The level of a row without joins."""


def secrets_in(value: object) -> Iterator[str]:
    """The names of the secrets in a value: a product, a plan, a part of one. It may name one several times."""
    return (name for (name,) in _constants_in(value, ("hmac_sha256(string,string)",)))


def zones_in(value: object) -> Iterator[tuple[str, str]]:
    """The time zones in a value, in the same way, each with the release of its rules."""
    return ((name, release) for name, release in _constants_in(value, ZONED))


def _constants_in(value: object, functions: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The constants of each call of these functions in a value: all arguments but the first."""
    match value:
        case Call(function=function, args=(first, *constants)) if function in functions:
            yield tuple(str(one.value) for one in constants if isinstance(one, Literal))
            yield from _constants_in(first, functions)
        case str():
            if value.startswith("=") and (computed := read_computed(value)) is not None:
                yield from _constants_in(computed.node, functions)
        case Mapping():
            yield from _constants_in((*value.keys(), *value.values()), functions)
        case tuple() | list() | frozenset() | set():
            for one in value:
                yield from _constants_in(one, functions)
        case _ if is_dataclass(value):
            for one in fields_of(value):
                yield from _constants_in(getattr(value, one.name), functions)


def folded_field(field: str, compare: Compare) -> str:
    """The field of an expression, whose text is folded as it compares."""
    computed = read_computed(field)
    assert computed is not None
    key = fold_function(compare)
    return write_computed(Call(function=key, args=(computed.node,), type="string")) if compare else field


@lru_cache(maxsize=4096)
def parse_compared(field: str) -> tuple[str, str] | None:
    """The column of a field, and the comparison of its text; None for a column as it is, and for elements."""
    found = _COMPARED.fullmatch(field)
    return None if found is None or parse_element(field) else (found[1], found[2])


def typed_field(field: str, entity: Entity, other: ColumnType, compare: Compare) -> str:
    """The field in a plan, where a join compares it so with a field of type `other`."""
    if computed_column(field):
        return folded_field(field, compare) if type_of(field, entity).name == "string" else field
    is_json = parse_element(field) is not None and type_of(field, entity).name == "json"
    words = (*((str(other.kind),) if is_json else ()), *compare)
    return f"{field}::{'+'.join(words)}" if words else field


def converted_of(fields: Iterable[str], entity: Entity) -> tuple[str, ...]:
    """What has another form in a key than in the row: the columns of these fields that hold timestamps, the expressions in place
    of columns, and the fields of columns whose text is folded."""
    folded = tuple(field for field in dict.fromkeys(fields) if parse_compared(field))
    columns = dict.fromkeys(map(column_of, fields))
    changed = (c for c in columns if computed_column(c) or entity.columns[c].name == "timestamp")
    return (*changed, *folded)


def convert(columns: Mapping[str, Value], converted: Sequence[str]) -> Mapping[str, Value]:
    """The columns, with those that `converted` names in the form that keys have. A folded text comes under its field's name."""
    return {**columns, **{name: _converted(name, columns) for name in converted}} if converted else columns


def _converted(name: str, columns: Mapping[str, Value]) -> Value:
    if name.startswith("=") and computed_column(name):
        return _evaluation(name)(columns)
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
    """The join keys of a row with these columns. `converted`: of the fields (`converted_of`)."""
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
    array = _column_value(array_of(fields) or "", columns)
    for one in array if type(array) is list else ():
        yield [
            _column_value(f, columns) if read is None else read.value_in(one)
            for f, read in zip(fields, reads, strict=True)
        ]


def _column_value(name: str, columns: Mapping[str, Value]) -> Value:
    """The value of a column, or of the expression in its place where the columns do not have it yet."""
    if name in columns or not name.startswith("=") or not computed_column(name):
        return columns.get(name)
    return _evaluation(name)(columns)
