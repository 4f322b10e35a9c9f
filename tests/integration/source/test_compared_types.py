"""Rows that Debezium captured equal the rows of the source, type by type; columns that do not compare are named."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from processor.cli.main import main
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.tools.source.compared_table import compare_with
from processor.tools.source.comparison import ComparedEntity, DigestFile, SourceComparison
from processor.tools.source.session import read_source_tables, source_session, table_of
from processor.values.record import Record
from processor.values.recorded_topics import read_records
from tests.capture import mariadb_types, postgres_types

SAMPLES = Path(__file__).parents[2] / "data" / "debezium"
LACKING = ("citext", "isbn", "hstore", "ltree", "xml", "interval", "integer[][]")
"""Types that the embedded server lacks, and types whose declaration depends on the connector."""


def compared(directory: Path, file: str, address: str) -> ComparedEntity:
    """The comparison of a source with the first two records of a capture: a snapshot row and a streamed row."""
    definitions = load(read_directory(directory))
    trial = Trial(plan=plan_alone(definitions, 3), settings=Settings())
    trial.batch(list(read_records(str(SAMPLES / f"{file}.jsonl.gz")))[:2])
    return compared_rows(trial, address)


def compared_rows(trial: Trial, address: str) -> ComparedEntity:
    """The comparison of a source with the rows of a trial."""
    with source_session(address) as session:
        entity = trial.driver.plan.entities["sample"]
        table = table_of(entity.entity, read_source_tables(session))
        assert table is not None
        made = compare_with(entity, table, mysql=session.mysql)
        assert not isinstance(made, str), made
        comparison = SourceComparison(
            session=session,
            store=trial.store,
            digests=DigestFile(None),
            passed=lambda: None,
            report=lambda *_: None,
        )
        comparison.scan(made)
        return comparison.result(made)


def wrong(found: ComparedEntity) -> list[tuple[str, object, object]]:
    """Each column that differs, with both values."""
    return [
        (name, (one.source or {}).get(name, one.refused), one.seen and (one.seen.columns or {}).get(name))
        for one in found.differences
        for name in one.columns or ("",)
    ]


def declared(directory: Path, *words: str) -> None:
    assert main(["init", str(directory), "--database", "env:SOURCE", "--topic-prefix", "app", *words]) == 0
    (directory / "p.yaml").write_text("product: p\nroot: sample\nfields: [id]\n")


@pytest.mark.parametrize("mode", ["isostring", "microseconds"])
def test_rows_that_debezium_captured_equal_those_of_postgres(
    tmp_path: Path, psql: Engine, schema: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    address = postgres_url.replace("+psycopg", "")
    monkeypatch.setenv("SOURCE", address)
    columns = [one for one in postgres_types.COLUMNS if one[1] not in LACKING]
    types = "".join(line for line in postgres_types.TYPES.splitlines(keepends=True) if "extension" not in line)
    with psql.begin() as connection:
        connection.exec_driver_sql(f"create schema {schema}; set local search_path to {schema}; {types}")
        connection.exec_driver_sql(
            f"create table sample (id int primary key, {', '.join(f'{n} {k}' for n, k, _ in columns)})"
        )
        for key in (1, 2):
            values = ", ".join(value for _, _, value in columns)
            connection.exec_driver_sql(f"insert into sample values ({key}, {values})".replace("%", "%%"))
    declared(
        tmp_path,
        "--schemas",
        schema,
        "--times",
        mode,
        "--decimals",
        postgres_types.MODES[mode]["decimal.handling.mode"],
    )
    entities = tmp_path / "entities.yaml"
    text = entities.read_text().replace(
        f"topic: app.{schema}.sample", f"topic: app.public.sample, source: {schema}.sample"
    )
    entities.write_text(text.replace("topic: app.public.sample, source", "topic: app.public.sample\n  source"))
    for file in (f"postgres-types-{mode}", f"postgres-types-{mode}-schema"):
        found = compared(tmp_path, file, address)
        assert wrong(found) == []
        assert (found.rows, found.stored) == (2, 2)
        assert {"bytea", "time6", "dates", "point"} <= found.table.left_out.keys()
        assert not {"text", "price", "single", "at6", "moment", "jsonb", "texts"} & found.table.left_out.keys()
        exact = {name for name, kind, _ in columns if kind.startswith(("char(", "macaddr8", "tsvector", "int4range"))}
        assert len(exact) == 4
        assert not exact & found.table.left_out.keys()


@pytest.mark.rest
@pytest.mark.parametrize("mode", ["connect", "adaptive_time_microseconds"])
def test_rows_that_debezium_captured_equal_those_of_mariadb(
    tmp_path: Path, mariadb_port: int, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    address = f"mysql://debezium:debezium@127.0.0.1:{mariadb_port}/shop"
    monkeypatch.setenv("SOURCE", address)
    server = create_engine(address.replace("mysql", "mysql+pymysql").removesuffix("/shop"))
    with server.begin() as connection:
        for statement in (
            "drop database if exists shop",
            "create database shop",
            "use shop",
            mariadb_types.create_table(),
        ):
            connection.exec_driver_sql(statement)
        for key in (1, 2):
            connection.exec_driver_sql(mariadb_types.insert_sample(key))
        connection.exec_driver_sql("alter table sample drop column big_u")  # the mode `long` changes its value
    server.dispose()
    declared(tmp_path, "--times", mode, "--decimals", mariadb_types.MODES[mode]["decimal.handling.mode"])
    for file in (f"mariadb-types-{mode}", f"mariadb-types-{mode}-schema"):
        found = compared(tmp_path, file, address)
        assert wrong(found) == []
        assert (found.rows, found.stored) == (2, 2)
        assert {"blob", "time6", "single", "point"} <= found.table.left_out.keys()
        assert not {"varchar", "price", "double", "at6", "moment6", "json", "mood"} & found.table.left_out.keys()


@pytest.mark.rest
def test_zero_dates_of_mariadb_compare_as_null_where_the_entity_says_so(
    tmp_path: Path, mariadb_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"mysql://debezium:debezium@127.0.0.1:{mariadb_port}/odd"
    server = create_engine(address.replace("mysql", "mysql+pymysql").removesuffix("/odd"))
    with server.begin() as connection:
        for statement in (
            "drop database if exists odd", "create database odd", "use odd", "set sql_mode = ''",
            "create table odd (id int primary key, day date, at datetime(3), moment timestamp(6) null)",
            "insert into odd values (1, '0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00'), "
            "(2, '2026-00-00', '2026-02-00 01:02:03', '2026-02-03 04:05:06.5'), (3, '0001-01-01', '9999-12-31 23:59:59', null)",
        ):  # fmt: skip
            connection.exec_driver_sql(statement)
    server.dispose()
    zero, rows = "0000-00-00 00:00:00", []
    rows.append({"id": 1, "day": "0000-00-00", "at": zero, "moment": zero})
    rows.append({"id": 2, "day": "2026-00-00", "at": "2026-02-00 01:02:03", "moment": "2026-02-03T04:05:06.5Z"})
    rows.append({"id": 3, "day": "0001-01-01", "at": "9999-12-31T23:59:59Z", "moment": None})
    for word, differ in ((", unrepresentable: null", 0), ("", 2)):
        columns = "{id: int, day: date, at: timestamp, moment: timestamp}"
        definitions = load(
            {"entities.yaml": f"sample: {{topic: t, source: odd.odd, key: [id], columns: {columns}{word}}}"}
        )
        trial = Trial(plan=plan_alone(definitions, 3), settings=Settings())
        values = [json.dumps({"op": "c", "before": None, "after": row}).encode() for row in rows]
        trial.batch([Record(topic="t", partition=0, offset=n, key=None, value=value) for n, value in enumerate(values)])
        found = compared_rows(trial, address)
        assert len(found.differences) == differ, found.differences
