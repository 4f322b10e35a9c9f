"""Postgres servers, and a store over an empty table in each."""

from collections.abc import Callable, Iterator

import pytest

from statestore.postgres import PostgresStore
from tests.contract.conftest import SLOTS, params_on_postgres
from tests.contract.postgres_servers import execute

MakeStore = Callable[..., PostgresStore]
"""Makes a store over the table of a test, with these arguments."""


@pytest.fixture(params=params_on_postgres())
def url(request: pytest.FixtureRequest) -> str:
    """The address of a server."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def make(url: str) -> Iterator[MakeStore]:
    """Makes stores over one table with three slots, which is empty."""
    made: list[PostgresStore] = []

    def new(**more: object) -> PostgresStore:
        made.append(PostgresStore(url=url, table="own", **more))  # type: ignore[arg-type]
        return made[-1]

    new().create(SLOTS)
    execute(url, "TRUNCATE state_own.items, state_own.fences")
    yield new
    for store in made:
        store.close()


@pytest.fixture
def on_postgres(url: str) -> Iterator[tuple[str, PostgresStore]]:
    """The address of a server, and a store over its table `contract`, in which no row expires."""
    store = PostgresStore(url=url, table="contract", clock=lambda: -(2.0**62))
    store.create(SLOTS)
    yield url, store
    store.close()
