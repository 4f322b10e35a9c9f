"""A MariaDB of the machine, for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.capture.servers import mariadb
from tests.support.required import required_program


@pytest.fixture(scope="module")
def mariadb_port() -> Iterator[int]:
    """The port of a server whose user `debezium` (password `debezium`) may do anything."""
    required_program("mariadbd", "apt-get install -y mariadb-server")
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # under root the server runs as another user
        with mariadb(Path(folder, "server")) as port:
            yield port
