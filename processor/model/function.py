"""What a function of expressions is: how a row evaluates one, and how PostgreSQL is told the same."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, get_args

from processor.model.change import Value
from processor.model.entity import TypeName

Template = str | Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One overload. `takes`: the types of its arguments, of a `variadic` one the type of each. `strict`: null where an argument
    is null. `constant`: the positions of arguments that are written out, not computed."""

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
        """The call in PostgreSQL's words; each argument is an expression that needs no parentheses."""
        return self.sql.format(*args) if isinstance(self.sql, str) else self.sql(args)


FUNCTIONS: Final[dict[str, Function]] = {}
"""By key."""
OVERLOADS: Final[dict[str, list[Function]]] = {}
"""By name, the narrower types first."""
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
    """Adds an overload to the table; `takes`: its types, with blanks between. See `Function`."""
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
    """The value of `sql`, written once, or null where it is out of range."""
    return f"(SELECT v{cast} FROM (SELECT {sql}) AS r(v) WHERE {range_})"


def within_range(sql: str) -> str:
    """A float, or null where it is out of range."""
    return within(RANGE, sql)


def int32(sql: str) -> str:
    """An int as the integer that PostgreSQL's text functions take."""
    return sql if re.fullmatch(r"\(?-?[0-9]{1,9}\)?", sql) else within(INT32, sql, "::integer")


def joined_by(separator: str) -> Template:
    return lambda args: "(" + separator.join(args) + ")"


def called(name: str) -> Template:
    return lambda args: f"{name}({', '.join(args)})"


def instant(expression: str) -> str:
    """RFC 3339 in UTC, without the fraction's trailing zeros."""
    digits = f"""to_char({expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')"""
    return f"(rtrim(rtrim({digits}, '0'), '.') || 'Z')"
