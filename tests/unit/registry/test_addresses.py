"""The hosts of Postgres, from the registry's address and from the environment, as libpq finds them."""

import pytest

from registry.repository import Registry


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("postgresql://me:secret@db.example.org:6543/x", [("db.example.org", 6543)]),
        ("postgresql://db.example.org/x", [("db.example.org", 5432)]),
        ("postgresql://[::1]:6543/x", [("::1", 6543)]),
        ("postgresql:///x?host=/var/run/postgresql", [("/var/run/postgresql", 5432)]),
        ("postgresql:///x?host=a:1&host=b:2", [("a", 1), ("b", 2)]),
        ("postgresql:///x?host=a,b&port=1,2", [("a", 1), ("b", 2)]),
        ("postgresql://", [("from.example.org", 7000)]),
    ],
)
def test_each_host_has_its_port(url: str, addresses: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "from.example.org")
    monkeypatch.setenv("PGPORT", "7000" if url == "postgresql://" else "5432")
    with Registry(url) as registry:
        assert registry.addresses() == addresses
