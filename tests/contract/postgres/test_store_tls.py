"""The store over TLS: libpq's options in the address."""

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from statestore.postgres import PostgresStore
from statestore.store import StoreError
from tests.secured.broker import Authority
from tests.secured.postgres import tls_before


def test_the_store_checks_the_certificate_of_the_server(url: str, tmp_path: Path) -> None:
    own, other = (Authority(folder=tmp_path, name=name) for name in ("own", "other"))
    certificate, key = own.issue("postgres")
    where = urlsplit(url)
    with tls_before(where.hostname or "", where.port or 5432, certificate, key) as port:
        login, _, _ = where.netloc.rpartition("@")
        there = urlunsplit(where._replace(netloc=f"{login}@127.0.0.1:{port}"))
        for authority, said in ((own, ""), (other, "certificate verify failed")):
            store = PostgresStore(
                url=f"{there}?sslmode=verify-full&sslrootcert={authority.file}", table="tls", attempts=1
            )
            if said:
                with pytest.raises(StoreError, match=said):
                    store.describe()
            else:
                assert store.describe() is None
            store.close()
