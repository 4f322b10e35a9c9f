"""All functions and operators of expressions. One `define` is one overload: its types, its Python, its PostgreSQL text.

`Function` is the shape of an overload, `FUNCTIONS` and `OVERLOADS` are the table of all of them. The Python is in
`functions.py`, `json_values.py` and `regular_expressions.py`. `expression.py` runs the functions at a row, and `sql_printer.py`
prints them. Authors read docs/definitions.md.

Values during evaluation: int; decimal as int or Decimal; float as float; string and date as str; bool; timestamp as str in
microseconds without its `Z`, so that text order is time order; json as in `json_values.py`. A result that does not exist
(1/0) is None.
"""

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final, Literal, get_args

from processor.language.product.expressions import functions, json_values, regular_expressions, zones
from processor.values.entity import Compare, TypeName
from processor.values.record import Value
from processor.values.values import to_microseconds

Template = str | Callable[[Sequence[str]], str]
Scale = Literal["largest", "sum", "same", "whole", "given", "value", "quotient", "text"]
"""What a function over decimals makes of their scales, in PostgreSQL.

largest, sum    the result has the largest scale of its arguments, or the sum of their scales
same            the result is one of its arguments, or has the scale of its argument
whole, given    the result has the scale 0, or the scale that its last argument says
value           the result has the digits of its value
quotient        the scales of the arguments decide how many digits the result has
text            the result is a text that shows the scale of its argument
"""


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
    scale: Scale | None = None
    """None where the result is no decimal, and no text of one."""

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
    scale: Scale | None = None,
) -> None:
    """Adds an overload to the table. `takes`: its types, separated by spaces. The other arguments: see `Function`. Raises
    TypeError for a decimal result, or the text of a decimal, without a `scale`: documents would show other digits than SQL."""
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
        scale=scale,
    )
    shows_scale = gives == "decimal" or (gives == "string" and "decimal" in function.takes)
    if shows_scale is (scale is None):
        raise TypeError(
            f"{function.key}: a decimal result, and the text of a decimal, need a `scale`; no other result has one"
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


COLLATE: Final = ' COLLATE "C"'


def _operators() -> None:
    signs: tuple[tuple[str, Callable[..., Value], Callable[..., Value], Scale], ...] = (
        ("+", functions.add, operator.add, "largest"),
        ("-", functions.subtract, operator.sub, "largest"),
        ("*", functions.multiply, operator.mul, "sum"),
    )
    for sign, exact, machine, scale in signs:
        define(sign, "int int", "int", functions.int64(machine), within(INT64, f"{{0}}::numeric {sign} {{1}}"))
        define(sign, "decimal decimal", "decimal", exact, f"({{0}} {sign} {{1}})", scale=scale)
        define(sign, "float float", "float", functions.double(machine), within(RANGE, f"{{0}} {sign} {{1}}"))
    define("-", "date date", "int", _days, "({0} - {1})")
    define(
        "/",
        "int int",
        "int",
        functions.int64(functions.divide_ints),
        within(INT64, "div({0}::numeric, nullif({1}, 0))"),
    )
    define("/", "decimal decimal", "decimal", functions.divide, "({0} / nullif({1}, 0))", scale="quotient")
    define("/", "float float", "float", functions.divide_floats, within(RANGE, "{0} / nullif({1}, 0)"))
    for name in ("%", "mod"):
        define(name, "int int", "int", functions.modulo, "({0}::numeric % nullif({1}, 0))")
        define(name, "decimal decimal", "decimal", functions.modulo, "({0} % nullif({1}, 0))", scale="largest")
    define("unary -", "int", "int", functions.int64(operator.neg), within(INT64, "-({0}::numeric)"))
    define("unary -", "decimal", "decimal", functions.negate, "(-{0})", scale="same")
    define("unary -", "float", "float", operator.neg, "(-{0})")


def _days(a: str, b: str) -> int:
    return date.fromisoformat(a).toordinal() - date.fromisoformat(b).toordinal()


def _comparisons() -> None:
    """The functions of every scalar type. Text is ordered by code point, whatever the database's collation is."""
    for t in SCALARS:
        text = t == "string"
        same_scale: Scale | None = "same" if t == "decimal" else None
        c = COLLATE if text else ""
        for sign, same in (("=", operator.eq), ("<>", operator.ne)):
            define(sign, f"{t} {t}", "bool", same, f"({{0}} {sign} {{1}})")
        for sign, before in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
            define(sign, f"{t} {t}", "bool", before, f"({{0}}{c} {sign} {{1}}{c})")
        define("is distinct from", f"{t} {t}", "bool", operator.ne, "({0} IS DISTINCT FROM {1})", strict=False)
        define("in", t, "bool", functions.is_in, _in, strict=False, variadic=True)
        define("nullif", f"{t} {t}", t, functions.nullif, "nullif({0}, {1})", strict=False, scale=same_scale)
        for name, pick in (("greatest", functions.greatest), ("least", functions.least)):
            sql = _picked(name) if text else call(name)
            define(name, t, t, pick, sql, strict=False, variadic=True, scale=same_scale)
        define("coalesce", t, t, functions.coalesce, call("coalesce"), strict=False, variadic=True, scale=same_scale)
        define("case", t, t, functions.case, _case, strict=False, variadic=True, scale=same_scale)
    for t in get_args(TypeName):
        define("is null", t, "bool", functions.is_null, "({0} IS NULL)", strict=False)


def _in(args: Sequence[str]) -> str:
    return f"({args[0]} IN ({', '.join(args[1:])}))"


def _picked(name: str) -> Template:
    return lambda args: f'({name}({", ".join(a + COLLATE for a in args)}) COLLATE "default")'


def _case(args: Sequence[str]) -> str:
    pairs = zip(args[:-1:2], args[1::2], strict=True)
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in pairs)} ELSE {args[-1]} END"


def _logic() -> None:
    define("and", "bool", "bool", functions.both, infix(" AND "), strict=False, variadic=True)
    define("or", "bool", "bool", functions.either, infix(" OR "), strict=False, variadic=True)
    define("not", "bool", "bool", operator.not_, "(NOT {0})")
    define("is true", "bool", "bool", functions.is_true, "({0} IS TRUE)", strict=False)
    define("is false", "bool", "bool", functions.is_false, "({0} IS FALSE)", strict=False)


def _numbers() -> None:
    for name, of in (("floor", functions.floor), ("ceil", functions.ceiling), ("trunc", functions.truncated)):
        _whole(name, of, of)
    _whole("round", functions.rounded, round)
    for name, of_digits in (("round", functions.rounded), ("trunc", functions.truncated)):
        sql = f"{name}({{0}}, {{1}})"
        define(name, "decimal int", "decimal", of_digits, sql, constant=frozenset({1}), scale="given")
    define("abs", "int", "int", functions.int64(abs), within(INT64, "abs({0}::numeric)"))
    define("abs", "decimal", "decimal", functions.magnitude, "abs({0})", scale="same")
    define("abs", "float", "float", abs, "abs({0})")
    for t in ("int", "decimal", "float"):
        define("sign", t, "int", functions.sign, "sign({0})::integer" if t == "float" else "sign({0})")


def _logarithms() -> None:
    """An int counts as a float, as in PostgreSQL: the overload for floats is the first. Decimals keep PostgreSQL's digits."""
    for name, exact, double, exists in (
        ("sqrt", functions.sqrt, functions.sqrt_float, "v >= 0"),
        ("ln", functions.ln, functions.ln_float, "v > 0"),
        ("log", functions.log, functions.log_float, "v > 0"),
        ("exp", functions.exp, functions.exp_float, "abs(v) <= 290"),
    ):
        define(name, "float", "float", double, _where(f"{name}(v)", exists))
        define(name, "decimal", "decimal", exact, _where(f"{name}(v)", exists), scale="quotient")
    base = "CASE WHEN b > 0 AND v > 0 AND b <> 1 THEN log(b, v) END"
    sql = f"(SELECT {base} FROM (SELECT {{0}}, {{1}}) AS r(b, v))"
    define("log", "decimal decimal", "decimal", functions.log, sql, scale="quotient")
    define("power", "float float", "float", functions.power_floats, within(RANGE, f"{_POWER} OFFSET 0"))
    define("power", "decimal decimal", "decimal", functions.power, _POWER, scale="quotient")


def _angles() -> None:
    """Functions of angles, in double precision: a decimal becomes a float, as in PostgreSQL. Most have no result out of range."""
    for name in ("sin", "cos", "tan", "atan"):
        define(name, "float", "float", functions.angle(getattr(math, name)), f"{name}({{0}})")
    for name in ("asin", "acos"):
        inverse = functions.angle(getattr(math, name), most=1)
        define(name, "float", "float", inverse, _where(f"{name}(v)", "v BETWEEN -1 AND 1"))
    define("atan2", "float float", "float", functions.angle(math.atan2), within_range("atan2({0}, {1}) OFFSET 0"))
    define("radians", "float", "float", functions.radians, within_range("radians({0}) OFFSET 0"))
    define("degrees", "float", "float", functions.degrees, within_range("degrees({0}) OFFSET 0"))


_POWER = (
    "(SELECT CASE WHEN b = 0 THEN CASE WHEN e >= 0 THEN power(b, e) END WHEN (b > 0 OR e = trunc(e)) "
    "AND abs(e * ln(abs(b))) <= 290 THEN power(b, e) END FROM (SELECT {0}, {1} OFFSET 0) AS r(b, e))"
)


def _where(sql: str, condition: str) -> str:
    """The value of `sql` over `v`, the argument, or null where the condition does not hold. PostgreSQL evaluates no other branch
    of a CASE, not even of constants. OFFSET keeps its planner from a copy of the argument at each `v`: a distance nests seven."""
    return f"(SELECT CASE WHEN {condition} THEN {sql} END FROM (SELECT {{0}} OFFSET 0) AS r(v))"


def _whole(name: str, exact: Callable[..., Value], double: Callable[..., Value]) -> None:
    define(name, "int", "int", int, "{0}")
    define(name, "decimal", "decimal", exact, f"{name}({{0}})", scale="whole")
    define(name, "float", "float", lambda number: float(double(number)), f"{name}({{0}})")


def _texts() -> None:
    define("||", "string string", "string", operator.add, "({0} || {1})")
    for name, run in (("lower", functions.lower), ("upper", functions.upper)):
        define(name, "string", "string", run, f'{name}({{0}} COLLATE "default")')
    for name in ("length", "char_length"):
        define(name, "string", "int", len, "length({0})")
    define("substring", "string int", "string", _int32_arguments(functions.substring), _counted("substring"))
    define("substring", "string int int", "string", _int32_arguments(functions.substring), _substring)
    for name, cut in (("left", functions.left), ("right", functions.right)):
        define(name, "string int", "string", _int32_arguments(cut), _counted(name))
    for name, strip in (("trim", str.strip), ("ltrim", str.lstrip), ("rtrim", str.rstrip)):
        trim = "btrim" if name == "trim" else name
        define(name, "string", "string", partial(functions.strip, strip), f"{trim}({{0}})")
        define(name, "string string", "string", strip, f"{trim}({{0}}, {{1}})")
    define("replace", "string string string", "string", functions.replace, call("replace"))
    define("position", "string string", "int", functions.position, call("strpos"))
    define("starts_with", "string string", "bool", str.startswith, call("starts_with"))
    define(
        "split_part", "string string int", "string", functions.split_part, call("split_part"), constant=frozenset({2})
    )
    define("concat", "string", "string", functions.joined, call("concat"), strict=False, variadic=True)
    define("concat_ws", "string", "string", functions.joined_with, call("concat_ws"), strict=False, variadic=True)
    define(
        "like", "string string string", "bool", functions.like, "({0} LIKE {1} ESCAPE {2})", constant=frozenset({1, 2})
    )
    define("initcap", "string", "string", regular_expressions.initcap, 'initcap({0} COLLATE "default")')
    for name, pad in (("lpad", functions.padded_left), ("rpad", functions.padded_right)):
        define(name, "string int", "string", pad, _padded(name))
        define(name, "string int string", "string", pad, _padded(name))
    for sign, found in (("~", regular_expressions.matches), ("~*", regular_expressions.matches_folded)):
        define(sign, "string string", "bool", found, f'({{0}} COLLATE "default" {sign} {{1}})', constant=frozenset({1}))
    for flags in ("", " string"):
        define(
            "regexp_replace",
            f"string string string{flags}",
            "string",
            regular_expressions.regexp_replace,
            call("regexp_replace"),
            constant=frozenset({1, 2, 3}),
        )


def _padded(name: str) -> Template:
    def written(args: Sequence[str]) -> str:
        length = within(f"v BETWEEN -2147483648 AND {functions.MOST_PADDED}", args[1], "::integer")
        return f"{name}({', '.join([args[0], length, *args[2:]])})"

    return written


def _hashes() -> None:
    define("md5", "string", "string", partial(functions.digest, "md5"), "md5({0})")
    for name in ("sha224", "sha256", "sha384", "sha512"):
        run = partial(functions.digest, name)
        define(name, "string", "string", run, f"encode({name}(convert_to({{0}}, 'UTF8')), 'hex')")

    keyed = "encode(hmac({0}, :{1}, 'sha256'), 'hex')"  # of pgcrypto; `:'name'` is a variable of psql
    define("hmac_sha256", "string string", "string", functions.hmac_sha256, keyed, constant=frozenset({1}))


def _arrays() -> None:
    """Columns that are arrays, which have type json during evaluation. The reader checks that the argument is an array."""
    define("cardinality", "json", "int", len, "cardinality({0})")
    define("array_length", "json int", "int", functions.array_length, "array_length({0}, {1})", constant=frozenset({1}))
    for t in SCALARS:
        stored = FUNCTIONS.get(f"as stored({t})")
        run = partial(functions.is_any, stored.run if stored else functions.itself)
        define("= any", f"{t} json", "bool", run, "({0} = ANY({1}))", strict=False)


def _json() -> None:
    define("case", "json", "json", functions.case, _case, strict=False, variadic=True)
    define("coalesce", "json", "json", functions.coalesce, call("coalesce"), strict=False, variadic=True)
    for sign, same in (("=", json_values.equal), ("<>", json_values.differ)):
        define(sign, "json json", "bool", same, f"({{0}} {sign} {{1}})")
    for sign, get, gives in (("->", json_values.get, "json"), ("->>", json_values.get_text, "string")):
        type_: TypeName = "json" if gives == "json" else "string"
        define(sign, "json string", type_, get, f"({{0}} {sign} {{1}}::text)")
        define(sign, "json int", type_, _int32_arguments(get), partial(_element, sign))
    path = frozenset({1})
    define("#>", "json string", "json", json_values.get_path, "({0} #> {1})", constant=path)
    define("#>>", "json string", "string", json_values.get_path_text, "({0} #>> {1})", constant=path)
    define("?", "json string", "bool", json_values.has_key, "({0} ? {1})")
    define("@>", "json json", "bool", json_values.contains, "({0} @> {1})")
    define("<@", "json json", "bool", json_values.contained, "({0} <@ {1})")
    is_array = "jsonb_typeof(v) = 'array'"
    define("jsonb_array_length", "json", "int", json_values.array_length, _where("jsonb_array_length(v)", is_array))
    define("jsonb_typeof", "json", "string", json_values.type_name, "jsonb_typeof({0})")
    define("to string", "json", "string", json_values.text_of, "{0}::text")
    define("to bool", "json", "bool", json_values.bool_of, _where("v::boolean", "jsonb_typeof(v) = 'boolean'"))
    sql = _where("v::numeric", "jsonb_typeof(v) = 'number'")
    define("to decimal", "json", "decimal", json_values.number_of, sql, scale="value")


def _element(sign: str, args: Sequence[str]) -> str:
    return f"({args[0]} {sign} {int32(args[1])})"


def fold_function(compare: Compare) -> str:
    """The key of the function that folds text which compares so."""
    return f"fold {'+'.join(compare)}(string)"


def compared_function(name: str, compare: Compare) -> str:
    """The key of `greatest` or `least` over text that compares so."""
    return f"{name} {'+'.join(compare)}(string,...)"


def _folds() -> None:
    """What reads compare with: texts are equal if their folded texts are. No author can name these functions. Of equal texts,
    `greatest` and `least` compare code points, so that the result is the same in every order of the rows."""
    for words, fold in functions.FOLDS.items():
        written = folded_text("{0}", words)
        define(f"fold {words}", "string", "string", fold, written)
        rank = partial(_folded_rank, fold)
        for name, pick, direction in (("greatest", max, "DESC"), ("least", min, "ASC")):
            run = partial(_picked_by, pick, rank)
            sql = partial(_picked_from, words, direction)
            define(f"{name} {words}", "string", "string", run, sql, strict=False, variadic=True)


def folded_text(sql: str, words: str) -> str:
    """SQL for the folded text, as `functions.FOLDS` folds it."""
    lowered = f'lower({sql} COLLATE "default")' if "ci" in words else sql
    return f"rtrim({lowered}, ' ')" if "trimmed" in words else lowered


def folded_order(sql: str, words: str, direction: str) -> str:
    """SQL for an order by the folded text, then by code points."""
    return f"{folded_text(sql, words)}{COLLATE} {direction}, {sql}{COLLATE} {direction}"


def _folded_rank(fold: Callable[[str], str], value: str) -> tuple[str, str]:
    return fold(value), value


def _picked_by(pick: Callable[..., Value], rank: Callable[[str], tuple[str, str]], *values: str | None) -> Value:
    return pick((value for value in values if value is not None), key=rank, default=None)


def _picked_from(words: str, direction: str, args: Sequence[str]) -> str:
    rows = ", ".join(f"({arg})" for arg in args)
    order = folded_order("v", words, direction)
    return f"(SELECT v FROM (VALUES {rows}) AS r(v) WHERE v IS NOT NULL ORDER BY {order} LIMIT 1)"


def _int32_arguments(function: Callable[..., Value]) -> Callable[..., Value]:
    """The function, which gives None for a count or position beyond PostgreSQL's 32-bit integer."""

    def bounded(text: str, *numbers: int) -> Value:
        return function(text, *numbers) if all(-(2**31) <= n < 2**31 for n in numbers) else None

    return bounded


def _counted(name: str) -> Template:
    return lambda args: f"{name}({args[0]}, {int32(args[1])})"


def _substring(args: Sequence[str]) -> str:
    start, length = map(int32, args[1:])
    return f"substring({args[0]}, {start}, nullif(greatest({length}, -1), -1))"


YEARS: Final = "v >= '0001-01-01 00:00:00+00' AND v < '10000-01-01 00:00:00+00'"
"""The moments that a timestamp can have."""


def _times() -> None:
    fields = {"year": (0, 4), "month": (5, 7), "day": (8, 10), "hour": (11, 13), "minute": (14, 16), "second": (17, 19)}
    for field, (start, end) in fields.items():

        def part(value: str, start: int = start, end: int = end) -> int:
            return int(value[start:end])

        if start < 10:
            define(f"extract {field}", "date", "int", part, f"extract({field} FROM {{0}})")
        if field != "second":
            define(f"extract {field}", "timestamp", "int", part, _of_utc(field))

        def cut(value: str, end: int = end) -> str:
            return value[:end] + "0001-01-01T00:00:00"[end:]

        define(f"date_trunc {field}", "timestamp", "timestamp", cut, _cut_in_utc(field))
    parts: tuple[tuple[str, Callable[[str], int]], ...] = (
        ("quarter", functions.quarter), ("week", functions.iso_week), ("isoyear", functions.iso_year),
        ("dow", functions.weekday), ("isodow", functions.iso_weekday), ("doy", functions.day_of_year),
    )  # fmt: skip
    for field, of in parts:
        define(f"extract {field}", "date", "int", of, f"extract({field} FROM {{0}})")
        define(f"extract {field}", "timestamp", "int", of, _of_utc(field))
    for field, begin in (("week", functions.week_begin), ("quarter", functions.quarter_begin)):
        sql = within(YEARS, _cut_in_utc(field))
        define(f"date_trunc {field}", "timestamp", "timestamp", begin, sql)
    define("extract second", "timestamp", "decimal", functions.seconds_of, _of_utc("second"), scale="value")
    define("extract epoch", "date", "decimal", functions.epoch_of_day, "extract(epoch FROM {0})", scale="value")
    define("extract epoch", "timestamp", "decimal", functions.epoch, _of_utc("epoch"), scale="value")
    between = "extract(epoch FROM {0} - {1})"
    define("seconds between", "timestamp timestamp", "decimal", functions.seconds_between, between, scale="value")
    for sign, run, shift in (
        ("+", functions.later, functions.days_later),
        ("-", functions.earlier, functions.days_earlier),
    ):
        sql = within(YEARS, f"(({{0}} AT TIME ZONE 'UTC') {sign} {{1}}::interval) AT TIME ZONE 'UTC'")
        define(f"{sign} interval", "timestamp string", "timestamp", run, sql, constant=frozenset({1}))
        define(sign, "date int", "date", shift, partial(_shifted_day, sign))
    pattern = frozenset({1})
    define("to_char", "date string", "string", functions.to_char, "to_char({0}::timestamp, {1})", constant=pattern)
    in_utc = "to_char({0} AT TIME ZONE 'UTC', {1})"
    define("to_char", "timestamp string", "string", functions.to_char, in_utc, constant=pattern)
    _zones()


def _zones() -> None:
    """A local time is a timestamp whose UTC it is. The last argument is the release of the rules: PostgreSQL has its own."""
    takes, constant = "timestamp string string", frozenset({1, 2})
    local = within(YEARS, "{0} AT TIME ZONE {1} AT TIME ZONE 'UTC'")
    define("local time", takes, "timestamp", zones.local_time, local, constant=constant)
    moment = within(YEARS, "{0} AT TIME ZONE 'UTC' AT TIME ZONE {1}")
    define("moment of", takes, "timestamp", zones.moment_of, moment, constant=constant)
    text = """rtrim(rtrim(to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), '.')"""
    define("text of local", "timestamp", "string", lambda value: value, text)


def _of_utc(field: str) -> str:
    return f"extract({field} FROM {{0}} AT TIME ZONE 'UTC')"


def _cut_in_utc(field: str) -> str:
    return f"(date_trunc('{field}', {{0}} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')"


def _shifted_day(sign: str, args: Sequence[str]) -> str:
    days = within(f"v BETWEEN -{functions.MOST_DAYS} AND {functions.MOST_DAYS}", args[1], "::integer")
    return within("v BETWEEN '0001-01-01' AND '9999-12-31'", f"{args[0]} {sign} {days}")


def _casts() -> None:
    """`to T`: the `cast` to a type. `as letter`: a bool as an argument of `concat`, which writes `t` for the `true` of a cast.
    `as stored`: from a stored value to its form during evaluation. `of scale`: the same for a decimal whose scale an expression
    reads; the source has these zeros. `without zeros`: for one of unknown scale. `without zone`: a cast to PostgreSQL's
    `timestamp`, whose text alone differs; `with zone`: back from a local time in UTC."""
    define("to decimal", "int", "decimal", int, "{0}::numeric", scale="same")
    for t in ("int", "decimal"):
        sql = within(RANGE, "{0}::numeric", "::double precision")
        define("to float", t, "float", functions.to_float, sql)
    define("to string", "int", "string", functions.number_text, "{0}::text")
    define("to string", "decimal", "string", functions.number_text, "{0}::text", scale="text")
    define("to timestamp", "date", "timestamp", lambda d: f"{d}T00:00:00", "({0}::timestamp AT TIME ZONE 'UTC')")
    define("to date", "timestamp", "date", lambda t: t[:10], "({0} AT TIME ZONE 'UTC')::date")
    define("to int", "decimal", "int", functions.int64(functions.to_int), within(INT64, "round({0})"))
    define("to int", "float", "int", functions.int64(round), within(_FLOAT64, "round({0})", "::bigint"))
    define("to int", "bool", "int", int, "{0}::integer")
    define(
        "to int", "string", "int", functions.int64(functions.int_of_text), within(INT64, _matched(functions.INTEGER))
    )
    define("to decimal", "float", "decimal", functions.decimal_from_float, "{0}::numeric", scale="value")
    define("to decimal", "string", "decimal", functions.decimal_of_text, _matched(functions.NUMBER), scale="value")
    define("of size", "decimal int int", "decimal", _fitted, _fit, constant=frozenset({1, 2}), scale="given")
    define("to string", "bool", "string", functions.bool_text, "{0}::text")
    define("as letter", "bool", "string", functions.bool_letter, "{0}")
    define("to string", "date", "string", str, "{0}::text")
    define("to string", "timestamp", "string", functions.timestamp_text, "(({0} AT TIME ZONE 'UTC')::text || '+00')")
    define("text without zone", "timestamp", "string", functions.clock_text, "({0} AT TIME ZONE 'UTC')::text")
    define("without zone", "timestamp", "timestamp", lambda value: value, "{0}")
    define("with zone", "timestamp", "timestamp", lambda value: value, "{0}")
    for t in SCALARS:
        define(f"to {t}", t, t, lambda value: value, "{0}", scale="same" if t == "decimal" else None)
    define("as stored", "float", "float", float, "{0}")
    define("of scale", "decimal int", "decimal", functions.of_scale, _first, constant=frozenset({1}), scale="given")
    define("without zeros", "decimal", "decimal", functions.without_zeros, "trim_scale({0})", scale="value")
    define("as stored", "timestamp", "timestamp", to_microseconds, "{0}")


def _first(args: Sequence[str]) -> str:
    return args[0]


_FLOAT64 = "v >= -9223372036854775808 AND v < 9223372036854775808"


def _matched(pattern: str) -> str:
    escaped = pattern.replace("{", "{{").replace("}", "}}")
    return f"substring({{0}} FROM '^ *({escaped}) *$')::numeric"


def _fitted(number: functions.Number, precision: int, scale: int) -> functions.Number | None:
    """The number as decimal(precision, scale): rounded. None if it has too many digits before the point."""
    result = functions.rounded(number, scale)
    return result if abs(result) < 10 ** (precision - scale) else None


def _fit(args: Sequence[str]) -> str:
    number, precision, scale = args
    return within(f"abs(v) < 1e{int(precision) - int(scale)}", f"round({number}, {scale})")


_GROUPS = (
    _operators, _comparisons, _logic, _numbers, _logarithms, _angles, _texts, _hashes, _folds, _times, _casts, _arrays,
    _json,
)  # fmt: skip
for _group in _GROUPS:
    _group()
