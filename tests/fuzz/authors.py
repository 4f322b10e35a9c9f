"""Mutated inputs of authors: definitions, expressions, queries, and product tests."""

import json
from collections.abc import Mapping
from itertools import islice
from random import Random
from typing import Any, cast

from processor.engine.rounds.trial import run_case
from processor.language.definitions.load import load
from processor.language.definitions.product_tests import read_cases
from processor.values import canonical_json
from processor.values.record import Record
from tests.fuzz.examples import NAMES, definitions_of, plan_of, records_of, tests_of, texts_of
from tests.fuzz.finding import SETTINGS, readable_errors, try_records, use_definitions
from tests.fuzz.mutations import VALUES, mutate_text

ENTITIES = {
    "t": {
        "key": ["id"],
        "columns": {
            "id": "int", "a": "int", "b": "int", "d": "decimal", "e": "decimal(12,2)", "f": "float", "g": "float",
            "s": "string", "u": "string",
            "p": "bool", "q": "bool", "x": "date", "m": "timestamp", "j": "json", "l": "int[]", "k": "json[]",
        },
    }
}  # fmt: skip
EXPRESSIONS = """
a + b * 2 | a / b % 3 | -a | d * e / 3 | f * g | f * f * f | f / g | round(d, | 1) | trunc(f) | abs(a) | s || u
lower(s) | upper(u) | substring(s, a, b) | left(s, 2) | right(s, a) | split_part(s, ',', 2) | concat_ws('-', s, a)
replace(s, u, | 'x') | position(s in u) | s like 'a%' | s not ilike '%b_' | s like '50!%' escape '!'
a in (1, 2, b) | a between b and 7 | p and not q or p | a is null | a is distinct from b | coalesce(a, b, 0)
case when a > 1 then s when p then u else 'z' end | nullif(a, b) | greatest(d, f, 1) | extract(year from m)
date_trunc('day', m) | x - x | cast(s as int) | s::decimal | a::string | d::decimal(5, | 2) | m::date
x::timestamp | m >= '2026-01-01' | x < '2020-02-29' | j is null | l is null | count(c) | sum(c.f) | avg(c.d)
min(c.s) | max(c.m) | o.s | o.f + 1 | count(c) > 1 and sum(c.a) < 5 | (a = b) = p | 9223372036854775807 + a
d * d * d * d | c.a | * | sqrt(d) | power(d, e) | power(f, a) | exp(e) | ln(f) | log(e, d) | md5(s) | sha256(u) | initcap(s)
lpad(s, a, u) | s ~ '^(a|b)+\\d{1,3}$' | s ~* '[^a-c\\s]' | regexp_replace(s, '(.)(a*)', '\\2\\1', 'gi') | format('%s %1$s', s)
a = any(l) | 7 <> all(l) | cardinality(l) | array_length(l, 1) | j -> 'a' | j ->> 0 | j #>> '{a,b}' | j ? s | j @> '{"a": 1}'
j ?& array['a'] | (j -> 'a')::int | (j ->> 'a')::decimal | jsonb_array_length(j) | jsonb_typeof(j -> s) | j::string
m + interval '1 month' | x - interval '2 days 03:00' | x + a | x - b | extract(epoch from m) | extract(epoch from m - x)
extract(isodow from x) | date_trunc('week', m) | to_char(m, 'FMDD. Month YYYY "at" HH24:MI:SS.US') | to_char(x, 'IYYY-IW')
m > clock - interval '1 year' | clock::date - x | m between now() and clock + interval '2 h' | extract(hour from clock) > a
acos(sin(radians(f)) * cos(d)) | atan2(f, | degrees(a) | tan(g) | asin(2)
m + interval '900 years' < clock | date_trunc('month', clock) = date_trunc('month', m) | current_date + a | clock
""".replace("\n", " | ")


def definitions(random: Random) -> None:
    """A file of an example's definitions."""
    name = random.choice(NAMES)
    texts = dict(texts_of(name))
    file = random.choice(sorted(texts))
    texts[file] = mutate_text(texts[file], random)
    with readable_errors((name, file, texts[file])):
        loaded = load(texts)
        use_definitions(loaded, prices=random.random() < 0.05)
        try_records(loaded, records_of(name)[:20], (name, file, texts[file]))


def expressions(random: Random) -> None:
    """Expressions of every function, at rows of awkward values."""
    known = [text.strip() for text in EXPRESSIONS.split(" | ")] + ["s || u"]
    own = [_expression(random, known) for _ in range(3)]
    product = {
        "product": "p", "root": "t", "fields": {f"x{n}": text for n, text in enumerate(own)},
        "join": {"o": {"one": "t", "on": {"id": "a"}}, "c": {"many": "t", "on": {"a": "id"}}},
    }  # fmt: skip
    if random.random() < 0.5:
        product["clock"] = random.choice(("1 s", "1 minute", "6 h", "1 day"))
    if random.random() < 0.3:
        product["where"] = _expression(random, known)
    with readable_errors(product):
        loaded = load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)})
        use_definitions(loaded, prices=False)
        rows = [_row(random, n) for n in range(6)]
        try_records(
            loaded, [_record("t", n, canonical_json.encode(row)) for n, row in enumerate(rows)], (product, rows)
        )


def queries(random: Random) -> None:
    """A product given as SQL."""
    sql = "select t.id, t.s as name, c.a, c.b * 2 as twice\nfrom t\nleft join t as c on c.a = t.id and c.p\n"
    sql += "where t.b > 1\norder by c.d desc"
    product = {"product": "p", "sql": mutate_text(sql, random)}
    with readable_errors(product):
        use_definitions(load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)}), prices=False)


def product_tests(random: Random) -> None:
    """A file of product tests."""
    name = random.choice(NAMES)
    texts = dict(tests_of(name))
    file = random.choice(sorted(texts))
    texts[file] = mutate_text(texts[file], random)
    with readable_errors((name, texts[file])):
        for case in islice(read_cases(texts, definitions_of(name)), 3):
            run_case(case, plan_of(name), SETTINGS)


def _expression(random: Random, known: list[str]) -> str:
    text = random.choice(known)
    while random.random() < 0.5:
        text = random.choice(
            (f"({text}) = ({random.choice(known)})", f"coalesce({text}, {random.choice(known)})", f"({text})::string")
        )
    return mutate_text(text, random) if random.random() < 0.7 else text


def _row(random: Random, number: int) -> dict[str, Any]:
    columns: dict[str, str] = dict(cast("Mapping[str, str]", ENTITIES["t"]["columns"]))
    ordinary: dict[str, list[Any]] = {
        "int": [0, 1, -7, 2**63 - 1, -(2**63), 2**64], "decimal": [0, "1.5", "-1e25", "1e125", "1E-130"], "float": [0, 1.5,
        1e126, -1e-130, 1e20],
        "string": ["", "abc", "a,b", "\x00", "é", "-1.5e2", "9" * 400, "İ"], "bool": [True, False], "date": ["2020-02-29",
        "0001-01-01", "9999-12-31"],
        "timestamp": ["2020-02-29T10:20:30.1234567Z", "9999-12-31T23:59:59.9999999Z", "0001-01-01T00:00:00Z"],
    }  # fmt: skip
    row = {}
    for name, written in columns.items():
        choices = ordinary.get(str(written).partition("(")[0], VALUES)
        row[name] = None if random.random() < 0.2 else random.choice(choices)
    return {"id": number, "a": random.randrange(6)} | {n: v for n, v in row.items() if n not in ("id", "l", "k")}


def _record(topic: str, offset: int, value: bytes) -> Record:
    return Record(topic=topic, partition=0, offset=offset, key=None, value=value)
