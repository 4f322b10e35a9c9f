"""The registry over TLS: libpq's options in the address, or in PG* variables."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import make_url

from processor.tools.inspect.oracle import oracle
from registry.errors import RegistryUnreachable
from registry.repository import Registry
from tests.secured.broker import Authority
from tests.secured.postgres import tls_before


@dataclass(frozen=True, kw_only=True)
class Secured:
    """The address of the registry's Postgres behind TLS, and the certificate of the authority that signed its certificate."""

    address: str
    authority: Path


@pytest.fixture(scope="module")
def secured(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    url = make_url(postgres_url).set(drivername="postgresql")
    authority = Authority(folder=tmp_path_factory.mktemp("tls"), name="authority")
    certificate, key = authority.issue("postgres")
    with tls_before(url.host or "127.0.0.1", url.port or 5432, certificate, key) as port:
        there = url.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
        yield Secured(address=there, authority=authority.file)


def version(address: str, schema: str) -> int:
    """Makes a registry there, and reads its version."""
    with Registry(address, schema) as registry:
        registry.migrate(3)
        return registry.snapshot().version


def test_the_registry_checks_the_certificate_and_the_name_of_the_server(secured: Secured, schema: str) -> None:
    assert version(f"{secured.address}?sslmode=verify-full&sslrootcert={secured.authority}", schema) == 0


def test_the_variables_of_libpq_say_the_same(secured: Secured, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGSSLROOTCERT", str(secured.authority))
    assert version(secured.address, schema) == 0
    with oracle(secured.address, schema, {}):
        pass


def test_a_certificate_of_another_authority_is_refused(secured: Secured, schema: str, tmp_path: Path) -> None:
    other = Authority(folder=tmp_path, name="other").file
    with pytest.raises(RegistryUnreachable, match="certificate verify failed"):
        version(f"{secured.address}?sslmode=verify-full&sslrootcert={other}", schema)


def test_a_certificate_of_another_name_is_refused(secured: Secured, schema: str) -> None:
    elsewhere = secured.address.replace("127.0.0.1", "localhost")
    with pytest.raises(RegistryUnreachable, match="does not match host name"):
        version(f"{elsewhere}?sslmode=verify-full&sslrootcert={secured.authority}", schema)


def test_a_server_without_tls_is_refused_where_tls_is_required(postgres_url: str, schema: str) -> None:
    separator = "&" if "?" in postgres_url else "?"
    with pytest.raises(RegistryUnreachable, match="does not support SSL"):
        version(f"{postgres_url}{separator}sslmode=require", schema)
