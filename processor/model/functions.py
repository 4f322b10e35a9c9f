"""Every function and operator of expressions, one row an overload: what it takes and gives, how a row evaluates it, and how
PostgreSQL is told the same. docs/expressions.md shows it to authors.

Values while evaluated: int; decimal as int or Decimal; float as float; string, date as str; timestamp as str without its `Z`, in
microseconds, so that text order is time order; bool. A result that cannot be had (1/0) is None.
"""

import operator
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Final, get_args

from processor.model import arithmetic, logic, text_functions
from processor.model.change import Value
from processor.model.entity import TypeName
from processor.model.function import FUNCTIONS as FUNCTIONS
from processor.model.function import INT64, RANGE, Template, called, define, instant, int32, joined_by, within
from processor.model.function import OVERLOADS as OVERLOADS
from processor.model.function import SCALARS as SCALARS
from processor.model.times import to_microseconds

COLLATE: Final = ' COLLATE "C"'


def _operators() -> None:
    for sign, exact, machine in (
        ("+", arithmetic.add, operator.add),
        ("-", arithmetic.subtract, operator.sub),
        ("*", arithmetic.multiply, operator.mul),
    ):
        define(sign, "int int", "int", arithmetic.int64(machine), within(INT64, f"{{0}}::numeric {sign} {{1}}"))
        define(sign, "decimal decimal", "decimal", exact, f"({{0}} {sign} {{1}})")
        define(sign, "float float", "float", arithmetic.double(machine), within(RANGE, f"{{0}} {sign} {{1}}"))
    define("-", "date date", "int", _days, "({0} - {1})")
    define(
        "/",
        "int int",
        "int",
        arithmetic.int64(arithmetic.divide_ints),
        within(INT64, "div({0}::numeric, nullif({1}, 0))"),
    )
    define("/", "decimal decimal", "decimal", arithmetic.divide, "(trim_scale({0}) / nullif(trim_scale({1}), 0))")
    define("/", "float float", "float", arithmetic.divide_floats, within(RANGE, "{0} / nullif({1}, 0)"))
    for name in ("%", "mod"):
        define(name, "int int", "int", arithmetic.modulo, "({0}::numeric % nullif({1}, 0))")
        define(name, "decimal decimal", "decimal", arithmetic.modulo, "({0} % nullif({1}, 0))")
    define("unary -", "int", "int", arithmetic.int64(operator.neg), within(INT64, "-({0}::numeric)"))
    define("unary -", "decimal", "decimal", arithmetic.negate, "(-{0})")
    define("unary -", "float", "float", operator.neg, "(-{0})")


def _days(a: str, b: str) -> int:
    return date.fromisoformat(a).toordinal() - date.fromisoformat(b).toordinal()


def _comparisons() -> None:
    """Those that every scalar type has. Text is ordered by code point, whatever the database's collation is."""
    for t in SCALARS:
        text = t == "string"
        c = COLLATE if text else ""
        for sign, same in (("=", operator.eq), ("<>", operator.ne)):
            define(sign, f"{t} {t}", "bool", same, f"({{0}} {sign} {{1}})")
        for sign, before in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
            define(sign, f"{t} {t}", "bool", before, f"({{0}}{c} {sign} {{1}}{c})")
        define("is distinct from", f"{t} {t}", "bool", operator.ne, "({0} IS DISTINCT FROM {1})", strict=False)
        define("in", t, "bool", logic.is_in, _in, strict=False, variadic=True)
        define("nullif", f"{t} {t}", t, logic.nullif, "nullif({0}, {1})", strict=False)
        for name, pick in (("greatest", logic.greatest), ("least", logic.least)):
            define(name, t, t, pick, _picked(name) if text else called(name), strict=False, variadic=True)
        define("coalesce", t, t, logic.coalesce, called("coalesce"), strict=False, variadic=True)
        define("case", t, t, logic.case, _case, strict=False, variadic=True)
    for t in get_args(TypeName):
        define("is null", t, "bool", logic.is_null, "({0} IS NULL)", strict=False)


def _in(args: Sequence[str]) -> str:
    return f"({args[0]} IN ({', '.join(args[1:])}))"


def _picked(name: str) -> Template:
    return lambda args: f'({name}({", ".join(a + COLLATE for a in args)}) COLLATE "default")'


def _case(args: Sequence[str]) -> str:
    pairs = zip(args[:-1:2], args[1::2], strict=True)
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in pairs)} ELSE {args[-1]} END"


def _logic() -> None:
    define("and", "bool", "bool", logic.both, joined_by(" AND "), strict=False, variadic=True)
    define("or", "bool", "bool", logic.either, joined_by(" OR "), strict=False, variadic=True)
    define("not", "bool", "bool", operator.not_, "(NOT {0})")
    define("is true", "bool", "bool", logic.is_true, "({0} IS TRUE)", strict=False)
    define("is false", "bool", "bool", logic.is_false, "({0} IS FALSE)", strict=False)


def _numbers() -> None:
    for name, of in (("floor", arithmetic.floor), ("ceil", arithmetic.ceiling), ("trunc", arithmetic.truncated)):
        _whole(name, of, of)
    _whole("round", arithmetic.rounded, round)
    for name, of_digits in (("round", arithmetic.rounded), ("trunc", arithmetic.truncated)):
        define(name, "decimal int", "decimal", of_digits, f"{name}({{0}}, {{1}})", constant=frozenset({1}))
    define("abs", "int", "int", arithmetic.int64(abs), within(INT64, "abs({0}::numeric)"))
    define("abs", "decimal", "decimal", arithmetic.magnitude, "abs({0})")
    define("abs", "float", "float", abs, "abs({0})")
    for t in ("int", "decimal", "float"):
        define("sign", t, "int", arithmetic.sign, "sign({0})")


def _whole(name: str, exact: Callable[..., Value], double: Callable[..., Value]) -> None:
    define(name, "int", "int", int, "{0}")
    define(name, "decimal", "decimal", exact, f"{name}({{0}})")
    define(name, "float", "float", lambda number: float(double(number)), f"{name}({{0}})")


def _texts() -> None:
    text = text_functions
    define("||", "string string", "string", operator.add, "({0} || {1})")
    for name, run in (("lower", text.lower), ("upper", text.upper)):
        define(name, "string", "string", run, f'{name}({{0}} COLLATE "default")')
    for name in ("length", "char_length"):
        define(name, "string", "int", len, "length({0})")
    define("substring", "string int", "string", _int32s(text.substring), _counted("substring"))
    define("substring", "string int int", "string", _int32s(text.substring), _substring)
    for name, cut in (("left", text.left), ("right", text.right)):
        define(name, "string int", "string", _int32s(cut), _counted(name))
    for name, strip in (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
        trim = "btrim" if name == "trim" else name
        define(name, "string", "string", partial(text.strip, strip), f"{trim}({{0}})")
        define(name, "string string", "string", strip, f"{trim}({{0}}, {{1}})")
    define("replace", "string string string", "string", text.replace, called("replace"))
    define("position", "string string", "int", text.position, called("strpos"))
    define("starts_with", "string string", "bool", str.startswith, called("starts_with"))
    define("split_part", "string string int", "string", text.split_part, called("split_part"), constant=frozenset({2}))
    define("concat", "string", "string", text.joined, called("concat"), strict=False, variadic=True)
    define("concat_ws", "string", "string", text.joined_with, called("concat_ws"), strict=False, variadic=True)
    define("like", "string string string", "bool", text.like, "({0} LIKE {1} ESCAPE {2})", constant=frozenset({1, 2}))


def _int32s(of: Callable[..., Value]) -> Callable[..., Value]:
    """The function with None for counts and positions beyond PostgreSQL's integer."""

    def bounded(text: str, *numbers: int) -> Value:
        return of(text, *numbers) if all(-(2**31) <= n < 2**31 for n in numbers) else None

    return bounded


def _counted(name: str) -> Template:
    return lambda args: f"{name}({args[0]}, {int32(args[1])})"


def _substring(args: Sequence[str]) -> str:
    start, length = map(int32, args[1:])
    return f"substring({args[0]}, {start}, nullif(greatest({length}, -1), -1))"


def _times() -> None:
    fields = {"year": (0, 4), "month": (5, 7), "day": (8, 10), "hour": (11, 13), "minute": (14, 16)}
    for field, (start, end) in fields.items():

        def part(value: str, start: int = start, end: int = end) -> int:
            return int(value[start:end])

        if start < 10:
            define(f"extract {field}", "date", "int", part, f"extract({field} FROM {{0}})")
        in_utc = f"extract({field} FROM {{0}} AT TIME ZONE 'UTC')"
        define(f"extract {field}", "timestamp", "int", part, in_utc)

        def cut(value: str, end: int = end) -> str:
            return value[:end] + "0001-01-01T00:00:00"[end:]

        trunc = f"(date_trunc('{field}', {{0}} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')"
        define(f"date_trunc {field}", "timestamp", "timestamp", cut, trunc)


def _casts() -> None:
    """`to T`: what `cast` does. `as stored`: what a column holds, as it is evaluated."""
    text = text_functions
    define("to decimal", "int", "decimal", int, "{0}::numeric")
    for t in ("int", "decimal"):
        sql = within(RANGE, "{0}::numeric", "::double precision")
        define("to float", t, "float", arithmetic.to_float, sql)
        define("to string", t, "string", text.of_number, "trim_scale({0}::numeric)::text")
    define("to timestamp", "date", "timestamp", lambda d: f"{d}T00:00:00", "({0}::timestamp AT TIME ZONE 'UTC')")
    define("to date", "timestamp", "date", lambda t: t[:10], "({0} AT TIME ZONE 'UTC')::date")
    define("to int", "decimal", "int", arithmetic.int64(arithmetic.to_int), within(INT64, "round({0})"))
    define("to int", "float", "int", arithmetic.int64(round), within(_FLOAT64, "round({0})", "::bigint"))
    define("to int", "bool", "int", int, "{0}::integer")
    define("to int", "string", "int", arithmetic.int64(text.to_int), within(INT64, _matched(text.INTEGER)))
    define("to decimal", "float", "decimal", arithmetic.of_float, "{0}::numeric")
    define("to decimal", "string", "decimal", text.to_decimal, _matched(text.NUMBER))
    define("of size", "decimal int int", "decimal", _fitted, _fit, constant=frozenset({1, 2}))
    define("to string", "bool", "string", text.of_bool, "{0}::text")
    define("to string", "date", "string", str, "to_char({0}, 'YYYY-MM-DD')")
    define("to string", "timestamp", "string", lambda t: f"{t}Z", instant("{0}"))
    for t in SCALARS:
        define(f"to {t}", t, t, lambda value: value, "{0}")
    define("as stored", "float", "float", float, "{0}")
    define("as stored", "timestamp", "timestamp", to_microseconds, "{0}")


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
    return within(f"abs(v) < 1e{int(precision) - int(scale)}", f"round({number}, {scale})")


for _group in (_operators, _comparisons, _logic, _numbers, _texts, _times, _casts):
    _group()
