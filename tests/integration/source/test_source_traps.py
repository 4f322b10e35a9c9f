"""`doctor --source` names each trap of a source, with its cure."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from processor.definitions.load import load
from processor.doctor.source_checks import check_source
from processor.findings.finding import Finding
from processor.plan.planning import plan_alone
from processor.source.source_facts import MysqlFacts

TABLES = """
create table good (id int primary key, name text);
create table left_out (id int primary key);
create unlogged table unlogged (id int primary key);
create table keyless (id int);
create table other_key (id int primary key, code int unique not null);
create table shape (id int primary key, area box);
create table parts (id int primary key) partition by range (id);
create table parts_1 partition of parts for values from (0) to (9);
alter table other_key replica identity using index other_key_code_key;
create publication SCHEMA for table good, keyless, other_key, shape, parts with (publish = 'insert, update');
"""


def findings(address: str, schema: str, *names: str, key: str = "id", more: str = "") -> list[Finding]:
    """What the check finds for these tables."""
    text = "".join(f"{n}: {{source: {schema}.{n}, key: [{key}], columns: {{{key}: int{more}}}}}\n" for n in names)
    around: Any = SimpleNamespace(plan=plan_alone(load({"entities.yaml": text}), 3))
    return list(check_source(address, around))


@pytest.fixture
def source(psql: Engine, schema: str, postgres_url: str) -> Iterator[str]:
    with psql.begin() as connection:
        connection.exec_driver_sql(f"create schema {schema}; set local search_path to {schema}")
        connection.exec_driver_sql(TABLES.replace("SCHEMA", schema))
    yield postgres_url.replace("+psycopg", "")
    with psql.begin() as connection:
        connection.exec_driver_sql(f"drop publication {schema}")


def test_each_trap_of_postgres_has_its_finding(source: str, schema: str) -> None:
    names = ("left_out", "unlogged", "keyless", "other_key", "parts", "absent")
    found = findings(source, schema, *names) + findings(source, schema, "shape", more=", area: string")
    texts = {one.text.replace(f"{schema}.", ""): one.state for one in found}
    for text, state in {
        "no publication has left_out: its changes never arrive": "failure",
        "unlogged is unlogged: no log has its changes": "failure",
        "keyless has no primary key: its records have no Kafka key": "failure",
        "keyless has no replica identity: PostgreSQL refuses its updates and deletes, or logs no key": "failure",
        "other_key has another index as its replica identity: a delete has the key of that index only": "warning",
        f"parts is partitioned, and publication {schema} sends its changes to a topic of each partition": "failure",
        f"publication {schema} of keyless leaves out inserts, updates or deletes": "failure",
        "shape.area is box, which Debezium does not know": "warning",
        "entity absent: the source shows no table for topic absent": "failure",
    }.items():
        assert texts.get(text) == state, (text, texts)
    assert all(one.cure for one in found if one.state != "ok")


@pytest.mark.rest
def test_a_cascade_of_mariadb_has_a_finding(mariadb_port: int) -> None:
    address = f"mysql://debezium:debezium@127.0.0.1:{mariadb_port}/traps"
    server = create_engine(address.replace("mysql", "mysql+pymysql").removesuffix("/traps"))
    with server.begin() as connection:
        for statement in (
            "create database traps",
            "use traps",
            "create table parent (id int primary key)",
            "create table child (id int primary key, parent int, "
            "constraint below foreign key (parent) references parent (id) on delete cascade)",
        ):
            connection.exec_driver_sql(statement)
    server.dispose()
    assert [one.text for one in findings(address, "traps", "parent", "child")] == [
        "traps.child: foreign key below to parent has ON DELETE CASCADE, ON UPDATE RESTRICT, "
        "and the binary log has no row of a cascade"
    ]
    assert [one.state for one in findings(address, "traps", "parent")] == ["ok"]


@pytest.mark.parametrize(
    ("version", "logs"), [("8.0.44", False), ("9.5.0", False), ("9.6.0-log", True), ("11.4.2-MariaDB", False)]
)
def test_only_mysql_from_9_6_on_logs_cascades(version: str, logs: bool) -> None:
    assert MysqlFacts(variables={"version": version}, cascades=()).logs_cascades is logs
