"""A source that Debezium reads here: the connector has the settings of the page, no password, and the topics of the entities; its
end gives the log back; and a screen shows what changed."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from processor.errors import SettingError, StatestoreError
from processor.language.definitions.load import load
from processor.tools.source import live_source
from processor.tools.source.compared_table import SourceTable
from processor.tools.source.live_source import (
    AUTOCREATE,
    MARIADB,
    POSTGRESQL,
    WIDTH,
    DocumentScreen,
    changed_members,
    connector_properties,
    kind_of_source,
    password_of,
    release_source,
    topic_prefix,
)
from processor.tools.source.session import SourceSession
from processor.values.record import Record

PAGE = Path(__file__).parents[4] / "docs" / "debezium.md"
TABLES = ["public.users", "public.orders"]
ADDRESS = "postgresql://debezium@postgres.example.org/app"


def test_the_page_shows_the_properties_that_the_command_runs() -> None:
    block = re.search(r"cat > connector.json <<'END'\n(.*?)\nEND\n", PAGE.read_text(), re.DOTALL)
    assert block is not None
    page = json.loads(block[1])
    assert {"name": page["name"], **page["config"]} == connector_properties(ADDRESS, "app", TABLES, kind=POSTGRESQL)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql:///shop", {"hostname": "localhost", "port": "5432", "user": "me", "dbname": "shop"}),
        ("postgres://a%40b@[::1]:7/x%20y", {"hostname": "::1", "port": "7", "user": "a@b", "dbname": "x y"}),
        ("postgresql://u:secret@h/d?sslmode=require&password=other", {"user": "u", "sslmode": "require"}),
    ],
)
def test_the_connector_takes_each_part_of_an_address_and_no_password(
    address: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGUSER", "me")
    made = connector_properties(address, "app", TABLES, kind=POSTGRESQL)
    assert {name: made[f"database.{name}"] for name in expected} == expected
    assert made["database.password"] == "${env:STATESTORE_SOURCE_PASSWORD}"
    assert not {"secret", "other"} & {*made.values()}


def test_a_parameter_that_debezium_lacks_is_refused_by_name() -> None:
    with pytest.raises(SettingError, match="no setting of Debezium for options: leave it out"):
        connector_properties(f"{ADDRESS}?options=-c", "app", TABLES, kind=POSTGRESQL)


def test_a_table_of_any_name_is_a_pattern_of_this_table_alone() -> None:
    made = connector_properties(ADDRESS, "app", ["public.a+b", "public.x,y"], kind=POSTGRESQL)
    assert made["table.include.list"] == r"public.a\+b,public.x\,y"


def test_the_connector_of_mariadb_keeps_its_history_in_kafka_and_has_no_slot() -> None:
    made = connector_properties("mysql://me@h/shop", "app", ["shop.users"], kind=MARIADB)
    assert made["connector.class"].endswith("MariaDbConnector")
    assert (made["database.port"], made["database.include.list"]) == ("3306", "shop")
    assert made["schema.history.internal.kafka.topic"] == "app.schema-history"
    assert not [name for name in made if name.startswith(("slot", "publication", "plugin"))]


def test_the_password_is_that_of_the_address_else_of_the_variable_of_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "variable")
    assert password_of("postgresql://u@h/d?password=a%26b") == "a&b"
    assert password_of("postgresql://u:a%26b@h/d") == "a&b"
    assert password_of("postgresql://u@h/d") == "variable"
    assert password_of("mysql://u@h/d") == ""


def prefix_of(*topics: str) -> str:
    text = "".join(
        f"{name}: {{topic: {topic}, key: [id], columns: {{id: int}}}}\n"
        for name, topic in zip("abc", topics, strict=False)
    )
    tables = [
        SourceTable(schema="public", name=name, columns={"id": "integer"}, key=("id",), nearby=True) for name in "abc"
    ]
    return topic_prefix(list(load({"entities.yaml": text}).entities.values()), tables)


def test_the_prefix_is_that_of_the_topics_of_the_definitions() -> None:
    assert prefix_of("shop.eu.public.a", "shop.eu.public.b") == "shop.eu"


@pytest.mark.parametrize(
    ("topics", "says"),
    [
        (("a",), "entity a has the topic a; Debezium writes public.a to PREFIX.public.a"),
        (
            ("shop.public.a", "other.public.b"),
            "shop.public.a and other.public.b: give definitions of the tables of one",
        ),
    ],
)
def test_topics_that_no_connector_writes_are_refused(topics: tuple[str, ...], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        prefix_of(*topics)


class Rows:
    """Answers each statement with these rows."""

    def __init__(self, *rows: Any) -> None:
        self.rows = list(rows)

    def execute(self, *_: Any) -> "Rows":
        return self

    def execution_options(self, **_: Any) -> "Rows":
        return self

    def all(self) -> list[Any]:
        return self.rows


def test_a_mysql_server_is_refused_by_name_and_a_mariadb_is_not() -> None:
    for version, kind in (("10.11.11-MariaDB-log", MARIADB), ("8.4.3", "")):
        connection: Any = Rows((version,))
        session = SourceSession(connection, mysql=True)
        if kind:
            assert kind_of_source(session) == kind
        else:
            with pytest.raises(SettingError, match=r"MySQL 8\.4\.3, and nobody ran this command with one"):
                kind_of_source(session)


@pytest.mark.parametrize(
    ("mode", "there", "drops", "says"),
    [
        ("filtered", True, ["slot", "PUBLICATION"], "slot statestore_app and publication statestore_app"),
        ("disabled", True, ["slot"], "slot statestore_app"),
        ("filtered", False, ["slot"], ""),
    ],
)
def test_the_end_removes_the_slot_and_only_a_publication_that_debezium_made(
    mode: str, there: bool, drops: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, addresses = list[str](), list[str]()

    class Source(Rows):
        def exec_driver_sql(self, statement: str) -> Rows:
            statements.append(statement)
            return Rows(*([1] if there and "AND active" not in statement else []))

    @contextmanager
    def connected(address: str, _: str) -> Iterator[Rows]:
        addresses.append(address)
        yield Source()

    monkeypatch.setattr(live_source, "connected", connected)
    properties = connector_properties(f"{ADDRESS}?sslmode=require", "app", TABLES, kind=POSTGRESQL) | {AUTOCREATE: mode}
    assert release_source(properties, "p w") == says
    assert addresses == ["postgresql://debezium@postgres.example.org:5432/app?password=p%20w&sslmode=require"]
    dropping = {"slot": "pg_drop_replication_slot(slot_name)", "PUBLICATION": "DROP PUBLICATION statestore_app"}
    assert [name for name, words in dropping.items() if any(words in one for one in statements)] == drops


def test_a_source_that_refuses_the_end_gets_its_sql_in_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def connected(*_: str) -> Any:
        raise StatestoreError("no answer")

    monkeypatch.setattr(live_source, "connected", connected)
    with pytest.raises(
        StatestoreError, match=r"drop_replication_slot\('statestore_app'\); DROP PUBLICATION .* no answer"
    ):
        release_source(connector_properties(ADDRESS, "app", TABLES, kind=POSTGRESQL), "")


def test_a_screen_shows_some_documents_of_a_look_and_counts_the_rest() -> None:
    records = [
        Record(topic="p", partition=0, offset=n, timestamp=0, key=str(n).encode(), value=b'{"id":%d}' % n)
        for n in range(5)
    ]

    class Documents:
        def fresh(self) -> list[Record]:
            return [records.pop(0) for _ in range(len(records))]

    documents: Any = Documents()
    lines: list[str] = []
    assert DocumentScreen(documents, lines.append, 2).show_documents() == 5
    assert lines == ['doc    p 0 {"id":0}', 'doc    p 1 {"id":1}', "doc    and 3 more"]


def test_a_line_shows_the_changed_members_only() -> None:
    before = {"id": 1, "name": "Ann", "balance": 1, "purchases": []}
    assert changed_members(before, {**before, "name": "Bea", "purchases": [1]}) == '{"name":"Bea","purchases":[1]}'
    assert changed_members(None, {"id": 1}) == '{"id":1}'
    assert changed_members(before, None) == "is gone"


def test_a_line_cuts_long_texts_and_long_lists() -> None:
    assert (
        changed_members(None, {"profile": "0123456789abcdef" * 99, "id": 1}) == '{"profile":"0123456789ab...","id":1}'
    )
    assert len(changed_members(None, {"list": list(range(999))})) == WIDTH + len(" ...")
