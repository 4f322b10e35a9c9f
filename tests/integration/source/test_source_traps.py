"""`doctor --source` names each trap of a source, with its cure."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine

from processor.engine.plan.planning import plan_alone
from processor.finding import Finding
from processor.language.definitions.load import load
from processor.tools.doctor.source import check_source
from processor.tools.source.session import MysqlFacts
from processor.values.record import Record

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


LOSSES = """
create type mood as enum ('sad', 'happy');
create table wide (
  id int primary key, n smallint[] not null, p numeric(8,2)[], f float8[], ok bool[], at timestamp[], moods mood[],
  bits bit varying, img bytea, days date[], words text[], uid uuid[],
  doc jsonb, big bigint[], h xml, name text, dflt text default 'none',
  low text generated always as (lower(name)) stored
);
create table whole (id int primary key, p numeric(8,2)[], dflt text default 'none');
alter table whole replica identity full;
create table listed (id int primary key, name text, secret text);
create table member (id int primary key, email text unique not null);
create table member_full (id int primary key, email text unique not null);
alter table member_full replica identity full;
create publication SCHEMA for table wide, whole, listed (id, name), member, member_full;
insert into wide (id, n, name, dflt) select g, '{1}', 'a', null from generate_series(1, 50) g;
analyze wide;
"""
WIDE = (
    "id: int, n: 'int[]', p: 'decimal(8,2)[]', f: 'float[]', ok: 'bool[]', at: 'timestamp[]', moods: 'string[]', bits: string, "
    "img: string, days: 'date[]', words: 'string[]', uid: 'string[]', doc: json, big: 'int[]', h: string, name: string, "
    "dflt: string, low: string"
)


@pytest.fixture
def lossy(psql: Engine, schema: str, postgres_url: str) -> Iterator[str]:
    with psql.begin() as connection:
        connection.exec_driver_sql(f"create schema {schema}; set local search_path to {schema}")
        connection.exec_driver_sql(LOSSES.replace("SCHEMA", schema))
    yield postgres_url.replace("+psycopg", "")
    with psql.begin() as connection:
        connection.exec_driver_sql(f"drop publication {schema}")


def found_in(
    address: str, schema: str, table: str, columns: str, more: str = "", values: Any = ()
) -> dict[str, Finding]:
    """The findings of one entity, whose whole rows a product shows, by their text. `values`: of the last records."""
    key = "email" if table.startswith("member") else "id"
    text = f"one: {{source: {schema}.{table}, key: [{key}], columns: {{{columns}}}{more}}}"
    plan = plan_alone(load({"entities.yaml": text, "d.yaml": "product: d\nroot: one"}), 3)
    records = [Record(topic="one", partition=0, offset=0, key=None, value=json.dumps(one).encode()) for one in values]
    kafka = SimpleNamespace(last_records=lambda topic, most: records)
    around: Any = SimpleNamespace(plan=plan, kafka=kafka)
    found = [one for one in check_source(address, around) if "slot" not in one.text and "wal" not in one.text]
    return {one.text.replace(f"{schema}.", ""): one for one in found}


def test_each_column_that_arrives_as_null_is_named_with_its_cures(lossy: str, schema: str) -> None:
    found = found_in(lossy, schema, "wide", WIDE)
    named = {
        text.split()[0].removeprefix("wide."): one for text, one in found.items() if "sends null for a large" in text
    }
    assert named.keys() == {"n", "p", "f", "ok", "at", "moods", "bits", "img", "days"}
    assert {one.state for one in named.values()} == {"warning"}
    assert all(f"ALTER TABLE {schema}.wide REPLICA IDENTITY FULL" in one.cure for one in named.values())
    assert [name for name, one in named.items() if "not_null: true" in one.cure] == ["n"]
    assert named["days"].text.endswith("leaves as it is (with time.precision.mode isostring)")
    assert named["img"].text.endswith("leaves as it is (with binary.handling.mode base64 or base64-url-safe)")


def test_a_word_that_contradicts_the_source_is_a_failure_and_a_right_one_ends_the_warning(
    lossy: str, schema: str
) -> None:
    columns = "id: int, n: {type: 'int[]', not_null: true}, p: {type: 'decimal(8,2)[]', not_null: true}"
    found = found_in(lossy, schema, "wide", columns)
    assert [(one.state, text.partition(",")[0]) for text, one in found.items() if "wide." in text] == [
        ("failure", "wide.p may be null")
    ]


def test_full_identity_loses_nothing(lossy: str, schema: str) -> None:
    assert not [text for text in found_in(lossy, schema, "whole", "id: int, p: 'decimal(8,2)[]'") if "whole" in text]


@pytest.mark.parametrize(
    ("table", "columns", "more", "text", "state"),
    [
        ("wide", "id: int, low: string", "", "wide.low is a generated column, and publication", "failure"),
        (
            "wide",
            "id: int, low: string",
            ", absent: {low: keep}",
            "wide.low is a generated column, and publication",
            "warning",
        ),
        ("listed", "id: int, secret: string", "", "listed.secret is not in the column list: publication", "failure"),
        ("listed", "id: int, rating: int", "", "listed has no column rating, which entity one declares", "failure"),
        ("member", "email: string", "", "member: an update of email does not show the key before", "failure"),
    ],
)
def test_each_loss_of_the_source_has_a_finding(
    lossy: str, schema: str, table: str, columns: str, more: str, text: str, state: str
) -> None:
    found = [one for words, one in found_in(lossy, schema, table, columns, more).items() if words.startswith(text)]
    assert [one.state for one in found] == [state]
    assert found[0].cure


def test_a_column_that_is_gone_and_of_which_the_entity_speaks_is_no_finding(lossy: str, schema: str) -> None:
    assert not [
        t for t in found_in(lossy, schema, "listed", "id: int, r: int", ", absent: {r: 'null'}") if "no column" in t
    ]


def test_a_moved_key_is_shown_by_full_identity(lossy: str, schema: str) -> None:
    assert not [text for text in found_in(lossy, schema, "member_full", "email: string") if "key before" in text]


@pytest.mark.parametrize(("value", "named"), [("none", True), (None, False)])
def test_nulls_behind_a_default_are_named_until_a_record_shows_one(
    lossy: str, schema: str, value: Any, named: bool
) -> None:
    row = {"op": "c", "before": None, "after": {"id": 1, "dflt": value}, "source": {}}
    found = found_in(lossy, schema, "wide", "id: int, dflt: string", values=[row])
    texts = [one for text, one in found.items() if text.startswith("wide has nulls in dflt, and a DEFAULT")]
    assert [one.state for one in texts] == ["warning"] * named
    assert all("replace.null.with.default" in one.cure for one in texts)


def test_a_table_without_nulls_behind_its_default_has_no_finding(lossy: str, schema: str) -> None:
    assert not [text for text in found_in(lossy, schema, "whole", "id: int, dflt: string") if "DEFAULT" in text]
