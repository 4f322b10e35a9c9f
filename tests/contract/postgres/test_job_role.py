"""The role of docs/stores.md does all that a job does with its table, and nothing else."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from statestore.keys import Key
from statestore.postgres import PostgresStore
from statestore.store import Delete, Done, FencingToken, Query, Terminal, Write
from tests.contract.conftest import SLOTS
from tests.contract.postgres.conftest import MakeStore
from tests.contract.postgres_servers import execute

PAGE = Path(__file__).parents[3] / "docs" / "stores.md"
ROLE, PASSWORD = "statestore_state", "state-password"
KEY = Key("TABLE#star", "1")


@pytest.fixture
def as_job(url: str, make: MakeStore) -> Iterator[str]:
    """The address of the server for the role of the page, which has the rights on the table of the test."""
    (statements,) = re.findall(r"<<'END'\n(CREATE ROLE .*?)^END$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for statement in statements.replace("state_statestore", "state_own").strip().splitlines():
        execute(url, statement)
    where = urlsplit(url)
    yield urlunsplit(where._replace(netloc=f"{ROLE}:{PASSWORD}@{where.netloc.rpartition('@')[2]}"))
    execute(url, f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


def test_the_role_does_the_work_of_a_job(as_job: str) -> None:
    now = [1_000.0]
    store = PostgresStore(url=as_job, table="own", clock=lambda: now[0])
    store.create(SLOTS)
    store.take_over(FencingToken("registry", 1))
    assert store.write_all([Write(KEY, {"GSI_1": "ice"}), Write(Key("RUNS", "1"), {"ttl": 1_001})]) == [Done(None)] * 2
    assert [item["SK"] for item in store.query(Query("GSI_1", "ice"))] == ["1"]
    assert len(store.partition(KEY.pk)) == 1
    now[0] = 2_000.0
    assert isinstance(store.write(Write(KEY, {"GSI_1": "fire"})), Done)
    assert [item["SK"] for item in store.scan(None, 10).items] == ["1"]
    assert isinstance(store.delete(Delete(key=KEY)), Done)
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE state_own.items",
        "TRUNCATE state_own.items",
        "ALTER TABLE state_own.items SET UNLOGGED",
        "ALTER TABLE state_own.items ADD COLUMN more text",
        "CREATE INDEX ON state_own.items (item)",
        "CREATE TABLE state_own.more (a text)",
        "CREATE SCHEMA state_more",
        "SELECT * FROM registry_of_another.meta",
        "CREATE ROLE more",
        "COPY state_own.items TO PROGRAM 'cat'",
    ],
)
def test_the_server_refuses_the_role_everything_else(url: str, as_job: str, statement: str) -> None:
    execute(url, "CREATE SCHEMA IF NOT EXISTS registry_of_another")
    execute(url, "CREATE TABLE IF NOT EXISTS registry_of_another.meta (a text)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute(as_job, statement)


def test_the_role_cannot_add_slots_and_learns_why(as_job: str) -> None:
    store = PostgresStore(url=as_job, table="own")
    with pytest.raises(Terminal, match=r"lacks the index GSI_\d+, .* with its owner in --store-url"):
        store.add_slots(SLOTS + 1, lambda _: None)
    store.close()


def test_the_role_cannot_alter_the_form_of_the_table_and_learns_who_can(url: str, as_job: str) -> None:
    store = PostgresStore(url=as_job, table="own", unlogged=True)
    with pytest.raises(Terminal) as refused:
        store.create(SLOTS)
    store.close()
    assert str(refused.value) == (
        "table own is logged, the setting store_unlogged is true, and this user does not own the table: start once with its "
        'owner in --store-url, let the owner give `ALTER TABLE "state_own"."fences" SET UNLOGGED; ALTER TABLE '
        '"state_own"."items" SET UNLOGGED`, or correct the setting'
    )
    execute(url, str(refused.value).split("`")[1])
    store = PostgresStore(url=as_job, table="own", unlogged=True)
    assert store.create(SLOTS) is None
    store.close()
    execute(url, "ALTER TABLE state_own.items SET LOGGED; ALTER TABLE state_own.fences SET LOGGED")


def test_an_owner_of_the_schema_makes_the_table_without_rights_on_the_database(url: str) -> None:
    execute(url, f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
    execute(url, f"CREATE SCHEMA state_owned AUTHORIZATION {ROLE}")
    where = urlsplit(url)
    store = PostgresStore(
        url=urlunsplit(where._replace(netloc=f"{ROLE}:{PASSWORD}@{where.netloc.rpartition('@')[2]}")), table="owned"
    )
    store.create(SLOTS)
    store.add_slots(SLOTS + 1, lambda _: None)
    assert store.describe().slots == SLOTS + 1  # type: ignore[union-attr]
    store.close()
    execute(url, f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


@pytest.mark.parametrize(
    ("made", "cure"),
    [
        ("", f'CREATE SCHEMA "state_owned" AUTHORIZATION "{ROLE}"'),
        ("CREATE SCHEMA state_owned", f'ALTER SCHEMA "state_owned" OWNER TO "{ROLE}"'),
    ],
)
def test_a_role_that_may_not_make_a_table_learns_the_statement_for_an_administrator(
    url: str, made: str, cure: str
) -> None:
    execute(url, f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'; DROP SCHEMA IF EXISTS state_owned CASCADE")
    if made:
        execute(url, f"{made}; GRANT USAGE ON SCHEMA state_owned TO {ROLE}")
    where = urlsplit(url)
    role = urlunsplit(where._replace(netloc=f"{ROLE}:{PASSWORD}@{where.netloc.rpartition('@')[2]}"))
    store = PostgresStore(url=role, table="owned")
    with pytest.raises(
        Terminal, match=r"permission denied for .*: let an administrator give the statement "
    ) as refused:
        store.create(SLOTS)
    assert str(refused.value).endswith(cure)
    execute(url, cure)
    store.create(SLOTS)
    store.close()
    execute(url, f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


def test_a_partitioned_table_is_refused(url: str) -> None:
    store = PostgresStore(url=url, table="parted")
    store.create(1)
    for statement in (
        "ALTER TABLE state_parted.items RENAME TO whole",
        "ALTER INDEX state_parted.items_pkey RENAME TO whole_pkey",
        "CREATE TABLE state_parted.items (LIKE state_parted.whole, PRIMARY KEY (pk, sk)) PARTITION BY LIST (pk)",
    ):
        execute(url, statement)
    with pytest.raises(
        Terminal, match="table parted exists, but does not fit: it is partitioned, which the store does not"
    ):
        store.create(1)
    store.close()
    execute(url, "DROP SCHEMA state_parted CASCADE")
