"""What a database lacks before Debezium starts has the SQL that allows it."""

from typing import Any

import pytest

from processor.tools.doctor.source import missing_grants, missing_rights, sql_identifier
from processor.tools.source.compared_table import SourceTable
from processor.tools.source.session import PostgresRights

TABLES = [SourceTable(schema="public", name=name, columns={}, key=(), nearby=True) for name in ("users", "Order lines")]
NAMES = list(map(str, TABLES))
ALL = dict.fromkeys(NAMES, (True, True, True))
NAME = "statestore_app"
READY = PostgresRights(
    user="me",
    database="app",
    standby=False,
    replicates=True,
    creates=True,
    free_slots=1,
    free_senders=1,
    published=None,
    publication=False,
    reader=None,
    tables=ALL,
)


def test_a_ready_user_lacks_nothing() -> None:
    assert list(missing_rights(READY, TABLES, NAME)) == []
    again = READY._replace(free_slots=0, reader=0)  # the slot of an earlier run
    assert list(missing_rights(again, TABLES, NAME)) == []


@pytest.mark.parametrize(
    ("change", "text", "cure"),
    [
        ({"standby": True}, "a standby", "the primary"),
        ({"replicates": False}, "user me may not read the log", "ALTER ROLE me REPLICATION; on Amazon RDS: GRANT rds_"),
        ({"free_slots": 0}, "no replication slot is free", "max_replication_slots"),
        ({"free_senders": 0}, "no process that sends the log is free", "max_wal_senders"),
        ({"reader": 77}, "process 77 reads slot statestore_app", "SELECT pg_terminate_backend(77)"),
        (
            {"tables": ALL | {NAMES[1]: (False, True, True)}},
            "may not use schema public",
            "GRANT USAGE ON SCHEMA public TO me",
        ),
        (
            {"tables": ALL | {NAMES[1]: (True, False, True)}},
            "may not read public.Order lines",
            'GRANT SELECT ON public."Order lines" TO me',
        ),
        (
            {"tables": ALL | {NAMES[0]: (True, True, False)}},
            "does not own public.users",
            'CREATE PUBLICATION statestore_app FOR TABLE public.users, public."Order lines"',
        ),
        ({"creates": False}, "may create nothing in app", "let an owner give: CREATE PUBLICATION statestore_app"),
        (
            {"publication": True, "published": NAMES[:1], "creates": False},
            "publication statestore_app lacks public.Order lines",
            'ALTER PUBLICATION statestore_app ADD TABLE public."Order lines"',
        ),
    ],
)
def test_each_missing_right_has_its_sql(change: dict[str, Any], text: str, cure: str) -> None:
    (found,) = missing_rights(READY._replace(**change), TABLES, NAME)
    assert found.state == "failure"
    assert text in found.text
    assert cure in found.cure


def test_a_publication_of_an_administrator_needs_no_owner() -> None:
    made = READY._replace(
        publication=True, published=NAMES, creates=False, tables=dict.fromkeys(NAMES, (True, True, False))
    )
    assert list(missing_rights(made, TABLES, NAME)) == []


@pytest.mark.parametrize(
    ("grants", "missing"),
    [
        ("GRANT ALL PRIVILEGES ON *.* TO `ME`", ""),
        ("GRANT SELECT, RELOAD, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO `ME`", ""),
        (
            "GRANT USAGE ON *.* TO `ME`; GRANT ALL PRIVILEGES ON `SHOP`.* TO `ME`",
            "REPLICATION SLAVE, REPLICATION CLIENT, RELOAD",
        ),
    ],
)
def test_each_missing_privilege_of_mariadb_is_named(grants: str, missing: str) -> None:
    assert [one.text for one in missing_grants(grants)] == [f"the user has no {missing}"] * bool(missing)


def test_an_identifier_is_quoted_where_sql_needs_it() -> None:
    assert [sql_identifier(name) for name in ("a_1", "A", 'x"y')] == ["a_1", '"A"', '"x""y"']
