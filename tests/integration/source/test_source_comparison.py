"""A comparison names exactly the rows that differ, with any kind of key, in pages, and continues where it broke off."""

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import Engine

from processor.cli.source import source_lines
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.decode import decode
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.source.compared_table import ComparedTable, compare_with
from processor.tools.source.comparison import ComparedEntity, DigestFile, SourceComparison, repair_letter
from processor.tools.source.session import SourceSession, read_source_tables, source_session, table_of
from processor.values.record import Change, Record, Rejected

ROWS = 250
ENTITIES = """
item: {topic: app.public.item, source: SCHEMA.item, key: [id], columns: {id: int, name: string, n: "decimal(8,2)", at: timestamp}}
word: {source: SCHEMA.word, key: [a, b], columns: {a: string, b: int, doc: json, ratio: float, gone: string}}
"""
TABLES = """
create table item (id bigint primary key, name text, n numeric(8,2), at timestamptz, extra text);
create table word (a text collate "C", b int, doc jsonb, ratio real, primary key (a, b));
"""


@pytest.fixture
def source(psql: Engine, schema: str, postgres_url: str) -> Iterator[SourceSession]:
    with psql.begin() as connection:
        connection.exec_driver_sql(f"create schema {schema}; set local search_path to {schema}; {TABLES}")
        connection.exec_driver_sql(
            f"insert into item select i - 100, 'Zoë:' || i, i / 10.0, 'epoch'::timestamptz + i * interval '0.1 s' "
            f"from generate_series(1, {ROWS}) i"
        )
        connection.exec_driver_sql(
            f"insert into word select chr(97 + i %% 26) || i %% 7, i, jsonb_build_object('b', i, 'a', 1.50), i / 3.0 "
            f"from generate_series(1, {ROWS}) i"
        )
    with source_session(postgres_url.replace("+psycopg", "")) as session:
        yield session


def filled(source: SourceSession, schema: str) -> Trial:
    """A table with the rows of the source."""
    trial = Trial(plan=plan_alone(load({"entities.yaml": ENTITIES.replace("SCHEMA", schema)}), 3), settings=Settings())
    for entity, columns in (("item", "id, name, n, at"), ("word", "a, b, doc, ratio")):
        rows = source.read_rows(f"select row_to_json(r)::text from (select {columns} from {schema}.{entity}) r")
        topic = trial.driver.plan.entities[entity].entity.topic
        trial.batch([record(topic, n, json.loads(row)) for n, (row,) in enumerate(rows)])
    return trial


def record(topic: str, offset: int, row: object, key: object = None) -> Record:
    text = None if key is None else json.dumps(key).encode()
    return Record(topic=topic, partition=0, offset=offset, key=text, value=row and json.dumps(row).encode())  # type: ignore[arg-type]


def change(psql: Engine, *statements: str) -> None:
    with psql.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def tables(trial: Trial, session: SourceSession) -> list[ComparedTable]:
    known = read_source_tables(session)
    made = []
    for entity in trial.driver.plan.entities.values():
        table = table_of(entity.entity, known)
        assert table is not None
        compared = compare_with(entity, table, mysql=False)
        assert isinstance(compared, ComparedTable)
        made.append(compared)
    return made


def catalogue(session: SourceSession) -> int:
    """The bytes of the catalogue, which `tables` reads."""
    before = session.bytes_read
    read_source_tables(session)
    return session.bytes_read - before


def comparison(trial: Trial, session: SourceSession, path: Path | None = None) -> SourceComparison:
    return SourceComparison(
        session=session,
        store=trial.store,
        digests=DigestFile(path),
        passed=lambda: None,
        report=lambda *_: None,
        page=40,
    )


def compare(trial: Trial, session: SourceSession) -> list[ComparedEntity]:
    session.begin_snapshot()
    made, found = comparison(trial, session), tables(trial, session)
    for table in found:
        made.scan(table)
    return [made.result(table) for table in found]


ODD = f"1{'0' * 40}.1"
"""A number of 42 digits."""


def test_values_that_a_type_cannot_hold_compare_as_null_where_the_entity_says_so(
    psql: Engine, schema: str, source: SourceSession
) -> None:
    change(
        psql,
        f"create table {schema}.odd (id int primary key, day date, at timestamp, zoned timestamptz, n numeric, r float8)",
        f"insert into {schema}.odd values (1, 'infinity', '-infinity', 'infinity', 'NaN', 'Infinity'), "
        "(2, '0044-03-15 BC', '0044-03-15 12:00 BC', '0044-03-15 12:00+00 BC', 1e40 + 0.1, 'NaN'), "
        "(3, '10000-01-01', '10000-01-01', '9999-12-31 23:59:59.5+00', 1.5, 1.5), "
        "(4, '0001-01-01', '9999-12-31 23:59:59.999999', '0001-01-01 00:00+00', 1, 1)",
    )
    columns = "{id: int, day: date, at: timestamp, zoned: timestamp, n: decimal, r: float}"
    rows = [
        {"id": 1, "day": "infinity", "at": "-infinity", "zoned": "infinity", "n": "NaN", "r": "Infinity"},
        {"id": 2, "day": -735160, "at": "-0043-03-15T12:00:00Z", "zoned": "-0043-03-15T12:00:00Z", "n": ODD, "r": "NaN"},
        {"id": 3, "day": "10000-01-01", "at": "10000-01-01", "zoned": "9999-12-31T23:59:59.5Z", "n": 1.5, "r": 1.5},
        {"id": 4, "day": "0001-01-01", "at": "9999-12-31T23:59:59.999999Z", "zoned": "0001-01-01T00:00:00Z", "n": 1, "r": 1},
    ]  # fmt: skip
    for word, differ in ((", unrepresentable: null", 0), ("", 3)):
        text = f"odd: {{source: {schema}.odd, key: [id], columns: {columns}{word}}}"
        trial = Trial(plan=plan_alone(load({"entities.yaml": text}), 3), settings=Settings())
        trial.batch([record("odd", n, {"op": "c", "before": None, "after": row}) for n, row in enumerate(rows)])
        (found,) = compare(trial, source)
        assert len(found.differences) == differ, found.differences
        assert found.table.nulled == (("day", "at", "zoned", "n", "r") if word else ())
        shown = "\n".join(source_lines(found, 5))
        assert ("that its type cannot hold compares as null: day, at, zoned, n, r" in shown) is bool(word)


def test_a_comparison_names_exactly_the_rows_that_differ(psql: Engine, schema: str, source: SourceSession) -> None:
    trial = filled(source, schema)
    assert [found.differences for found in compare(trial, source)] == [(), ()]
    before = source.bytes_read
    comparison(trial, source).scan(tables(trial, source)[0])
    read = source.bytes_read - before
    change(
        psql,
        "insert into item values (-500, 'first', 1, now(), 'x'), (9000, 'last', 1, now(), 'x')",
        "delete from item where id in (-99, 150)",
        "update item set name = 'other', n = 0 where id = 7",
        "update item set extra = 'not declared' where id = 8",
        "insert into word values ('a#b', 1, null, null)",
        "delete from word where b = 249",
        "update word set doc = doc || '{\"c\": 2}' where b = 3",
        'update word set doc = \'{"a": 1.5, "b": 4}\' where b = 4',
    )
    item, word = compare(trial, source)
    shown = [(one.kind, one.sk, one.columns) for one in (*item.differences, *word.differences)]
    assert sorted(shown) == [
        ("different", "7", ("name", "n")),
        ("different", "d3#3", ("doc",)),
        ("missing", "-500", ()),
        ("missing", "9000", ()),
        ("missing", "a%23b#1", ()),
        ("orphaned", "-99", ()),
        ("orphaned", "150", ()),
        ("orphaned", "p4#249", ()),
    ]
    assert (item.rows, item.stored) == (ROWS, ROWS)
    assert item.table.left_out == {"extra": "undeclared"}
    assert (word.table.left_out, word.table.gone) == ({}, ("gone",))
    assert not replace(word, differences=()).equal
    assert catalogue(source) < read < catalogue(source) + ROWS  # less than a byte a row: fingerprints of pages


def test_a_comparison_goes_on_with_its_file(psql: Engine, schema: str, source: SourceSession, tmp_path: Path) -> None:
    trial = filled(source, schema)
    change(psql, "delete from item where id in (-99, 150)")
    source.begin_snapshot()
    item = tables(trial, source)[0]
    broken = comparison(trial, source, tmp_path / "progress")

    def report(phase: str, done: int) -> None:
        if phase == "item: the source" and done >= 80:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SourceComparison(
            session=source, store=trial.store, digests=broken.digests, passed=lambda: None, report=report, page=40
        ).scan(item)
    broken.digests.close()
    rest = comparison(trial, source, tmp_path / "progress")
    step = rest.digests.step("item")
    assert step is not None
    assert step["rows"] == 80
    rest.scan(item)
    assert [one.sk for one in rest.result(item).differences] == ["-99", "150"]


def test_a_row_that_the_pipeline_still_carries_is_no_difference(
    psql: Engine, schema: str, source: SourceSession
) -> None:
    trial = filled(source, schema)
    change(psql, "update item set name = 'on its way' where id = 7", "update item set name = 'lost' where id = 8")
    source.begin_snapshot()
    item = tables(trial, source)[0]

    def arrives() -> None:
        trial.batch(
            [
                record(
                    "app.public.item", 1000, {"id": 7, "name": "on its way", "n": 10.7, "at": "1970-01-01T00:00:10.7Z"}
                )
            ]
        )

    made = SourceComparison(
        session=source, store=trial.store, digests=DigestFile(None), passed=arrives, report=lambda *_: None
    )
    made.scan(item)
    assert [one.sk for one in made.result(item).differences] == ["8"]


@pytest.mark.parametrize(
    "kind", ["char(4)", "char(9)", "bpchar", '"char"', "name", "macaddr8", "varchar(9)", "int8range"]
)
def test_a_table_compares_by_a_key_of_any_text(psql: Engine, schema: str, source: SourceSession, kind: str) -> None:
    value = {
        "macaddr8": "('08:00:2b:01:02:03:04:' || to_hex(i + 16))::macaddr8",
        "int8range": "int8range(i, i + 3)",
        '"char"': 'chr(40 + i)::"char"',
    }.get(kind, "chr(97 + i %% 26) || i")
    change(
        psql,
        f"create table {schema}.code (k {kind} primary key, v int)",
        f"insert into {schema}.code select {value}, i from generate_series(1, 80) i",
    )
    declared = f"code: {{source: {schema}.code, key: [k], columns: {{k: string, v: int}}}}"
    trial = Trial(plan=plan_alone(load({"entities.yaml": declared}), 3), settings=Settings())
    rows = [json.loads(row) for (row,) in source.read_rows(f"select row_to_json(r)::text from {schema}.code r")]
    trial.batch([record("code", n, row) for n, row in enumerate(rows)])
    (found,) = compare(trial, source)
    assert (found.rows, found.stored, found.differences) == (80, 80, ())
    change(
        psql, f"delete from {schema}.code where v = 7", f"update {schema}.code set v = 0 where v = 70",
    )  # fmt: skip
    trial.batch([record("code", 100, None, {"k": rows[49]["k"]})])
    (found,) = compare(trial, source)
    assert sorted((one.kind, one.key["k"]) for one in found.differences) == [
        ("different", rows[69]["k"]), ("missing", rows[49]["k"]), ("orphaned", rows[6]["k"]),
    ]  # fmt: skip


def test_json_of_the_source_compares_with_columns_that_read_its_text(
    psql: Engine, schema: str, source: SourceSession
) -> None:
    """Also a JSON text that itself looks like JSON. The letter of a repair gives each column the value of the source."""
    columns = '{id: int, doc: "json(text)", list: "json[]", names: "string[]", parts: "json(text)[]"}'
    kept = f"kept: {{source: {schema}.kept, key: [id], columns: {columns}}}"
    change(
        psql,
        f"set search_path to {schema}; create table kept (id int primary key, doc jsonb, list jsonb, names jsonb, parts jsonb)",
        f"""insert into {schema}.kept values (1, '"42"', '["1", {{"a": 1.50}}]', '["x", null]', '["2", 3]')""",
        f"""insert into {schema}.kept values (2, '{{"a": [1]}}', '[]', null, null)""",
    )
    trial = Trial(plan=plan_alone(load({"entities.yaml": kept}), 3), settings=Settings())
    sent = source.read_rows(f"select id, doc::text, list::text, names::text, parts::text from {schema}.kept")
    rows = [dict(zip(("id", "doc", "list", "names", "parts"), row, strict=True)) for row in sent]
    trial.batch([record("kept", n, row) for n, row in enumerate(rows)])
    assert trial.rejects.messages == []
    (found,) = compare(trial, source)
    assert (found.differences, found.stored, found.table.left_out) == ((), 2, {})

    empty = Trial(plan=trial.driver.plan, settings=Settings())
    (missing,) = compare(empty, source)
    letters = [repair_letter(one, missing.table, "test", n, {}) for n, one in enumerate(missing.differences)]
    repaired = [decode(one.record, missing.table.entity.entity) for one in letters if isinstance(one, Rejected)]
    assert [one.row for one in repaired if isinstance(one, Change)] == [
        {"id": 1, "doc": "42", "list": ["1", {"a": Decimal("1.50")}], "names": ["x", None], "parts": ["2", 3]},
        {"id": 2, "doc": {"a": [1]}, "list": [], "names": None, "parts": None},
    ]
