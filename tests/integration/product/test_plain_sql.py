"""Random expressions over numbers, texts, times and truth have the value that Postgres gives to the author's own text.

The printed SQL has no part in it: Postgres runs the text as it is, over tables with the types of a source.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from processor.language.definitions.load import load, load_stored
from processor.language.definitions.problems import DefinitionError
from processor.tools.inspect.oracle import Oracle, oracle
from tests.integration.product.conftest import Rows, documents

COLUMNS = {
    "id": ("int", "bigint"), "team": ("int", "bigint"), "a": ("int", "bigint"), "b": ("int", "integer"),
    "e": ("decimal(12,2)", "numeric(12,2)"), "h": ("decimal(38,24)", "numeric(38,24)"), "k": ("decimal(6,0)", "numeric(6,0)"),
    "n": ("decimal", "numeric"), "f": ("float", "double precision"), "p": ("bool", "boolean"),
    "s": ("string", 'text collate "C"'),    "x": ("date", "date"), "m": ("timestamp", "timestamptz"),
}  # fmt: skip
ENTITIES = {
    "team": {"key": ["id"], "columns": {"id": "int"}},
    "v": {"key": ["id"], "columns": {name: declared for name, (declared, _) in COLUMNS.items()}},
}
VALUES: dict[str, list[Any]] = {
    "a": [None, 0, 1, -7, 10, 123456789012],
    "b": [None, 0, 3, -1, 40000],
    "e": [None, "0.00", "4.50", "-2.00", "0.05", "9999999999.99", "100.00", "-0.50", "3.10"],
    "h": [None, "1.000000000000000000000000", "2.500000000000000000000001", "-0.300000000000000000000000", "12345678901234.5"],
    "k": [None, "0", "7", "-120", "999999"],
    "n": [None, "2.50", "1.000000000000000000000", "100", "-0.10", "12345678901234567890.5"],
    "f": [None, 0.0, 1.5, -0.1, 1e20, 1e-7, 12345.678],
    "p": [None, True, False],
    "s": [None, "", "4.50", "t", " 1.250 ", "2e2", "no", "-0.0"],
    "x": [None, "2020-02-29", "0001-01-01", "9999-12-31"],
    "m": [None, "2026-03-01T10:00:00Z", "2026-03-01T10:00:00.5Z", "0999-12-31T23:59:59.000120Z", "2026-07-01T00:30:00+02:00"],
}  # fmt: skip
NO_VALUE = object()
PROPERTY = settings(suppress_health_check=list(HealthCheck))
REFUSED = ("whose texts may differ", "differ from row to row", "is a decimal without a scale")


class Writer:
    """Writes random expressions. `number`, `text`, `truth`: of these types; `depth`: how many calls they may nest."""

    def __init__(self, rng: Random, columns: tuple[str, ...] = ("e", "h", "k", "a", "e")) -> None:
        self.rng, self.columns = rng, columns

    def number(self, depth: int) -> str:
        """A number of PostgreSQL's type numeric, as all that it is made of."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.1:
            literal = rng.choice(
                ["1.50", "0.7", "3.000", "0.0", "-2.50", "1e2", "1.0e1", "0.30e-2", "'1.250'::numeric"]
            )
            chosen = rng.choice([*self.columns, literal])
            return f"{chosen}::numeric" if chosen == "a" else chosen
        x, y = self.number(depth - 1), self.number(depth - 2)
        digits, size = rng.choice([0, 1, 2, 5, 20, -1]), rng.choice(["12,2", "30,10", "8", "20,0"])
        return rng.choice([
            f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"({x} / nullif({y}, 0))", f"({x} % nullif({y}, 0))",
            f"({x} / 3)", f"(1 / nullif({x}, 0))", f"round({x}, {digits})", f"trunc({x}, {digits})", f"round({x})",
            f"floor({x})", f"ceil({x})", f"abs({x})", f"(- {x})", f"({x})::numeric({size})", f"coalesce({x}, {y})",
            f"coalesce({x}, 0)", f"case when {self.truth(depth - 2)} then {x} else {y} end", f"greatest({x}, {y})",
            f"least({x}, {y}, 1.50)", f"nullif({x}, {y})", f"case when p then {x} end", f"mod({x}, nullif({y}, 0))",
            f"(a + {x})", f"({x} * b)", f"({x} / nullif(b, 0))", f"(f * 10)::numeric + {x}", f"cast({x} as numeric)",
        ])  # fmt: skip

    def text(self, depth: int) -> str:
        """A text, mostly of numbers, times and truth."""
        rng = self.rng
        times = [
            "x",
            "m",
            "m::timestamp",
            "x::timestamp",
            "x::timestamptz",
            "m::date",
            "date_trunc('hour', m)",
            "coalesce(m, x)",
            "m + interval '1 day 02:30'",
            "m at time zone 'Europe/Zurich'",
            "date_trunc('day', m at time zone 'asia/tokyo') at time zone 'Asia/Tokyo'",
            "date_trunc('week', m, 'America/New_York')",
            "m::timestamp at time zone 'America/New_York'",
            "coalesce(m at time zone 'Asia/Tokyo', x)",
            "m at time zone 'Asia/Tokyo' + interval '1 month'",
            "timezone('Europe/Zurich', m)::timestamp - interval '1 day'",
            "m at time zone 'Europe/Zurich' at time zone 'UTC'",
        ]
        parts = ["a", "b", "p", "extract(year from m)", "extract(minute from m)", "a - 7", "b / 3", "(a % 4)"]
        value = rng.choice([self.number(depth), self.truth(depth - 1), rng.choice(times), rng.choice(parts)])
        other, when = self.text(depth - 1) if depth > 0 else "s", self.truth(depth - 1)
        return rng.choice([
            f"({value})::text", f"({value})::text", f"(({value}) || ' EUR')", f"('<' || ({value}))", f"concat({value}, '')",
            f"concat({value}, {other}, p)", f"concat_ws('-', {value}, m, s, x)", f"left({other}, 4)",
            f"replace({other}, '0', '_')", f"({other} || {other})", f"coalesce({other}, 'none')",
            f"case when {when} then {other} else s end", f"upper({other})", f"split_part({other}, '.', 2)",
        ])  # fmt: skip

    def truth(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0:
            return rng.choice(
                [
                    "p",
                    "a > 0",
                    "e = 4.5",
                    "s = '4.50'",
                    "m > '2020-01-01'",
                    "m::timestamp < m at time zone 'Asia/Tokyo'",
                ]
            )
        return rng.choice([
            f"({self.number(depth - 1)} = {self.number(depth - 1)})", f"({self.text(depth - 1)} like '%.50%')",
            f"({self.text(depth - 1)} <> '2.00')", f"({self.text(depth - 1)} in ('4.50', 't', 'true', '0'))",
            f"({self.number(depth - 1)} > {self.number(depth - 1)})", f"(length({self.text(depth - 1)}) = 4)",
        ])  # fmt: skip

    def any(self, depth: int) -> str:
        return self.rng.choice([self.number, self.text, self.text, self.truth])(depth)

    def total(self, depth: int) -> str:
        """A value of all rows of a group."""
        rng = self.rng
        number = f"{rng.choice(['sum', 'avg', 'min', 'max'])}({self.number(depth)})"
        return rng.choice([
            f"{number}::text", f"round({number}, 2)::text", f"({number} || ' EUR')", f"({number} / 3)::text",
            f"concat({number}, '/', count(*))", f"coalesce({number}, 0)::text", "(sum(a) / count(*))::text", "avg(a)::text",
            f"min({self.text(depth - 1)})", f"length(({number} * 1.50)::text)", number,
        ])  # fmt: skip


class Source:
    """Tables with the types of a source, and what Postgres answers over them to an author's own text."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def fill(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._connection.execute("truncate v")
        for row in rows:
            names, places = ", ".join(row), ", ".join(["%s"] * len(row))
            self._connection.execute(f"insert into v ({names}) values ({places})", list(row.values()))

    def values(self, select: str, key: str) -> dict[int, Any]:
        """The value for each key; NO_VALUE where Postgres answers with an error. `select`: with `{key}` for the key; `key`: the
        column of all keys."""
        keys = f"select distinct {key} as key from v"
        try:
            found = self._connection.execute(f"select key, ({select.replace('{key}', 'k.key')}) from ({keys}) k")
            return dict(found.fetchall())
        except psycopg.DataError:
            return {one: self._one(select, one) for (one,) in self._connection.execute(keys).fetchall()}

    def _one(self, select: str, key: int) -> Any:
        try:
            return self._connection.execute(select.replace("{key}", str(key))).fetchall()[0][0]
        except psycopg.DataError:
            return NO_VALUE


@pytest.fixture(scope="module")
def source(postgres_url: str) -> Iterator[Source]:
    schema = f"plain_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        columns = ", ".join(f"{name} {kind}" for name, (_, kind) in COLUMNS.items())
        connection.execute(f"create schema {schema}; set search_path to {schema}; set timezone to 'UTC'")
        connection.execute(f"create table v ({columns})")
        yield Source(connection)
        connection.execute(f"drop schema {schema} cascade")


def draw_rows(rng: Random) -> list[dict[str, Any]]:
    return [{"id": n, "team": n % 3, **{name: rng.choice(of) for name, of in VALUES.items()}} for n in range(12)]


def numbered(texts: list[str]) -> dict[str, str]:
    return {f"c{n}": text for n, text in enumerate(texts)}


def taken(texts: list[str], level: Callable[[str], dict[str, Any]]) -> list[str]:
    """The expressions that statestore takes. It refuses a text only because nobody knows the scale."""
    found = []
    for text in dict.fromkeys(texts):
        try:
            product = {"product": "p", "root": "v", **level(text)}
            load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)})
            found.append(text)
        except DefinitionError as error:
            if not any(reason in str(error) for reason in REFUSED):
                raise
    return found


def alike(ours: Any, theirs: Any) -> bool:
    """Whether the values are equal: numbers by value, texts by each character. Where Postgres has no value but an error, such as
    a number beyond `numeric(12,2)`, a part of the expression is null, and the rest of it decides."""
    if theirs is NO_VALUE:
        return True
    if isinstance(theirs, bool | str) or ours is None or theirs is None:
        return type(ours) is type(theirs) and bool(ours == theirs)
    return bool(Decimal(ours) == Decimal(theirs))


@pytest.fixture(scope="module")
def tables(postgres_url: str) -> Iterator[Oracle]:
    entities = load({"entities.yaml": json.dumps(ENTITIES)}).entities
    with oracle(postgres_url, f"printed_{uuid.uuid4().hex}", entities) as made:
        yield made


def assert_equal(source: Source, tables: Oracle, product: dict[str, Any], rows: Rows, selects: dict[str, str]) -> None:
    """Each member of the documents has the value of its select, and the printed SQL answers the same documents."""
    definitions = load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)})
    ours = documents(definitions, rows)
    source.fill(rows["v"])
    for name, select in selects.items():
        theirs = source.values(select, "team" if product["root"] == "team" else "id")
        for key, value in theirs.items():
            assert alike(ours[f'{{"id":{key}}}'][name], value), (select, key, rows["v"])
    tables.load(rows)
    assert tables.documents(definitions.products["p"]) == ours


@PROPERTY
@given(rng=st.randoms(use_true_random=False))
def test_an_expression_has_the_value_that_postgres_gives_to_its_own_text(
    source: Source, tables: Oracle, rng: Random
) -> None:
    writer = Writer(rng)
    drawn = [writer.any(rng.choice([1, 2, 3])) for _ in range(25)]
    texts = numbered(taken(drawn, lambda text: {"fields": {"c": text}}))
    selects = {name: f"select {text} from v where v.id = {{key}}" for name, text in texts.items()}
    assert_equal(source, tables, {"product": "p", "root": "v", "fields": texts}, {"v": draw_rows(rng)}, selects)


@PROPERTY
@given(rng=st.randoms(use_true_random=False))
def test_an_aggregate_has_the_value_that_postgres_gives_to_its_own_text(
    source: Source, tables: Oracle, rng: Random
) -> None:
    writer, on = Writer(rng), {"many": "v", "on": {"team": "id"}}
    drawn = [writer.total(rng.choice([1, 2])) for _ in range(20)]
    texts = numbered(taken(drawn, lambda text: {"root": "team", "embed": {"c": {**on, "value": text}}}))
    product = {"product": "p", "root": "team", "embed": {name: {**on, "value": text} for name, text in texts.items()}}
    selects = {name: f"select {text} from v where v.team = {{key}}" for name, text in texts.items()}
    assert_equal(source, tables, product, {"team": [{"id": n} for n in range(3)], "v": draw_rows(rng)}, selects)


@PROPERTY
@given(rng=st.randoms(use_true_random=False))
def test_the_text_of_a_join_has_the_value_of_postgres(source: Source, tables: Oracle, rng: Random) -> None:
    """The join shows a number, and the level above makes its text, or divides it. Where the scale of the number differs from row
    to row, a quotient counts the digits of its value, so Postgres answers to the printed SQL alone."""
    writer, on = Writer(rng), {"one": "v", "on": {"id": "id"}}
    above = rng.choice(["c::text", "c || ' EUR'", "(c / 3)::text", "round(c / 7, 3)", "concat(c * 2.0, p)"])

    def level(texts: dict[str, str]) -> dict[str, Any]:
        fields = {name: above.replace("c::", f"j{name}::").replace("c ", f"j{name} ") for name in texts}
        return {"fields": fields, "join": {f"j{name}": {**on, "value": text} for name, text in texts.items()}}

    texts = numbered(taken([writer.number(rng.choice([0, 1, 2])) for _ in range(20)], lambda text: level({"c": text})))
    selects = {
        name: f"select {above} from (select {text} as c, p from v where v.id = {{key}}) r"
        for name, text in texts.items()
        if "c / 7" not in above
    }
    assert_equal(source, tables, {"product": "p", "root": "v", **level(texts)}, {"v": draw_rows(rng)}, selects)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("n::text", "`n` is a decimal without a scale"),
        ("n || ' EUR'", "`n` is a decimal without a scale"),
        ("concat(case when p then n else e end)", "`n` is a decimal without a scale"),
        ("(n / 3)::text", "`n` is a decimal without a scale"),
        ("sum(rows.n)::text", "`n` is a decimal without a scale"),
        ("max(case when rows.p then 1.5 else 1.50 end)::text", "`max` takes one of several equal numbers"),
        ("length(ratio::text)", "the digits of `ratio` differ from row to row"),
        ("date_trunc('day', m::timestamp)::text", "may have a time zone or not"),
        ("max(rows.m::timestamp)::text", "may have a time zone or not"),
        ("concat(clock)", "may have a time zone or not"),
        ("'at ' || coalesce(x::timestamp, m)", "may have a time zone or not"),
    ],
)
def test_a_text_whose_digits_nobody_knows_is_refused(expression: str, reason: str) -> None:
    same = {"one": "v", "on": {"id": "id"}}
    joins = {
        "rows": {"many": "v", "on": {"team": "team"}},
        "ratio": {**same, "value": "e / 3"},
        "clock": {**same, "value": "m::timestamp"},
    }
    product = {"product": "p", "root": "v", "join": joins, "fields": {"c": expression}}
    with pytest.raises(DefinitionError, match=re.escape(reason)):
        load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)})


def test_a_decimal_without_a_scale_has_text_where_the_expression_says_its_digits(
    source: Source, tables: Oracle
) -> None:
    texts = numbered(
        ["round(n, 2)::text", "n::numeric(30,4) || ''", "trunc(n, 1)::text", "floor(n)::text", "(n > 2)::text"]
    )
    rows = [{"id": i, "team": 0, "n": n} for i, n in enumerate(VALUES["n"])]
    selects = {name: f"select {text} from v where v.id = {{key}}" for name, text in texts.items()}
    assert_equal(source, tables, {"product": "p", "root": "v", "fields": texts}, {"v": rows}, selects)


def test_a_quotient_of_a_decimal_without_a_scale_counts_the_digits_of_its_value(tables: Oracle) -> None:
    """Also where the table has more zeros than a row keeps: the printed SQL says so."""
    product = {
        "product": "p",
        "root": "v",
        "fields": {"third": "n / 3", "mean": "avg(rows.n)", "text": "round(n / 3, 3)::text"},
    }
    joins = {"join": {"rows": {"many": "v", "on": {"team": "team"}}}}
    definitions = load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product | joins)})
    rows = [{"id": i, "team": 0, "n": n} for i, n in enumerate(VALUES["n"])]
    tables.load({"v": rows})
    ours = documents(definitions, {"v": rows})
    assert tables.documents(definitions.products["p"]) == ours
    assert ours['{"id":2}'] == {
        "third": Decimal("0.33333333333333333333"),
        "mean": ours['{"id":1}']["mean"],
        "text": "0.333",
    }


def test_a_registry_of_an_earlier_version_keeps_the_texts_that_this_version_refuses() -> None:
    """A job with such a product must start. `check` and `apply` refuse the definition."""
    product = {"product": "p", "root": "v", "fields": {"c": "n::text", "d": "(n / 3)::text"}}
    texts = {"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)}
    assert [name for name, _ in load_stored(texts).products["p"].selection.members] == ["c", "d"]  # type: ignore[union-attr]
