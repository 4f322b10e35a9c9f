"""A function of expressions: its types, its Python for a row, its text for PostgreSQL; and the table of all functions.

This file has the shape (`Function`), the empty table and helpers for the text. `catalogue.py` fills the table, one call of
`define` for each overload. `evaluate.py` runs the functions, and `sql_printer/sql_expression.py` prints them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from processor.records.entity import TypeName
from processor.records.record import Value

Template = str | Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One overload of a function or operator. `takes`: the types of its arguments; a `variadic` one has one type for all of its
    arguments. `strict`: a null argument makes the result null. `constant`: the positions of arguments that are literals."""

    name: str
    takes: tuple[TypeName, ...]
    gives: TypeName
    run: Callable[..., Value]
    sql: Template
    strict: bool = True
    variadic: bool = False
    constant: frozenset[int] = frozenset()

    @property
    def key(self) -> str:
        return f"{self.name}({','.join(self.takes)}{',...' if self.variadic else ''})"

    def write(self, args: Sequence[str]) -> str:
        """The call as PostgreSQL text. Each argument is an expression that needs no parentheses."""
        return self.sql.format(*args) if isinstance(self.sql, str) else self.sql(args)


FUNCTIONS: Final[dict[str, Function]] = {}
"""Key -> overload."""
OVERLOADS: Final[dict[str, list[Function]]] = {}
"""Name -> overloads, the narrower types first."""
SCALARS: Final[tuple[TypeName, ...]] = tuple(t for t in get_args(TypeName) if t != "json")
"""The types whose values compare."""

INT64 = "v BETWEEN -9223372036854775808 AND 9223372036854775807"
INT32 = "v BETWEEN -2147483648 AND 2147483647"
RANGE = "v = 0 OR abs(v) BETWEEN 1e-130 AND 1e126"


def define(
    name: str,
    takes: str,
    gives: TypeName,
    run: Callable[..., Value],
    sql: Template,
    *,
    strict: bool = True,
    variadic: bool = False,
    constant: frozenset[int] = frozenset(),
) -> None:
    """Adds an overload to the table. `takes`: its types, separated by spaces. The other arguments: see `Function`."""
    types: dict[str, TypeName] = {t: t for t in get_args(TypeName)}
    function = Function(
        name=name,
        takes=tuple(types[t] for t in takes.split()),
        gives=gives,
        run=run,
        sql=sql,
        strict=strict,
        variadic=variadic,
        constant=constant,
    )
    FUNCTIONS[function.key] = function
    OVERLOADS.setdefault(name, []).append(function)


def within(range_: str, sql: str, cast: str = "") -> str:
    """The value of `sql`, or null if the value `v` is out of the range. The text of `sql` occurs once."""
    return f"(SELECT v{cast} FROM (SELECT {sql}) AS r(v) WHERE {range_})"


def within_range(sql: str) -> str:
    """A float, or null if it is out of range."""
    return within(RANGE, sql)


def int32(sql: str) -> str:
    """An int as PostgreSQL's integer, which its text functions take."""
    return sql if re.fullmatch(r"\(?-?[0-9]{1,9}\)?", sql) else within(INT32, sql, "::integer")


def infix(separator: str) -> Template:
    """SQL for an operator between all arguments."""
    return lambda args: "(" + separator.join(args) + ")"


def call(name: str) -> Template:
    """SQL for a call of PostgreSQL's function `name`."""
    return lambda args: f"{name}({', '.join(args)})"


def timestamp_text(expression: str) -> str:
    """SQL for a timestamp as RFC 3339 in UTC, without trailing zeros in the fraction."""
    digits = f"""to_char({expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')"""
    return f"(rtrim(rtrim({digits}, '0'), '.') || 'Z')"
