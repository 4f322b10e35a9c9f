"""The application of the live demo, on a Postgres with a logical log: its writes, and the SQL of its products over its tables."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from processor.environment.programs.servers import start_postgres
from processor.errors import OracleError
from processor.language.definitions.load import load, read_directory
from processor.tools.demo.live import EXAMPLE
from processor.tools.inspect.oracle import source_oracle

STEPS = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    part = start_postgres(tmp_path_factory.mktemp("shop") / "postgres", more={"wal_level": "logical"})
    yield part.endpoint.replace("+psycopg", "", 1)
    part.stop()


@pytest.fixture(scope="module")
def written(server: str) -> list[str]:
    """The lines of the application, which made its tables and wrote."""
    run_application(server, "create")
    return run_application(server, "write", "--steps", str(STEPS), "--pause", "0").splitlines()


def run_application(server: str, action: str, *flags: str) -> str:
    parts = urlsplit(server)
    url = f"postgresql://{parts.username}@{parts.hostname}:{parts.port}/postgres"
    command = [sys.executable, str(EXAMPLE / "application.py"), action, url, *flags]
    environment = {**os.environ, "PGPASSWORD": parts.password or ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_step_of_the_application_works_and_its_last_row_closes_the_log(server: str, written: list[str]) -> None:
    assert written[-1] == f"closes after {STEPS} steps"
    text = "\n".join(written)
    kinds = ("adds customer", "in one transaction", "renames", "tickets move", "in one statement", "new primary key")
    assert [
        kind
        for kind in (*kinds, "swaps", "rolls this back", "deletes customer", "replica identity")
        if kind not in text
    ] == []
    with psycopg.connect(server.removesuffix("postgres") + "shop") as connection:
        assert connection.execute("show wal_level").fetchone() == ("logical",)
        assert connection.execute("select count(*) from closing").fetchone() == (1,)


def test_the_sql_of_the_products_reads_the_tables_of_the_source_and_leaves_them(
    server: str, written: list[str]
) -> None:
    definitions = load(read_directory(EXAMPLE))
    url = server.removesuffix("postgres") + "shop"
    for _ in range(2):
        with source_oracle(url, "public", definitions.entities) as tables:
            cards = tables.documents(definitions.products["customer_card"])
    with psycopg.connect(url) as connection:
        rows = connection.execute("select id, name, balance, profile from customer").fetchall()
    assert len(cards) == len(rows) > 3
    for key, *columns in rows:
        card = cards[json.dumps({"id": key}, separators=(",", ":"))]
        assert [card[name] for name in ("name", "balance", "profile")] == columns
    assert any(purchase["lines"] for card in cards.values() for purchase in card["purchases"])


def test_a_missing_table_of_the_source_is_an_error_with_its_name(server: str, written: list[str]) -> None:
    definitions = load(read_directory(EXAMPLE))
    # The database `postgres` has no tables of the shop.
    with (
        pytest.raises(OracleError, match="customer"),
        source_oracle(server, "public", definitions.entities) as tables,
    ):
        tables.documents(definitions.products["customer_card"])
