"""A real Postgres for the tests: the given one, else one in Docker if Docker answers, else the embedded one. And a MariaDB of the
machine."""

import gc
import os
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, event, make_url, text

from processor.environment.programs.program import SecretUrl
from processor.environment.programs.servers import start_postgres
from registry.repository import Registry
from tests.capture.servers import mariadb
from tests.support.migrated_schemas import drop_schema, schema_maker
from tests.support.required import required_program

SECRETS = {"mask": "mask"}
"""The secrets of examples and random products."""
HMAC = """
create or replace function hmac(value text, key text, kind text) returns bytea immutable strict language sql as $$
select case kind when 'sha256' then sha256(outer_key || sha256(inner_key || convert_to(value, 'UTF8'))) end from (
  select string_agg(set_byte('\\x00', 0, byte # 92), '' order by i), string_agg(set_byte('\\x00', 0, byte # 54), '' order by i)
  from (select i, case when i < length(k) then get_byte(k, i) else 0 end from
    (select case when octet_length(key) > 64 then sha256(convert_to(key, 'UTF8')) else convert_to(key, 'UTF8') end) as short(k),
    generate_series(0, 63) as i
  ) as bytes(i, byte)
) as keys(outer_key, inner_key) $$"""
"""`hmac` of pgcrypto, which no embedded server has, by RFC 2104."""


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of a Postgres server; tests make their own schemas in it."""
    given = os.environ.get("STATESTORE_TEST_POSTGRES_URL")
    for url in [given] if given else _docker() if _docker_answers() else embedded():
        with psycopg.connect(url) as connection:
            connection.execute(HMAC)
        yield url


@pytest.fixture
def schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema that does not exist yet. The fixture drops the schema at the end."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield name
    drop_schema(postgres_url, name)


@pytest.fixture(scope="session")
def make_schema(postgres_url: str) -> Callable[[str], None]:
    """Makes the schema of an empty registry of five slots."""
    return schema_maker(postgres_url, 5)


@pytest.fixture
def registry(postgres_url: str, schema: str, make_schema: Callable[[str], None]) -> Iterator[Registry]:
    """An empty registry of five slots in a schema of its own."""
    make_schema(schema)
    with Registry(postgres_url, schema) as made:
        yield made


@pytest.fixture
def psql(postgres_url: str, schema: str) -> Iterator[Engine]:
    """A connection like an operator's psql: plain SQL, with the registry's schema on the search path."""
    engine = create_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"))

    @event.listens_for(engine, "begin")
    def set_search_path(connection) -> None:  # type: ignore[no-untyped-def]
        connection.execute(text(f"SET LOCAL search_path TO {schema}"))

    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def mariadb_port() -> Iterator[int]:
    """The port of a server whose user `debezium` (password `debezium`) may do anything."""
    required_program("mariadbd", "apt-get install -y mariadb-server")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # under root the server runs as another user
        with mariadb(Path(folder, "server")) as port:
            yield port


def _docker_answers() -> bool:
    import docker

    with warnings.catch_warnings(
        action="ignore"
    ):  # without an answer the Docker client leaves a socket to the garbage collector
        try:
            docker.from_env(timeout=5).close()
            answers = True
        except docker.errors.DockerException:
            answers = False
        gc.collect()
    return answers


def _docker() -> Iterator[str]:
    with warnings.catch_warnings(action="ignore"):
        from testcontainers.postgres import PostgresContainer
    with PostgresContainer("postgres:17-alpine", driver=None) as container:
        yield container.get_connection_url()


def embedded() -> Iterator[str]:
    """The address of a server of the wheel, which ends with the iterator."""
    # Not by the wheel's own function: as root that one opens the folders above its files to all users.
    with tempfile.TemporaryDirectory(prefix="statestore-postgres-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # under root the server is another user
        server = start_postgres(Path(folder))
        try:
            yield SecretUrl(server.endpoint.replace("+psycopg", ""))  # as Docker's, which psycopg takes too
        finally:
            server.stop()
