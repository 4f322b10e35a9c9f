"""A server whose store or registry stops answers with a problem that names it, and continues by itself when it is back."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from registry.repository import Registry
from tests.contract.postgres_servers import crashing_postgres
from tests.integration.web.serve.served_process import answering, stored_row

CURE = "start the part again, or wait; this server continues by itself"


@pytest.fixture(scope="module")
def server() -> Iterator[SimpleNamespace]:
    """A Postgres that tests may stop: its address, and how."""
    with crashing_postgres() as (url, crash):
        yield SimpleNamespace(url=url, crash=crash, place=url.rpartition("@")[2].partition("/")[0])


def test_a_store_that_stops(registry: Registry, postgres_url: str, schema: str, server: SimpleNamespace) -> None:
    with answering(stored_row(registry, postgres_url, server.url, schema)) as ask:

        def away() -> None:
            problem = ask("/documents/profile/1", 503)
            assert f"port {server.place.rpartition(chr(58))[2]} failed" in problem["detail"]
            assert problem["detail"].endswith(CURE)
            assert ask("/rows/user/1", 503)["title"] == "Service Unavailable"
            assert [one["product"] for one in ask("/products")] == ["profile"]  # the registry knows them

        server.crash(away)
        assert ask("/documents/profile/1") == {"id": 1, "name": "ada"}
        server.crash()  # between two requests: the next one has a connection that is gone
        assert ask("/documents/profile/1") == {"id": 1, "name": "ada"}


def test_a_registry_that_stops(postgres_url: str, schema: str, server: SimpleNamespace) -> None:
    with Registry(server.url, schema) as registry:
        registry.migrate(5)
        environment = stored_row(registry, server.url, postgres_url, schema)
    with answering(environment) as ask:

        def away() -> None:
            asked_until_away = ask("/health", 503)
            assert f"no connection to the registry at {server.place}" in asked_until_away["detail"]
            assert "start that Postgres" in asked_until_away["detail"]
            assert ask("/documents/profile/1", 503)["status"] == 503

        server.crash(away)
        assert ask("/documents/profile/1") == {"id": 1, "name": "ada"}
