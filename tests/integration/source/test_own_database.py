"""`local up --source` before it starts anything: drafts, the configuration for Kafka Connect, and what the database lacks, with
its SQL."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from sqlalchemy import Engine, create_engine

from processor.cli.main import main
from processor.environment.programs.connect import write_connector

TABLES = """
create table author (id int primary key, born date);
create table "Book" (id int primary key, author int references author (id), marks bit varying);
create table loose (id int);
create unlogged table scratch (id int primary key);
create table category (id int primary key, parent int references category, other int references category);
create table part (id int primary key) partition by range (id);
create table part_1 partition of part for values from (0) to (9);
"""


@pytest.fixture
def source(
    psql: Engine, schema: str, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The address of a database whose user may connect, and nothing else. The commands work in a new directory."""
    with psql.begin() as connection:
        connection.exec_driver_sql(f"create schema {schema}; set local search_path to {schema}")
        connection.exec_driver_sql(TABLES)
        connection.exec_driver_sql(f"create role {schema} login password 'pass word'")
    url = urlsplit(postgres_url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASSWORD", "pass word")
    monkeypatch.setenv("ADMIN", postgres_url.replace("+psycopg", ""))
    yield f"postgresql://{quote(schema)}@{url.hostname}:{url.port}{url.path}"
    with psql.begin() as connection:
        connection.exec_driver_sql(f"drop role {schema}")


def up(*flags: str) -> int:
    return main(["local", "up", "--definitions", "d", *flags])


@pytest.mark.rest
def test_the_command_drafts_and_names_each_missing_thing_with_its_sql(
    source: str, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert up("--source", source, "--password", "env:PASSWORD", "--schemas", schema) == 1
    shown = capsys.readouterr()
    assert sorted(path.name for path in Path("d").glob("*.yaml")) == ["Book_document.yaml", "entities.yaml"]
    name = urlsplit(source).path.removeprefix("/")
    for line in (
        f"not declared: {name}.{schema}.loose (the table has no primary key, and no unique key without nulls)",
        f"not declared: {name}.{schema}.part_1 (a partition)",
        f"not declared: {name}.{schema}.scratch (unlogged)",
        "  failure: wal_level is replica",
        "    cure: ALTER SYSTEM SET wal_level = logical, and restart the server",
        f"    cure: ALTER ROLE {schema} REPLICATION; on Amazon RDS: GRANT rds_replication TO {schema}",
        f"    cure: GRANT USAGE ON SCHEMA {schema} TO {schema}",
        f'    cure: GRANT SELECT ON {schema}."Book", {schema}.author, {schema}.category, {schema}.part TO {schema}',
        f'    cure: ALTER TABLE {schema}."Book" REPLICA IDENTITY FULL',
        "nothing was started: give these statements, then this command again",
    ):
        assert line in shown.err.splitlines(), shown.err
    assert "pass word" not in shown.err + shown.out
    assert not Path(".statestore").exists()


@pytest.mark.rest
def test_the_configuration_for_kafka_connect_has_the_drafted_tables_and_no_password(
    source: str, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert up("--source", "env:ADMIN", "--schemas", schema, "--print-connector") == 0
    made = json.loads(capsys.readouterr().out)
    database = create_engine("postgresql+psycopg://" + source.partition("://")[2]).url.database
    assert made["name"] == made["config"]["topic.prefix"] == database
    assert made["config"]["table.include.list"] == ",".join(
        f"{schema}.{name}" for name in ("Book", "author", "category", "part")
    )
    assert made["config"]["database.password"] == "${env:STATESTORE_SOURCE_PASSWORD}"


@pytest.mark.rest
def test_another_source_waits_for_the_end_of_the_first(
    source: str, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_connector(Path(".statestore/local/debezium"), {"name": "other"}, "")
    assert up("--source", "env:ADMIN", "--schemas", schema) == 1
    assert "another source or other tables: give `statestore local down` first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--source", "postgresql://u:secret@h/d"], "--source: the address holds a password; leave it out"),
        (["--source", "sqlite://"], "--source: write postgresql://USER@HOST/DATABASE"),
        (["--source", "postgresql://h/d", "--json"], "--json does not go with --source"),
        ([], "--definitions goes with --source: give both"),
    ],
)
def test_a_wrong_command_is_refused(flags: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert up(*flags) == 1
    shown = capsys.readouterr().err
    assert says in shown
    assert "u:secret" not in shown
