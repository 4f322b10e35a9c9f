"""A Postgres that goes away, takes no writes or has another encoding: the registry says which, and a later try succeeds."""

import uuid
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from registry.errors import RegistryError, RegistryUnreachable
from registry.model import Lease
from registry.repository import Registry
from registry.repository import connection as connection_module

KILL_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
def database(postgres_url: str) -> Iterator[str]:
    """The address of a database of its own, whose settings no other test sees."""
    name = f"outage_{uuid.uuid4().hex[:12]}"
    with server(postgres_url).connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        yield make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


def server(url: str) -> Engine:
    """Connections outside of any transaction."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def taken(registry: Registry) -> Lease:
    registry.migrate(3)
    return registry.take_lease("job", "one", 2, take_over=False, expires_after=60)


def test_a_killed_backend_fails_the_request_under_way_and_the_next_one_succeeds(database: str) -> None:
    with Registry(database) as registry, server(database).connect() as other:
        lease = taken(registry)

        def request() -> None:
            with registry._database.transaction() as connection:
                other.execute(text(KILL_OTHERS))
                connection.execute(text("SELECT 1"))

        with pytest.raises(RegistryUnreachable, match=r"no connection to the registry at .*/outage_\w+ \(--registry\)"):
            request()
        assert registry.holds(lease)


def test_a_server_that_never_answers_fails_the_request_in_time(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Registry(database) as registry:
        lease = taken(registry)
        monkeypatch.setattr(connection_module, "ANSWER_SECONDS", 1.0)

        def request() -> None:
            with registry._database.transaction() as connection:
                connection.execute(text("SELECT pg_sleep(600)"))

        with pytest.raises(RegistryUnreachable, match="no connection to the registry"):
            request()
        monkeypatch.undo()
        assert registry.holds(lease)


def test_an_idle_connection_that_the_server_ended_fails_no_request(database: str) -> None:
    with Registry(database) as registry, server(database).connect() as other:
        lease = taken(registry)
        other.execute(text(KILL_OTHERS))
        registry.renew(lease)


def test_a_server_that_takes_no_writes_is_unreachable_for_writes_and_answers_reads(database: str) -> None:
    with Registry(database) as registry, server(database).connect() as other:
        lease = taken(registry)
        name = make_url(database).database
        other.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
        other.execute(text(KILL_OTHERS))
        assert registry.holds(lease)
        with pytest.raises(
            RegistryUnreachable, match=r"takes no work now at .*read-only transaction; no state is lost"
        ):
            registry.begin_attempt(lease, 0, 0)
        other.execute(text(f"ALTER DATABASE {name} RESET default_transaction_read_only"))
        other.execute(text(KILL_OTHERS))
        assert registry.begin_attempt(lease, 0, 0) == 0


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_hold_every_text_is_refused_at_once(postgres_url: str, encoding: str) -> None:
    name = f"encoding_{uuid.uuid4().hex[:12]}"
    url = make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
    with server(postgres_url).connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"))
        try:
            with Registry(url) as registry, pytest.raises(RegistryError, match=f"has the encoding {encoding}.*UTF8"):
                registry.migrate(3)
        finally:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
