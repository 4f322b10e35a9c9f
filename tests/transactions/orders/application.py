"""An application whose transactions write two to five tables of a database each. An order says what its other tables hold: the
sums of its lines and payments, how many lines and shipments it has, and in which revision its receipt is.

    python tests/transactions/orders/application.py create URL --seed 1      makes the tables, and first orders
    python tests/transactions/orders/application.py write URL --writers 4    writes until SIGTERM, on this many connections

URL is `postgresql://...`, of the database `postgres`, or `mysql://...`. Each transaction that commits prints the moment, and
the revision of each order after it. The last row, in the table `closing`, shows that all changes are in the log.
"""

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from time import sleep, time
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[3]))  # a script finds the tests of its checkout
from tests.transactions.order_steps import STEPS, Orders, Step, delete, place, renumber

FIRST_ORDERS = 40
MOST_ORDERS = 150
LONG_SHARE, ROLLED_BACK_SHARE = 0.04, 0.08
"""Of all transactions."""
LONGEST = 4.0
"""Seconds of a long transaction."""


class Conflict(Exception):
    """The database refused a transaction: a deadlock."""


class Application:
    """`steps`: all steps with their weights; `rolled_back`: transactions without effect."""

    def __init__(self, url: str, steps: dict[Step, int], first_id: int) -> None:
        self.url, self.steps, self.stopping, self.ids = url, steps, threading.Event(), count(first_id)
        self.committed = self.rolled_back = 0

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection outside of transactions."""
        address = urlsplit(self.url)
        if address.scheme == "postgresql":
            import psycopg

            with psycopg.connect(self.url, dbname="shop") as connection:
                yield connection
            return
        import pymysql  # type: ignore[import-untyped]

        login = {"host": address.hostname, "port": address.port, "user": address.username, "password": address.password}
        connection = pymysql.connect(**login, database="public")
        with connection, connection.cursor() as cursor:
            cursor.execute("set session transaction isolation level read committed")
            connection.commit()
            yield connection

    def write(self, writer: int, seed: int, pause: float) -> None:
        """Writes until `stopping`."""
        random = Random(f"{seed} {writer}")
        with self.connection() as connection:
            while not self.stopping.wait(random.uniform(0, 2 * pause)):
                self._write_once(connection, random)

    def _write_once(self, connection: Any, random: Random) -> None:
        orders = Orders(cursor=connection.cursor(), random=random, ids=self.ids)
        try:
            step = random.choices(list(self.steps), list(self.steps.values()))[0]
            full = orders.sql("select count(*) from orders")[0][0] > MOST_ORDERS
            (delete if full and step is place else step)(orders)
            if random.random() < LONG_SHARE:
                sleep(random.uniform(1, LONGEST))
            if random.random() < ROLLED_BACK_SHARE:
                raise Conflict
            connection.commit()
        except Exception as error:
            connection.rollback()
            if not isinstance(error, Conflict) and "deadlock" not in str(error).lower():
                raise
            self.rolled_back += 1
            return
        self.committed += 1
        if orders.revisions:
            print(json.dumps({"at": time(), "orders": orders.revisions}), flush=True)


def create(url: str, seed: int) -> None:
    """Makes the database with its tables and first orders."""
    if url.startswith("postgresql"):
        import psycopg

        with psycopg.connect(url, autocommit=True) as server:
            server.execute("create database shop")
    application = Application(url, {place: 1}, 1_000)
    with application.connection() as connection:
        for statement in (Path(__file__).parent / "source.sql").read_text().split(";\n"):
            if statement.strip():
                connection.cursor().execute(statement)
        connection.commit()
        orders = Orders(cursor=connection.cursor(), random=Random(seed), ids=application.ids)
        for _ in range(FIRST_ORDERS):
            place(orders)
        connection.commit()
    print(f"the shop has {FIRST_ORDERS} orders", flush=True)


def write(url: str, seed: int, writers: int, pause: float, keys: int) -> None:
    """Writes until SIGTERM."""
    application = Application(url, {**STEPS, renumber: keys}, 1_000_000)
    threading.excepthook = _end
    signal.signal(signal.SIGTERM, lambda *_: application.stopping.set())
    threads = [threading.Thread(target=application.write, args=(n, seed, pause)) for n in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with application.connection() as connection:
        connection.cursor().execute("insert into closing values (1)")
        connection.commit()
    print(f"{application.rolled_back} transactions were rolled back", flush=True)
    print(f"closes after {application.committed} transactions", flush=True)


def _end(failed: threading.ExceptHookArgs) -> None:
    """Ends the process where a writer fails, so that its line of success is missing."""
    sys.excepthook(failed.exc_type, failed.exc_value or failed.exc_type(), failed.exc_traceback)
    os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description="writes orders to a Postgres or a MariaDB")
    parser.add_argument("action", choices=("create", "write"))
    parser.add_argument("url", help="address of the server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--writers", type=int, default=4, help="connections that write at the same time")
    parser.add_argument(
        "--pause", type=float, default=0.5, help="mean seconds between two transactions of a connection"
    )
    parser.add_argument("--keys", type=int, default=0, help="weight of transactions that change primary keys")
    given = parser.parse_args()
    if given.action == "create":
        create(given.url, given.seed)
    else:
        write(given.url, given.seed, given.writers, given.pause, given.keys)


if __name__ == "__main__":
    main()
