"""Every function and operator of expressions gives the value of Postgres, over awkward values."""

import json
import sys
import unicodedata
from decimal import Decimal
from itertools import product
from typing import Any

from processor.language.definitions.load import load
from processor.language.product.expressions.catalogue import FUNCTIONS
from tests.integration.product.conftest import Both

ENTITY = {
    "key": ["id"],
    "columns": {
        "id": "int", "a": "int", "b": "int", "d": "decimal", "e": "decimal(12,2)", "f": "float", "g": "float",
        "s": "string", "t": "string", "p": "bool", "q": "bool", "x": "date", "y": "date", "m": "timestamp",
        "n": "timestamp", "data": "json", "more": "json", "tags": "string[]", "order": "int", "end": "int",
        "ints": "int[]", "decimals": "decimal[]", "floats": "float[]", "bools": "bool[]", "dates": "date[]",
        "moments": "timestamp[]",
        "ci": {"type": "string", "compare": "ci"}, "trimmed": {"type": "string", "compare": "trimmed"},
        "both": {"type": "string", "compare": ["ci", "trimmed"]},
    },
}  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "a": [None, 0, 1, -7, 7, 2**63 - 1, -(2**63), 2**64 - 1],
    "b": [None, 0, 1, -1, 2, 3, -3, 2**63 - 1],
    "d": [None, "0", "1.5", "-2.5", "0.1", "12345678901234567890.123", "1E-20", "-1e25", "3", "0.000015"],
    "e": [None, "0", "3.00", "-0.5", "0.25", "1000", "7", "9999999999.99", "-1.5"],
    "f": [None, 0.0, 1.5, -2.5, 0.1, 1e20, 1e-7, 3.0, 1e120, -1e-125, 0.5],
    "g": [None, 0.0, 3.0, -0.5, 0.2, 1e16, 1e100, 1e-100],
    "s": [None, "", "abc", "ABC", "Straße", "İé", " pad ", "50%_x", "a\\b", "42", "-1.5e2", " 7 ", "éa😀z", "a,b,,c"],
    "t": [None, "", "b", "ß", "a%", "C", "😀", "abc", ","],
    "p": [None, True, False],
    "q": [None, True, False],
    "x": [None, "2020-02-29", "1999-12-31", "0001-01-01"],
    "y": [None, "2020-02-29", "2020-03-01", "9999-12-31"],
    "m": [None, "2020-02-29T10:20:30.5Z", "2020-02-29T00:00:00Z", "1999-12-31T23:59:59.999999Z", "2020-01-01T00:00:00.1234567Z"],
    "n": [None, "2020-02-29T10:20:30.500Z", "2020-02-29T10:20:30Z", "0999-01-01T05:00:00+05:45"],
    "data": [
        None, {"a": 1}, {}, [], 5, "a", True, {"a": None, "b": [1, None, {"c": "x"}]}, {"a": "x", "b": {"c": 1.50, "d": [1, 2]}},
        [1, "a", None, {"a": 7}], {"a": Decimal("4.50"), "bb": "ü\"\\\n\t\u0001", "ab": False}, ["b", "a", "a"], [[1, 2], [3]],
        {"a": [1, 2, 3], "0": "zero", "": 1}, {"a": "42", "b": " 7 "}, {"a": {"b": {"c": {"a": 1}}}},
        {"a": Decimal("1E+3")}, [5, 5],
    ],
    "more": [None, {"a": 1}, {"b": [1]}, [], 5, "a", [5], {"b": {}}, {"a": "x"}, [3], [{"a": 7}], {}, {"a": None}, True,
        ["a", "b"]],
    "tags": [None, ["x"], [], ["abc", None], ["", "b"], ["ß", "abc", "a%"]],
    "ints": [None, [0, 1], [7, None], [], [2**63 - 1, -7, 2**64 - 1], [None]],
    "decimals": [None, [Decimal("1.5"), Decimal(0)], [], [Decimal("3"), None]],
    "floats": [None, [1.5, 0.0], [0.1, 1e20, None], []],
    "bools": [None, [True], [False, None], []],
    "dates": [None, ["2020-02-29"], ["1999-12-31", None], []],
    "moments": [None, ["2020-02-29T10:20:30.5Z", "2020-01-01T00:00:00.1234567Z"], ["1999-12-31T23:59:59.999999Z", None], []],
    "order": [1],
    "end": [2],
}  # fmt: skip

EXPRESSIONS = """
a + b | a - b | a * b | a / b | a % b | mod(a, b) | -a | - -a | +a | a + b * 2 - 1 | (a + b) * 2 | a / 0 | a + 0.5 | 7 / 2 | 7 / -2
2147483647 + 1 | 9223372036854775807 + 1 | 9223372036854775808 + 1 | a = b | a <> b | a != b | a < b | a <= b | a > b | a >= b
d + e | d - e | d * e | d / e | e / d | d % e | -d | d / 3 | 1 / d | e / 7 | d + a | a / e | d = a | d < 2 | d / e / 3 | d * d * d
1.0 / 3 | 10 / 4.0 | 1e3 / 7 | d / 0 | d % 0 | avg_free
f + g | f - g | f * g | f / g | f * f * f | f / g / g | -f | f + 1 | f * 1.1 | f + d | f = g | f < g | f = 0.1 | f > a | f / 0 | 1 / f
round(a) | round(d) | round(e) | round(f) | round(d, 1) | round(d, 0) | round(d, -1) | round(e, 20) | round(a, -1) | trunc(d) | trunc(d, 1)
trunc(f) | floor(d) | floor(f) | floor(a) | ceil(d) | ceiling(f) | ceil(f) | abs(a) | abs(d) | abs(f) | sign(a) | sign(d) | sign(f) | a / sign(f)
s || t | s || a | a || s | s || p | s || round(d, 1) | s || x | s || m | s || null | s || e | e || s | e * e || '' | concat(p) | concat(p, e, m, x) | concat_ws('', p, q) | lower(s) | upper(s) | upper(t) | length(s) | char_length(t)
substring(s, 2) | substring(s, 0, 3) | substring(s, -1, 4) | substring(s, 2, 0) | substring(s, b) | substring(s, b, a) | substr(s, 1, 2)
substring(s from 2 for 2) | substring(s for 2) | substring(s, strpos(s, 'b') + 1) | left(s, 2) | left(s, -1) | left(s, b) | right(s, 2)
right(s, -1) | right(s, a) | right(s, 0) | trim(s) | trim(both 'a' from s) | ltrim(s) | rtrim(s) | trim(leading ' a' from s) | btrim(s, 'abc')
rtrim(s, t) | trim(trailing 'z' from s) | replace(s, 'b', 'xx') | replace(s, t, '-') | replace(s, '', 'x') | position(t in s) | strpos(s, t)
starts_with(s, t) | split_part(s, ',', 2) | split_part(s, ',', -1) | split_part(s, t, 1) | concat(s, t, a, null) | concat(s) | concat_ws(t, s, a)
concat_ws('-', s, null, t) | concat_ws(null, s)
s = t | s <> t | s < t | s <= t | s > 'b' | s >= t | s in ('abc', 'ABC') | s in ('abc', null) | s not in ('abc', t) | a in (1, 7, b) | d in (1.5, 3)
s like 'a%' | s like '%b_' | s not like '%a%' | s ilike 'ab%' | s ilike 'STRASS%' | s like '50\\%\\_%' | s like '50!%!_x' escape '!' | s like 'a\\\\b'
s like '' | s like '%' | t not ilike '%ß' | s like 'a\\b' escape ''
p and q | p or q | not p | p and not q or q | p = q | p <> q | p < q | p is true | p is not true | p is false | p is not false | p is unknown
p is null | p is not null | a is null | data is null | tags is not null | null is null | s isnull | s notnull | (a = b) is null
a is distinct from b | a is not distinct from b | s is distinct from t | f is distinct from g | m is distinct from n
coalesce(a, b) | coalesce(a, b, 0) | coalesce(s, t, 'none') | coalesce(d, a) | coalesce(f, d) | coalesce(m, n) | coalesce(x, m) | coalesce(null, a)
nullif(a, b) | nullif(s, '') | nullif(d, a) | nullif(m, n) | greatest(a, b) | least(a, b, 3) | greatest(s, t) | least(s, t) | greatest(d, a, f)
greatest(m, n) | least(x, y) | greatest(p, q) | lower(greatest(s, t)) | greatest(s, t) || 'x' | greatest(s, t) < t | greatest(s, t) = least(t, s)
case when a > b then 'more' when a = b then 'same' else 'less' end | case when p then a end | case s when 'abc' then 1 when t then 2 else 0 end
case when p then a else d end | case when p then 'x' else s end | case when q then null else m end | case when p then f else 1 end
a between 0 and 7 | a not between b and 7 | s between 'A' and 'b' | m between '2020-01-01' and '2020-12-31T00:00:00Z' | d between a and e
x = y | x < y | x > '2020-01-01' | x < date '2020-03-01' | m = n | m < n | m > '2020-02-29' | m >= '2020-02-29T10:20:30.5Z' | m > x | x = m
m > timestamp '2020-02-29 10:20:30' | m = '2020-02-29T15:50:30.5+05:30' | x - y | x::timestamp | m::date | m::text | m::timestamp::text | s || x::timestamp | x::text | m is null
extract(year from m) | extract(month from x) | extract(day from x) | extract(hour from m) | extract(minute from m) | extract(day from n)
date_trunc('year', m) | date_trunc('month', m) | date_trunc('day', x) | date_trunc('hour', m) | date_trunc('minute', n)
m + interval '1 month 3 days' | m - interval '1 year' | n - interval '31 days' | m + interval '1 day 02:30' | x + interval '1 month' | (x - interval '1 day')::text | interval '90' minute + m | m + interval '-5 s' | m - '2 weeks'::interval | m + interval '9000 years' | x - interval '1 mon' < y | m - interval '30 h' < n | (m + interval '1 s')::text
extract(epoch from m) | extract(epoch from x) | extract(epoch from m)::text | extract(epoch from x)::text | extract(second from m) | extract(second from n)::text | extract(epoch from m - n) | extract(epoch from m - n)::text | extract(epoch from m - x) | extract(epoch from m) / 3600
extract(quarter from m) | extract(quarter from x) | extract(week from m) | extract(week from x) | extract(isoyear from m) | extract(isoyear from x) | extract(dow from m) | extract(dow from x) | extract(isodow from m) | extract(isodow from x) | extract(doy from m) | extract(doy from x)
m at time zone 'UTC' | (m at time zone 'UTC')::date | (m at time zone 'utc')::text | (m::timestamp at time zone 'UTC')::text | date_trunc('day', m at time zone 'UTC') | (x at time zone 'UTC') < m
m at time zone 'Europe/Zurich' | (m at time zone 'America/New_York')::text | date_trunc('day', m at time zone 'Asia/Kathmandu') at time zone 'asia/kathmandu' | ((m at time zone 'Asia/Tokyo') at time zone 'UTC')::text | x at time zone 'Asia/Tokyo' | (x - 1)::timestamp at time zone 'Europe/Zurich' | m::timestamp at time zone 'Europe/Zurich' | timezone('Asia/Tokyo', m) | timezone('Asia/Tokyo', m)::timestamp::text | date_trunc('week', m, 'America/New_York') | date_trunc('day', m at time zone 'UTC') at time zone 'Asia/Tokyo' | extract(hour from m at time zone 'Europe/Zurich') | to_char(m at time zone 'Asia/Kolkata', 'YYYY-MM-DD HH24:MI') | m at time zone 'Asia/Tokyo' + interval '1 month' | (m at time zone 'Asia/Tokyo' + interval '1 day') at time zone 'Europe/Zurich' | m at time zone 'Europe/Zurich' < '2020-02-29T11:00:00' | m at time zone 'Europe/Zurich' > n::timestamp | greatest(m at time zone 'Europe/Zurich', x) | case when p then m at time zone 'Europe/Zurich' else x::timestamp end | s || (m at time zone 'Europe/Zurich') | extract(epoch from m at time zone 'Europe/Zurich' - n at time zone 'Asia/Tokyo') | json_build_array(m at time zone 'Europe/Zurich') | (m at time zone 'Europe/Zurich')::date
date_trunc('second', m) | date_trunc('week', m) | date_trunc('week', x) | date_trunc('quarter', n) | x + 30 | x - a | x + b | x - 1 < y | x + 9000000
to_char(m, 'YYYY-MM-DD"T"HH24:MI:SS.MS') | to_char(m, 'FMDD.FMMM.YY HH12:MI AM') | to_char(m, 'Month Day DY') | to_char(m, 'FMMonth FMDay, US') | to_char(x, 'IYYY-"W"IW-ID') | to_char(x, 'Mon Dy DDD Q, FMDDD') | to_char(n, 'yyyymmdd / HH24MI') | to_char(m, 'MONTH mon dy am HH:mi:ss') | to_char(x, 'FMday, FMMONTH, FMHH24')
a::text | round(d, 3)::text | trunc(d)::text | e::text | (e / 7)::text | (e % 0.7)::text | (e * 1.50)::text | p::text | a::decimal | a::float | d::float | f::decimal | d::int | f::int | e::bigint | p::int | s::int | s::decimal
cast(d as decimal(10,1)) | d::numeric(4,2) | cast(a as decimal(3)) | cast('42' as int) | '1.5'::decimal | cast(s as text) | cast(f as double precision)
cast(null as int) | (d + f)::decimal | (f * 1000)::int | cast(s as int) + 1 | '2020-01-01'::date | '2020-01-01T00:00:00Z'::timestamptz | 'true'::boolean
'x' | 5 | -5 | 1.50 | true | null | (a) | ("a") | 'it''s' | '%' | '{0}' | s || '{}' | "order" + 1 | order + 1 | order > 0 and end = 2 | a+b*-1
p <= q | p > q | p >= q | x <= y | x >= y | x <> y | f <= g | f >= g | f <> g | d <> e | m <> n | ceil(a) | trunc(a) | mod(d, e)
case when p then q else p end | case when p then x end | coalesce(p, q) | coalesce(x, y) | coalesce(data, json_build_array(x)) | case when p then data else json_build_object('a', d) end | greatest(x, y) | greatest(d, e) | least(p, q)
least(d, e) | least(f, g) | least(m, n) | p in (true, q) | x in (y, '2020-02-29') | f in (g, 1.5) | m in (n) | p is distinct from q
x is distinct from y | d is distinct from e | x is null | d is null | f is null | nullif(p, q) | nullif(x, y) | nullif(f, g)
extract(month from m) | extract(year from x) | p::bool | x::date | a::int | m::timestamp
not a = b | not s like 'a%' | a + b < 3 | a % 2 = 1 and d > 0 or p | s || t like '%b%' | a - b - 1 | a - (b - 1) | d / (e / d) | -a + b | - (a + b)
sqrt(a) | sqrt(d) | sqrt(e) | sqrt(f) | sqrt(2) | sqrt(2.0) | ln(a) | ln(d) | ln(e) | ln(f) | log(d) | log(f) | log(a) | log10(e) | log(d, e) | log(2.0, e)
exp(a) | exp(d) | exp(e) | exp(f) | exp(1.0) | power(a, b) | power(d, e) | power(e, d) | power(f, g) | power(e, 2) | pow(a, 0.5) | e ^ 2 * 3 | -e ^ 2 | a ^ 2 ^ 0.5 | power(2, 10) | power(d, -1)
sin(f) | cos(f) | tan(f) | asin(f) | acos(f) | atan(f) | atan2(f, g) | radians(f) | degrees(f) | sin(a) | cos(d) | asin(e / 100) | acos(2) | asin(-1) | atan2(0, 0)
acos(sin(radians(f)) * sin(radians(g)) + cos(radians(f)) * cos(radians(g)) * cos(radians(g - f))) * 6371
sqrt(e)::text | ln(e)::text | exp(e)::text | power(e, 2.5)::text | log(e)::text | log(e, 2.0)::text | sqrt(e) / 3 | round(power(e, 0.5), 2) | sqrt(-1) | ln(0) | power(0, -1)
(round(d, 3) + e)::text | (round(d, 3) - e)::text | (round(d, 3) % e)::text | mod(round(d, 3), e)::text | (-e)::text | abs(e)::text | (round(d, 3) / e)::text | coalesce(round(d, 3), e)::text | nullif(round(d, 3), e)::text | greatest(round(d, 3), e)::text | least(round(d, 3), e)::text | (case when p then round(d, 3) else e end)::text
round(e)::text | trunc(e, 1)::text | floor(e)::text | ceil(e)::text | a::decimal::text | e::decimal::text | f::decimal::text | s::decimal::text | (data -> 'a')::numeric::text | cast(d as decimal(10,1))::text | (e + 0.5 + a)::text
md5(s) | sha224(s) | sha256(s) | sha384(s) | sha512(t) | sha256(lower(trim(s))) | encode(sha256(convert_to(s, 'UTF8')), 'hex') | hmac_sha256(s, :mask) | encode(hmac(lower(t), :'mask', 'sha256'), 'hex') | initcap(s) | initcap(s || ' ' || t)
lpad(s, 5) | lpad(s, 5, t) | rpad(s, 4, 'xy') | rpad(s, a) | lpad(s, b, '') | lpad(s, -1) | rpad(s, 0, t) | lpad(a::text, 8, '0') | rpad(s, 2000000)
s ~ '^a' | s ~ '[0-9]+' | s !~ 'a|b' | s ~* 'STRASS|ABC' | s !~* '^ab' | s ~ '\\d' | t ~ '^\\w+$' | s ~ '' | s ~ '^(a|ab)(c|bcd)?$' | t ~* 'ß' | s ~ '\\s'
regexp_replace(s, 'b', 'x') | regexp_replace(s, '[a-z]', '*', 'g') | regexp_replace(s, '(.)(.+)', '\\2\\1') | regexp_replace(s, '', '-', 'g') | regexp_replace(s, 'A', '<\\&>', 'gi')
regexp_replace(s, '\\W+', '') | regexp_replace(s, '^ *(.*[^ ]) *$', '[\\1]') | regexp_replace(t, 'x*', '.', 'g')
format('%s-%s', s, a) | format('%2$s %1$s %%', s, t) | format('x') | format('%s', p) | format('%s %s', m, x)
cardinality(tags) | cardinality(ints) | array_length(tags, 1) | array_length(tags, 2) | s = any(tags) | s <> all(tags) | 'abc' = any(tags) | a = any(ints) | a = any(decimals)
d = any(decimals) | f = any(floats) | a = any(floats) | p = any(bools) | x = any(dates) | m = any(moments) | '2020-02-29' = any(dates) | s = any(array['abc', t]) | a <> all(array[1, 7]) | null = any(ints)
data -> 'a' | data -> 'b' | data -> 0 | data -> -1 | data -> b | data -> s | data ->> 'a' | data ->> 'b' | data ->> 0 | data ->> 1 | data -> 'b' -> 2 ->> 'c' | data ->> s | data -> a
data #> '{a}' | data #> '{b,2,c}' | data #> '{}' | data #> '{0}' | data #> '{-1,a}' | data #>> '{b}' | data #>> '{b,c}' | data #>> '{}' | data #>> '{a,b,c,a}' | data #>> '{a,x}'
data ? 'a' | data ? s | data ?| array['b', 'x'] | data ?& array['a', 'b'] | data ?& array['a'] | not data ? 'a' | data @> more | more <@ data | data @> '{"a": 1}' | data @> '[1]'
data @> '5' | data @> '"a"' | data @> '{"a": null}' | data @> '{"b": [{"c": "x"}]}' | '{"a": 1, "b": 2}' @> more | data = more | data <> more | data = '{"a": 1.0}' | data -> 'a' = 'null'
jsonb_array_length(data) | jsonb_array_length(data -> 'b') | json_array_length(data -> 'a') | jsonb_typeof(data) | jsonb_typeof(data -> 'a') | jsonb_typeof(data -> 'b' -> 1)
(data ->> 'a')::int | (data ->> 'b')::int | (data ->> 'a')::decimal | (data -> 'a')::int | (data -> 'a')::numeric | (data -> 'ab')::bool | (data -> 'a')::float | (data -> 'a')::text | data::text
(data -> 'a') is null | data ->> 'a' is null | (data ->> 'a') = 'x' | data ->> 'a' || s | s || (data ->> 'a') | coalesce(data ->> 'a', data ->> 'b', s) | case when data ? 'a' then data ->> 'a' end | data ->> 'a' in ('x', '42') | '{"x": 1}' @> data | coalesce(data -> 'a', more) | case when p then data when q then more -> 'a' end
""".replace("avg_free", "d / e")  # noqa: E501
COMPARED = """
{0} = t | {0} <> t | {0} < t | {0} <= s | {0} > 'ab' | {0} >= t | {0} in ('ABC', t) | {0} not in ('abc ', null) | {0} between 'A' and 'c'
{0} is distinct from s | nullif({0}, t) | nullif(t, {0}) | greatest({0}, t, 'B') | least({0}, t, null) | {0} like 'AB%' | {0} ilike '%b _'
case {0} when 'ABC' then 1 when t then 2 else 0 end | coalesce({0}, t) = 'abc ' | {0} || t = 'ABCb' | upper({0}) = 'abc' | {0} = ci || both
"""  # noqa: E501
"""Of each column that says how its text compares."""


SINGLE = ("data", "more", "tags", "order", "end", "ints", "decimals", "floats", "bools", "dates", "moments")


def expressions() -> list[str]:
    compared = "".join(COMPARED.format(name) for name in ("ci", "trimmed", "both"))
    lines = f"{EXPRESSIONS}{compared}".splitlines()
    return [text.strip() for line in lines for text in line.split(" | ") if text.strip()]


def rows() -> list[dict[str, Any]]:
    """Rows with every pair of values for columns that occur together in expressions, and the other columns in turn."""
    pairs = [("a", "b"), ("d", "e"), ("f", "g"), ("s", "t"), ("p", "q"), ("x", "y"), ("m", "n")]
    crossed = {pair: list(product(VALUES[pair[0]], VALUES[pair[1]])) for pair in pairs}
    found = []
    for n in range(max(map(len, crossed.values()))):
        row: dict[str, Any] = {"id": n}
        for pair, values in crossed.items():
            row |= dict(
                zip(pair, values[(n * 7) % len(values) if pair != ("s", "t") else n % len(values)], strict=True)
            )
        row |= {name: VALUES[name][n % len(VALUES[name])] for name in SINGLE}
        padded = row["s"] if row["s"] is None else row["s"] + " " * (n % 3)
        row |= {"ci": row["s"], "trimmed": padded, "both": padded}
        for name in ("d", "e"):
            row[name] = None if row[name] is None else Decimal(row[name])
        found.append(row)
    return found


def test_each_expression_has_the_value_of_postgres(both: Both) -> None:
    fields = {text: text for text in expressions()}
    definitions = load(
        {
            "entities.yaml": json.dumps({"v": ENTITY}),
            "p.json": json.dumps({"product": "p", "root": "v", "fields": fields}),
        }
    )
    documents = both(definitions, {"v": rows()})
    assert len(documents) == len(rows())


def test_the_expressions_use_every_overload_and_show_the_text_of_each_decimal_one() -> None:
    fields = {text: text for text in expressions()}
    definitions = load(
        {
            "entities.yaml": json.dumps({"v": ENTITY}),
            "p.json": json.dumps({"product": "p", "root": "v", "fields": fields}),
        }
    )
    used: set[str] = set()
    shown: set[str] = set()

    def visit(node: Any) -> None:
        used.add(getattr(node, "function", ""))
        if getattr(node, "function", "") == "to string(decimal)":
            shown.add(getattr(node.args[0], "function", ""))
        for arg in getattr(node, "args", ()):
            visit(arg)

    for _, expression in definitions.products["p"].selection.members:  # type: ignore[union-attr]
        visit(getattr(expression, "node", None))
    assert sorted(set(FUNCTIONS) - used) == []
    decimals = {key for key, function in FUNCTIONS.items() if function.gives == "decimal"}
    assert decimals - shown == {"without zeros(decimal)"}, (
        "a text shows the scale of each decimal result that authors write"
    )


def test_lower_upper_and_ilike_know_every_letter_that_python_knows(postgres_url: str, both: Both) -> None:
    """Unicode 16, which the embedded Postgres has, gave two old letters capitals: Python 3.11 has Unicode 14."""
    newer = "\u019b\u0264"
    known = (chr(n) for n in range(1, sys.maxunicode + 1) if unicodedata.category(chr(n)) not in ("Cn", "Cs"))
    assigned = [letter for letter in known if letter not in newer]
    texts = ["".join(assigned[n : n + 2_000]) for n in range(0, len(assigned), 2_000)]
    fields = {"lower": "lower(s)", "upper": "upper(s)", "ilike": "s ilike '%ÄÉΣЖ%'"}
    product = {"product": "p", "root": "v", "fields": fields}
    documents = both(
        load({"entities.yaml": json.dumps({"v": ENTITY}), "p.json": json.dumps(product)}),
        {"v": [{"id": n, "s": text} for n, text in enumerate([*texts, "xäéσжx"])]},
    )
    assert [d["ilike"] for d in documents.values()].count(True) == 1
