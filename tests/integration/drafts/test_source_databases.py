"""Drafts of real databases: types, keys, foreign keys and comments as PostgreSQL and MariaDB have them.

The records that Debezium captured from tables with each type of docs/types.md must fit the drafts.
"""

import os
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from processor.cli.main import main
from processor.engine.protocol.decode import decode
from processor.language.definitions.load import load, read_directory
from processor.language.product.product import Note
from processor.values.entity import Entity
from processor.values.record import Rejected
from processor.values.recorded_topics import read_records
from tests.capture import mariadb_types, postgres_types

SAMPLES = Path(__file__).parents[2] / "data" / "debezium"
EXTENSIONS = ("citext", "isbn", "hstore", "ltree")
"""Types of PostgreSQL's contrib, which the embedded server lacks. `tests/unit/tools/source` has their rows of the page."""
SHOP = """
create table customer (id bigint primary key, email varchar(50) not null unique);
create table purchase (id int primary key, customer_id bigint, placed_by bigint, at timestamp(3) null, total decimal(12,2));
alter table purchase add constraint a foreign key (customer_id) references customer (id);
alter table purchase add constraint b foreign key (placed_by) references customer (id);
create table line (purchase_id int, number int, article varchar(20), primary key (purchase_id, number));
alter table line add constraint c foreign key (purchase_id) references purchase (id);
create table log (text varchar(20));
create table pair (a int not null, b int not null, unique (a, b));
"""


def statements(sql: str) -> list[str]:
    return [each for each in sql.split(";") if each.strip()]


def init(directory: Path, *words: str) -> int:
    return main(["init", str(directory), "--database", "env:SOURCE", "--topic-prefix", "app", *words])


def rejected(entity: Entity, file: str) -> list[str]:
    """The reasons why ordinary rows of a capture do not fit: its snapshot row, and the streamed row with all values."""
    records = list(read_records(str(SAMPLES / f"{file}.jsonl.gz")))[:2]
    found = [decode(record, entity) for record in records]
    assert len(found) == 2
    return [one.reason for one in found if isinstance(one, Rejected)]


@pytest.fixture
def postgres(psql: Engine, schema: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A schema of a source, whose address is in the variable SOURCE."""
    monkeypatch.setenv("SOURCE", postgres_url.replace("+psycopg", ""))
    with psql.connect() as connection:
        connection.exec_driver_sql(f"create schema {schema}")
        connection.commit()
    return schema


def run(psql: Engine, sql: str) -> None:
    with psql.begin() as connection:
        for statement in statements(sql):
            connection.exec_driver_sql(statement)


def test_every_type_of_postgres_gets_a_type_that_takes_its_records(tmp_path: Path, psql: Engine, postgres: str) -> None:
    columns = [(name, kind) for name, kind, _ in postgres_types.COLUMNS if kind not in EXTENSIONS]
    types = "".join(line for line in postgres_types.TYPES.splitlines(keepends=True) if "extension" not in line)
    run(psql, f"{types}; create table sample (id int primary key, {', '.join(map(' '.join, columns))})")
    for mode, settings in postgres_types.MODES.items():
        directory, decimals = tmp_path / mode, settings["decimal.handling.mode"]
        assert init(directory, "--schemas", postgres, "--times", mode, "--decimals", decimals) == 0
        (entity,) = load(read_directory(directory)).entities.values()
        assert entity.topic == f"app.{postgres}.sample"
        assert len(entity.columns) >= len(columns) - 3  # box, pair and pg_lsn
        for file in (f"postgres-types-{mode}", f"postgres-types-{mode}-schema"):
            reasons = rejected(entity, file)
            assert all(reason.startswith("column 'span'") for reason in reasons), (file, reasons)


def test_columns_whose_values_may_not_come_are_drafted_with_their_words(
    tmp_path: Path, psql: Engine, postgres: str
) -> None:
    types = {"numeric": "numeric(8,2)[]", "bits": "bit varying", "moods": "mood[]", "words": "text[]", "name": "text"}
    filled = ", ".join(f"{name} {kind} not null" for name, kind in types.items())
    empty = ", ".join(f"{name}_2 {kind}" for name, kind in types.items())
    run(
        psql,
        f"create type {postgres}.mood as enum ('sad'); set local search_path to {postgres}; "
        f"create table t (id int primary key, {filled}, {empty}, low text generated always as (lower(name)) stored); "
        "comment on column t.bits is 'flags'",
    )
    assert init(tmp_path / "new", "--schemas", postgres) == 0
    text, (entity,) = (
        (tmp_path / "new/entities.yaml").read_text(),
        load(read_directory(tmp_path / "new")).entities.values(),
    )
    assert entity.not_null == {"numeric", "bits", "moods"}
    assert '    bits: {type: string, not_null: true, description: "flags"}\n' in text
    assert "    # low: a generated column, which records after the snapshot lack" in text
    assert init(tmp_path / "new", "--schemas", postgres, "--check") == 0


def test_foreign_keys_become_a_product_and_comments_stay(
    tmp_path: Path, psql: Engine, postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(psql, SHOP + "comment on table customer is 'who buys'; comment on column customer.email is E'in lower\ncase'")
    directory = tmp_path / "new"
    assert init(directory, "--schemas", postgres, "--root", "customer", "--depth", "2") == 0
    text, found = (directory / "entities.yaml").read_text(), load(read_directory(directory))
    assert found.entity_notes["customer"] == Note(description="who buys", columns={"email": "in lower case"})
    assert "# log: {topic: " in text
    assert "key: [a, b]  # guess: a unique key, which the connector must know (message.key.columns)" in text
    assert list(found.entities) == ["customer", "line", "pair", "purchase"]
    joins = {join.name: join for join in found.products["customer_document"].joins}
    assert {name: join.on for name, join in joins.items()} == {
        "purchase": (("customer_id", "id"),),
        "purchase_by_placed_by": (("placed_by", "id"),),
    }
    assert [(join.name, join.many) for join in joins["purchase"].joins] == [("customer", False), ("line", True)]
    capsys.readouterr()
    assert init(directory, "--schemas", postgres, "--check") == 0
    run(psql, "alter table customer add phone text; alter table purchase drop column total; drop table pair")
    assert init(directory, "--schemas", postgres, "--check") == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[:1] in "+-" and line[1] == " "] == [
        "+     phone: string",
        "-     total: decimal(12,2)",
        f"- pair: the source has no table for topic app.{postgres}.pair",
    ]


def test_a_database_that_does_not_answer_or_has_no_such_schema_is_named(
    tmp_path: Path, postgres: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert init(tmp_path, "--schemas", "nowhere") == 1
    assert "--schemas: the database has no schema 'nowhere'; it has " in capsys.readouterr().err
    assert init(tmp_path, "--schemas", postgres) == 1
    assert "the source shows no entity: it has no table, or no topic with rows" in capsys.readouterr().err
    monkeypatch.setenv("SOURCE", "postgresql://user:secret@127.0.0.1:1/d")
    assert init(tmp_path) == 1
    err = capsys.readouterr().err
    assert "--database postgresql://user:***@127.0.0.1:1/d: " in err
    assert "secret" not in err


def test_the_parent_of_a_foreign_key_is_the_table_of_its_own_schema(
    tmp_path: Path, psql: Engine, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both schemas have a customer, and the search path of the connection has both, in either order."""
    first, second = f"{postgres}_crm", postgres
    url = os.environ["SOURCE"]
    try:
        run(
            psql,
            f"create schema {first};"
            f"create table {first}.customer (id int primary key, nr int unique);"
            f"create table {second}.customer (id int primary key);"
            f"create table {second}.purchase (id int primary key, a int references {first}.customer,"
            f" b int references {second}.customer, c int references {first}.customer (nr));"
            f"create table {first}.note (id int primary key, b int references {second}.customer)",
        )
        for path in (f"{first},{second}", f"{second},{first}", "pg_catalog"):
            monkeypatch.setenv("SOURCE", f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{path}")
            directory = tmp_path / path
            assert init(directory, "--schemas", f"{first},{second}", "--root", f"{second}.customer") == 0
            text, found = (directory / "entities.yaml").read_text(), load(read_directory(directory))
            assert [line.strip() for line in text.splitlines() if "# join" in line] == [
                f"# join: {{one: {second}.customer, on: {{id: b}}}}",
                f"# join: {{one: {first}.customer, on: {{id: a}}}}",
                f"# join: {{one: {second}.customer, on: {{id: b}}}}",
                f"# join: {{one: {first}.customer, on: {{nr: c}}}}",
            ]
            joins = found.products[f"{second}.customer_document"].joins
            assert [join.entity for join in joins] == [f"{first}.note", f"{second}.purchase"]
            one = tmp_path / f"one {path}"
            assert init(one, "--schemas", second, "--root", "purchase") == 0  # the other customer has no name here
            joins = load(read_directory(one)).products["purchase_document"].joins
            assert [(join.entity, join.on) for join in joins] == [("customer", (("id", "b"),))]
    finally:
        run(psql, f"drop schema if exists {first} cascade")


def test_tables_whose_names_clash_or_have_signs_that_no_name_has_make_a_file_that_loads(
    tmp_path: Path, psql: Engine, postgres: str
) -> None:
    """Of names that differ by case, and of names that are the same once written as the name of an entity."""
    tables = ["Purchase", "purchase", "PURCHASE", "1a", "_1a", "line item", "line\x01item", "line_item", "two\nlines"]
    columns = 'id int primary key, "a\nb" int, "c\x85d" int, "e""f" int, "x y" int, "X y" int, parent int'
    with psql.begin() as connection:
        for table in tables:
            connection.exec_driver_sql(f'create table {postgres}."{table}" ({columns})')
        for table in set(tables) - {"purchase", "1a"}:
            keys = f'add foreign key (parent) references {postgres}.purchase, add foreign key ("a\nb") references {postgres}."1a"'
            connection.exec_driver_sql(f'alter table {postgres}."{table}" {keys}')
    assert init(tmp_path, "--schemas", postgres, "--root", "purchase", "--depth", "2") == 0
    text, found = (tmp_path / "entities.yaml").read_text(), load(read_directory(tmp_path))
    topics = {name: entity.topic.removeprefix(f"app.{postgres}.") for name, entity in found.entities.items()}
    assert topics == {
        "_1a": "1a", "_1a_2": "_1a", "PURCHASE": "PURCHASE", "Purchase": "Purchase", "purchase": "purchase",
        "two_lines": "two_lines",
    }  # fmt: skip
    assert list(found.entities["purchase"].columns) == ["id", "c\x85d", 'e"f', "x y", "X y", "parent"]
    assert text.count("not declared, because the connector writes 3 tables to this topic:") == 3
    assert {join.entity for join in found.products["purchase_document"].joins} == {
        "_1a_2", "PURCHASE", "Purchase", "two_lines",
    }  # fmt: skip
    assert init(tmp_path, "--schemas", postgres, "--check") == 0


@pytest.mark.rest
def test_every_type_of_mariadb_gets_a_type_that_takes_its_records(
    tmp_path: Path, mariadb_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"mysql://debezium:debezium@127.0.0.1:{mariadb_port}"
    monkeypatch.setenv("SOURCE", f"{address}/inventory")
    columns = ", ".join(f"`{name}` {kind}" for name, kind, _ in mariadb_types.COLUMNS)
    server = create_engine(address.replace("mysql", "mysql+pymysql"))
    run(
        server,
        "create database inventory; use inventory;"
        f"create table sample (id int primary key, {columns}) comment 'all types'; {SHOP}",
    )
    server.dispose()
    for mode, settings in mariadb_types.MODES.items():
        directory = tmp_path / mode
        words = ("--times", mode, "--decimals", settings["decimal.handling.mode"], "--root", "customer")
        assert init(directory, *words) == 0
        found = load(read_directory(directory))
        entity = found.entities["sample"]
        assert entity.topic == "app.inventory.sample"
        assert len(entity.columns) == len(mariadb_types.COLUMNS) + 1
        for file in (f"mariadb-types-{mode}", f"mariadb-types-{mode}-schema"):
            assert all(reason.startswith("column 'big_u'") for reason in rejected(entity, file)), file
    assert found.entity_notes["sample"].description == "all types"
    assert list(found.entities) == ["customer", "line", "pair", "purchase", "sample"]
    joins = [join.name for join in found.products["customer_document"].joins]
    assert joins == ["purchase", "purchase_by_placed_by"]


@pytest.mark.rest
def test_databases_of_mariadb_refer_to_each_other_and_have_names_that_clash(
    tmp_path: Path, mariadb_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"mysql://debezium:debezium@127.0.0.1:{mariadb_port}"
    server = create_engine(address.replace("mysql", "mysql+pymysql"))
    run(
        server,
        "create database crm; create database sales;"
        "create table crm.customer (id int primary key, `a\tb` int);"
        "create table sales.customer (id int primary key);"
        "create table sales.purchase (id int primary key, a int, b int,"
        " foreign key (a) references crm.customer (id), foreign key (b) references sales.customer (id));"
        "create table sales.`line item` (id int primary key); create table sales.line_item (id int primary key);"
        "create table sales.Purchase (id int primary key)",
    )
    server.dispose()
    for database in ("crm", "sales"):
        monkeypatch.setenv("SOURCE", f"{address}/{database}")
        directory = tmp_path / database
        assert init(directory, "--schemas", "crm,sales") == 0
        text, found = (directory / "entities.yaml").read_text(), load(read_directory(directory))
        assert [line.strip() for line in text.splitlines() if "# join" in line] == [
            "# join: {one: crm.customer, on: {id: a}}",
            "# join: {one: sales.customer, on: {id: b}}",
        ]
        names = ["crm.customer", "sales.Purchase", "sales.customer", "sales.purchase"]
        assert list(found.entities) == names
        assert list(found.entities["crm.customer"].columns) == ["id"]
        assert text.count("not declared, because the connector writes 2 tables to this topic") == 2
