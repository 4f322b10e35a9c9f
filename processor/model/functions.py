"""Every function and operator of expressions, one row an overload: what it takes and gives, how a row evaluates it, and how
PostgreSQL is told the same. docs/expressions.md shows it to authors.

Values while evaluated: int; decimal as int or Decimal; float as float; string, date as str; timestamp as str without its `Z`, in
microseconds, so that text order is time order; bool. A result that cannot be had (1/0) is None.
"""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final, get_args

from processor.model import arithmetic, logic, text_functions
from processor.model.change import Value
from processor.model.entity import TypeName
from processor.model.times import to_microseconds

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

_INT64 = "v BETWEEN -9223372036854775808 AND 9223372036854775807"
_INT32 = "v BETWEEN -2147483648 AND 2147483647"
_RANGE = "v = 0 OR abs(v) BETWEEN 1e-130 AND 1e126"


def _define(
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


def _within(range_: str, sql: str, cast: str = "") -> str:
    """The value of `sql`, written once, or null where it is out of range."""
    return f"(SELECT v{cast} FROM (SELECT {sql}) AS r(v) WHERE {range_})"


def within_range(sql: str) -> str:
    """A float, or null where it is out of range."""
    return _within(_RANGE, sql)


def _int32(sql: str) -> str:
    """An int as the integer that PostgreSQL's text functions take."""
    return sql if re.fullmatch(r"\(?-?[0-9]{1,9}\)?", sql) else _within(_INT32, sql, "::integer")


def _joined(separator: str) -> Template:
    return lambda args: "(" + separator.join(args) + ")"


def _called(name: str) -> Template:
    return lambda args: f"{name}({', '.join(args)})"


def _operators() -> None:
    for sign, exact, machine in (
        ("+", arithmetic.add, operator.add),
        ("-", arithmetic.subtract, operator.sub),
        ("*", arithmetic.multiply, operator.mul),
    ):
        _define(sign, "int int", "int", arithmetic.int64(machine), _within(_INT64, f"{{0}}::numeric {sign} {{1}}"))
        _define(sign, "decimal decimal", "decimal", exact, f"({{0}} {sign} {{1}})")
        _define(sign, "float float", "float", arithmetic.double(machine), _within(_RANGE, f"{{0}} {sign} {{1}}"))
    _define("-", "date date", "int", _days, "({0} - {1})")
    _define(
        "/",
        "int int",
        "int",
        arithmetic.int64(arithmetic.divide_ints),
        _within(_INT64, "div({0}::numeric, nullif({1}, 0))"),
    )
    _define("/", "decimal decimal", "decimal", arithmetic.divide, "(trim_scale({0}) / nullif(trim_scale({1}), 0))")
    _define("/", "float float", "float", arithmetic.divide_floats, _within(_RANGE, "{0} / nullif({1}, 0)"))
    for name in ("%", "mod"):
        _define(name, "int int", "int", arithmetic.modulo, "({0}::numeric % nullif({1}, 0))")
        _define(name, "decimal decimal", "decimal", arithmetic.modulo, "({0} % nullif({1}, 0))")
    _define("negative", "int", "int", arithmetic.int64(operator.neg), _within(_INT64, "-({0}::numeric)"))
    _define("negative", "decimal", "decimal", arithmetic.negate, "(-{0})")
    _define("negative", "float", "float", operator.neg, "(-{0})")


def _days(a: str, b: str) -> int:
    return date.fromisoformat(a).toordinal() - date.fromisoformat(b).toordinal()


def _comparisons() -> None:
    """Those that every scalar type has. Text is ordered by code point, whatever the database's collation is."""
    for t in SCALARS:
        text = t == "string"
        c = ' COLLATE "C"' if text else ""
        for sign, same in (("=", operator.eq), ("<>", operator.ne)):
            _define(sign, f"{t} {t}", "bool", same, f"({{0}} {sign} {{1}})")
        for sign, before in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
            _define(sign, f"{t} {t}", "bool", before, f"({{0}}{c} {sign} {{1}}{c})")
        _define("is distinct from", f"{t} {t}", "bool", operator.ne, "({0} IS DISTINCT FROM {1})", strict=False)
        _define("in", t, "bool", logic.is_in, _in, strict=False, variadic=True)
        _define("nullif", f"{t} {t}", t, logic.nullif, "nullif({0}, {1})", strict=False)
        for name, pick in (("greatest", logic.greatest), ("least", logic.least)):
            _define(name, t, t, pick, _picked(name) if text else _called(name), strict=False, variadic=True)
        _define("coalesce", t, t, logic.coalesce, _called("coalesce"), strict=False, variadic=True)
        _define("case", t, t, logic.case, _case, strict=False, variadic=True)
    for t in get_args(TypeName):
        _define("is null", t, "bool", logic.is_null, "({0} IS NULL)", strict=False)


def _in(args: Sequence[str]) -> str:
    return f"({args[0]} IN ({', '.join(args[1:])}))"


def _picked(name: str) -> Template:
    return lambda args: f'({name}({", ".join(a + COLLATE_C for a in args)}) COLLATE "default")'


COLLATE_C: Final = ' COLLATE "C"'


def _case(args: Sequence[str]) -> str:
    pairs = zip(args[:-1:2], args[1::2], strict=True)
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in pairs)} ELSE {args[-1]} END"


def _logic() -> None:
    _define("and", "bool", "bool", logic.both, _joined(" AND "), strict=False, variadic=True)
    _define("or", "bool", "bool", logic.either, _joined(" OR "), strict=False, variadic=True)
    _define("not", "bool", "bool", operator.not_, "(NOT {0})")
    _define("is true", "bool", "bool", logic.is_true, "({0} IS TRUE)", strict=False)
    _define("is false", "bool", "bool", logic.is_false, "({0} IS FALSE)", strict=False)


def _numbers() -> None:
    for name, of in (("floor", arithmetic.floor), ("ceil", arithmetic.ceiling), ("trunc", arithmetic.truncated)):
        _whole(name, of, of)
    _whole("round", arithmetic.rounded, round)
    for name, of_digits in (("round", arithmetic.rounded), ("trunc", arithmetic.truncated)):
        _define(name, "decimal int", "decimal", of_digits, f"{name}({{0}}, {{1}})", constant=frozenset({1}))
    _define("abs", "int", "int", arithmetic.int64(abs), _within(_INT64, "abs({0}::numeric)"))
    _define("abs", "decimal", "decimal", arithmetic.magnitude, "abs({0})")
    _define("abs", "float", "float", abs, "abs({0})")
    for t in ("int", "decimal", "float"):
        _define("sign", t, "int", arithmetic.sign, "sign({0})")


def _whole(name: str, exact: Callable[..., Value], double: Callable[..., Value]) -> None:
    _define(name, "int", "int", int, "{0}")
    _define(name, "decimal", "decimal", exact, f"{name}({{0}})")
    _define(name, "float", "float", lambda number: float(double(number)), f"{name}({{0}})")


def _texts() -> None:
    text = text_functions
    _define("||", "string string", "string", operator.add, "({0} || {1})")
    for name, run in (("lower", text.lower), ("upper", text.upper)):
        _define(name, "string", "string", run, f'{name}({{0}} COLLATE "default")')
    for name in ("length", "char_length"):
        _define(name, "string", "int", len, "length({0})")
    _define("substring", "string int", "string", text.substring, _counted("substring"))
    _define("substring", "string int int", "string", text.substring, _substring)
    for name, cut in (("left", text.left), ("right", text.right)):
        _define(name, "string int", "string", cut, _counted(name))
    for name, strip in (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
        called = "btrim" if name == "trim" else name
        _define(name, "string", "string", partial(text.strip, strip), f"{called}({{0}})")
        _define(name, "string string", "string", strip, f"{called}({{0}}, {{1}})")
    _define("replace", "string string string", "string", text.replace, _called("replace"))
    _define("position", "string string", "int", text.position, _called("strpos"))
    _define("starts_with", "string string", "bool", str.startswith, _called("starts_with"))
    _define(
        "split_part", "string string int", "string", text.split_part, _called("split_part"), constant=frozenset({2})
    )
    _define("concat", "string", "string", text.joined, _called("concat"), strict=False, variadic=True)
    _define("concat_ws", "string", "string", text.joined_with, _called("concat_ws"), strict=False, variadic=True)
    _define("like", "string string string", "bool", text.like, "({0} LIKE {1} ESCAPE {2})", constant=frozenset({1, 2}))


def _counted(name: str) -> Template:
    return lambda args: f"{name}({args[0]}, {_int32(args[1])})"


def _substring(args: Sequence[str]) -> str:
    start, length = map(_int32, args[1:])
    return f"substring({args[0]}, {start}, nullif(greatest({length}, -1), -1))"


def _times() -> None:
    fields = {"year": (0, 4), "month": (5, 7), "day": (8, 10), "hour": (11, 13), "minute": (14, 16)}
    for field, (start, end) in fields.items():

        def part(value: str, start: int = start, end: int = end) -> int:
            return int(value[start:end])

        if start < 10:
            _define(f"extract {field}", "date", "int", part, f"extract({field} FROM {{0}})")
        in_utc = f"extract({field} FROM {{0}} AT TIME ZONE 'UTC')"
        _define(f"extract {field}", "timestamp", "int", part, in_utc)

        def cut(value: str, end: int = end) -> str:
            return value[:end] + "0001-01-01T00:00:00"[end:]

        trunc = f"(date_trunc('{field}', {{0}} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')"
        _define(f"date_trunc {field}", "timestamp", "timestamp", cut, trunc)


def _casts() -> None:
    """`to T`: what `cast` does. `read`: a stored value as the one that is evaluated."""
    whole, text = _within(_INT64, "round({0})"), text_functions
    _define("to decimal", "int", "decimal", int, "{0}::numeric")
    for t in ("int", "decimal"):
        sql = _within(_RANGE, "{0}::numeric", "::double precision")
        _define("to float", t, "float", arithmetic.to_float, sql)
        _define("to string", t, "string", text.of_number, "trim_scale({0}::numeric)::text")
    _define("to timestamp", "date", "timestamp", lambda d: f"{d}T00:00:00", "({0}::timestamp AT TIME ZONE 'UTC')")
    _define("to date", "timestamp", "date", lambda t: t[:10], "({0} AT TIME ZONE 'UTC')::date")
    _define("to int", "decimal", "int", arithmetic.int64(arithmetic.to_int), whole)
    _define("to int", "float", "int", arithmetic.int64(round), _within(f"{_FLOAT64}", "round({0})", "::bigint"))
    _define("to int", "bool", "int", int, "{0}::integer")
    _define("to int", "string", "int", arithmetic.int64(text.to_int), _within(_INT64, _matched(text.INTEGER)))
    _define("to decimal", "float", "decimal", arithmetic.of_float, "{0}::numeric")
    _define("to decimal", "string", "decimal", text.to_decimal, _matched(text.NUMBER))
    _define("to decimal", "decimal int int", "decimal", _fitted, _fit, constant=frozenset({1, 2}))
    _define("to string", "bool", "string", text.of_bool, "{0}::text")
    _define("to string", "date", "string", str, "to_char({0}, 'YYYY-MM-DD')")
    _define("to string", "timestamp", "string", lambda t: f"{t}Z", instant("{0}"))
    for t in get_args(TypeName):
        _define(f"to {t}", t, t, lambda value: value, "{0}")
    _define("read", "float", "float", float, "{0}")
    _define("read", "timestamp", "timestamp", to_microseconds, "{0}")


_FLOAT64 = "v >= -9223372036854775808 AND v < 9223372036854775808"


def _matched(pattern: str) -> str:
    escaped = pattern.replace("{", "{{").replace("}", "}}")
    return f"substring({{0}} FROM '^ *({escaped}) *$')::numeric"


def _fitted(number: arithmetic.Number, precision: int, scale: int) -> arithmetic.Number | None:
    """The number as decimal(precision, scale): rounded, None where it has more digits before the point."""
    result = arithmetic.rounded(number, scale)
    return result if abs(result) < 10 ** (precision - scale) else None


def _fit(args: Sequence[str]) -> str:
    number, precision, scale = args
    return _within(f"abs(v) < 1e{int(precision) - int(scale)}", f"round({number}, {scale})")


def instant(expression: str) -> str:
    """RFC 3339 in UTC, without the fraction's trailing zeros."""
    digits = f"""to_char({expression} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US')"""
    return f"(rtrim(rtrim({digits}, '0'), '.') || 'Z')"


for _group in (_operators, _comparisons, _logic, _numbers, _texts, _times, _casts):
    _group()
