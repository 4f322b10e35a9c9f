"""A store and a registry over a database whose operator gave durability away for speed: what they commit outlasts a crash."""

from contextlib import closing

import pytest

from registry.repository import Registry
from statestore.keys import Key
from statestore.postgres import PostgresStore
from statestore.store import Write
from tests.contract.postgres_servers import crashing_postgres, execute
from tests.contract.stored_items import item

KEY = Key("TABLE#user", "octocat")
SLOW_LOG = ("wal_writer_delay = '10s'", "wal_writer_flush_after = '1GB'")
"""So the server itself syncs a commit of `synchronous_commit = off` long after its answer."""


def test_what_was_committed_outlasts_a_crash_with_synchronous_commit_off() -> None:
    with crashing_postgres() as (url, crash):
        for setting in ("synchronous_commit = off", *SLOW_LOG):
            execute(url, f"ALTER SYSTEM SET {setting}")
        execute(url, "SELECT pg_reload_conf()")
        with closing(PostgresStore(url=url, table="kept")) as store, Registry(url, "kept") as registry:
            store.create(1)
            registry.migrate(1)
            execute(url, "CHECKPOINT")
            store.write(Write(KEY, {"v": "1"}))
            lease = registry.take_lease("job", "owner", 1, take_over=False, expires_after=60)
            assert store.durability().waits == "off"
        crash()
        with closing(PostgresStore(url=url, table="kept")) as store, Registry(url, "kept") as registry:
            assert store.get([KEY]) == {KEY: item(KEY, v="1")}
            assert registry.holds(lease)


@pytest.mark.parametrize("level", ["remote_apply", "local", "off"])
def test_a_session_never_weakens_the_wait_for_a_commit(postgres: str, level: str) -> None:
    url = f"{postgres}?options=-csynchronous_commit%3D{level}"
    with closing(PostgresStore(url=url, table="kept")) as store:
        found = store._manage("looking", lambda c: c.execute("SHOW synchronous_commit").fetchall())
    assert found == [("remote_apply" if level == "remote_apply" else "on",)]
    with Registry(url, "kept") as registry, registry._database.engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == found[0][0]
