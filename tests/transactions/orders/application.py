"""An application whose transactions write two to five tables of a database each. An order says what its other tables hold: the
sums of its lines and payments, how many lines and shipments it has, and in which revision its receipt is.

    python tests/transactions/orders/application.py create URL --seed 1      makes the tables, and first orders
    python tests/transactions/orders/application.py write URL --writers 4    writes until SIGTERM, on so many connections

URL is `postgresql://...`, of the database `postgres`, or `mysql://...`. Each transaction that commits prints the moment, and
the revision of each order after it. The last row, in the table `closing`, shows that all changes are in the log.
"""

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from time import sleep, time
from typing import Any
from urllib.parse import urlsplit

FIRST_ORDERS = 40
MOST_ORDERS = 150
LONG_SHARE, ROLLED_BACK_SHARE = 0.04, 0.08
"""Of all transactions."""
LONGEST = 4.0
"""Seconds of a long transaction."""
LARGE = 300
"""Lines of a large order: more than a batch of the job has records."""
ids = count(1_000)


class Conflict(Exception):
    """The database refused a transaction: a deadlock."""


@dataclass(slots=True, kw_only=True)
class Orders:
    """A connection in a transaction. `revisions`: of the orders that the transaction has written, None of one that is gone."""

    cursor: Any
    random: Random
    revisions: dict[int, int | None] = field(default_factory=dict)

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Runs a statement. Returns the rows of a query."""
        self.cursor.execute(statement, values)
        return list(self.cursor.fetchall()) if self.cursor.description else []

    def lock(self, most: int) -> list[int]:
        """Some orders, locked in the order of their ids. The low ids come more often, so writers meet there."""
        known = [row[0] for row in self.sql("select id from orders order by id")]
        drawn = {known[int(len(known) * self.random.random() ** 2)] for _ in range(most)} if known else set()
        return [one for one in sorted(drawn) if self.sql("select id from orders where id = %s for update", one)]

    def rows(self, table: str, column: str, order: int) -> list[int]:
        return [row[0] for row in self.sql(f"select {column} from {table} where order_id = %s order by 1", order)]

    def add_line(self, order: int) -> None:
        self.sql("insert into line values (%s, %s, %s)", next(ids), order, self.random.randrange(1, 10_000))

    def add_payment(self, order: int) -> None:
        self.sql("insert into payment values (%s, %s, %s)", order, next(ids), self.random.randrange(1, 10_000))

    def add_shipment(self, order: int) -> None:
        self.sql("insert into shipment values (%s, %s)", next(ids), order)

    def seal(self, order: int) -> None:
        """Writes into the order what its tables hold now, under a new revision, which its receipt gets too."""
        revision = 1 + self.sql("select revision from orders where id = %s", order)[0][0]
        total, lines = self.sql("select coalesce(sum(amount), 0), count(*) from line where order_id = %s", order)[0]
        paid = self.sql("select coalesce(sum(amount), 0) from payment where order_id = %s", order)[0][0]
        parcels = len(self.rows("shipment", "id", order))
        change = "update orders set revision = %s, total = %s, line_count = %s, paid = %s, parcels = %s where id = %s"
        writes: list[tuple[str, list[Any]]] = [
            (change, [revision, int(total), lines, int(paid), parcels, order]),
            ("update receipt set revision = %s where order_id = %s", [revision, order]),
        ]
        for statement, values in self.random.sample(writes, 2):
            self.sql(statement, *values)
        self.revisions[order] = revision


Step = Callable[[Orders], None]


def place(orders: Orders, lines: int | None = None) -> None:
    """A new order: three to five tables."""
    order = next(ids)
    writes: list[Callable[[], Any]] = [
        lambda: orders.sql("insert into orders values (%s, 0, 0, 0, 0, 0)", order),
        lambda: orders.sql("insert into receipt values (%s, 0)", order),
        *[lambda: orders.add_line(order)] * (lines or orders.random.randrange(1, 6)),
        *[lambda: orders.add_payment(order)] * orders.random.randrange(2),
        *[lambda: orders.add_shipment(order)] * orders.random.randrange(2),
    ]
    for write in orders.random.sample(writes, len(writes)):
        write()
    orders.seal(order)


def place_large(orders: Orders) -> None:
    place(orders, LARGE)


def change_lines(orders: Orders) -> None:
    """Inserts, updates and deletes lines: three tables."""
    for order in orders.lock(1):
        for line in orders.rows("line", "id", order)[:5]:
            if orders.random.random() < 0.3:
                orders.sql("delete from line where id = %s", line)
            elif orders.random.random() < 0.5:
                orders.sql("update line set amount = %s where id = %s", orders.random.randrange(1, 10_000), line)
        orders.add_line(order)
        orders.seal(order)


def pay(orders: Orders) -> None:
    """Inserts a payment, and takes back another one: three tables."""
    for order in orders.lock(1):
        for number in orders.rows("payment", "number", order)[2:]:
            orders.sql("delete from payment where order_id = %s and number = %s", order, number)
        orders.add_payment(order)
        orders.seal(order)


def ship(orders: Orders) -> None:
    """Five tables."""
    for order in orders.lock(1):
        for shipment in orders.rows("shipment", "id", order)[2:]:
            orders.sql("delete from shipment where id = %s", shipment)
        orders.add_shipment(order)
        orders.add_payment(order)
        orders.add_line(order)
        orders.seal(order)


def count_revision(orders: Orders) -> None:
    """Two tables."""
    for order in orders.lock(1):
        orders.seal(order)


def move_line(orders: Orders) -> None:
    """A line gets another order: two roots, three tables."""
    if len(locked := orders.lock(2)) == 2:
        for line in orders.rows("line", "id", locked[0])[:1]:
            orders.sql("update line set order_id = %s where id = %s", locked[1], line)
        for order in locked:
            orders.seal(order)


def raise_prices(orders: Orders) -> None:
    """The first lines of many orders: three tables, about as many records as a batch of the job."""
    for order in orders.lock(60):
        for line in orders.rows("line", "id", order)[:3]:
            orders.sql("update line set amount = amount + 1 where id = %s", line)
        orders.seal(order)


def delete(orders: Orders) -> None:
    """All rows of an order, in any order: five tables."""
    for order in orders.lock(1):
        for table in orders.random.sample(("line", "payment", "shipment", "receipt", "orders"), 5):
            orders.sql(f"delete from {table} where {'id' if table == 'orders' else 'order_id'} = %s", order)
        orders.revisions[order] = None


def renumber(orders: Orders) -> None:
    """New primary keys for an order and all its rows: five tables."""
    for order in orders.lock(1):
        new = next(ids)
        orders.sql("update orders set id = %s where id = %s", new, order)
        for table in ("line", "payment", "shipment", "receipt"):
            orders.sql(f"update {table} set order_id = %s where order_id = %s", new, order)
        orders.revisions[order] = None
        orders.seal(new)


STEPS: dict[Step, int] = {
    place: 20,
    change_lines: 30,
    pay: 15,
    ship: 15,
    count_revision: 5,
    move_line: 15,
    delete: 3,
    place_large: 1,
    raise_prices: 1,
}
"""How often each comes. Above MOST_ORDERS an order goes for each new one."""


class Application:
    """`steps`: all steps with their weights; `rolled_back`: transactions without effect."""

    def __init__(self, url: str, steps: dict[Step, int]) -> None:
        self.url, self.steps, self.stopping = url, steps, threading.Event()
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
        orders = Orders(cursor=connection.cursor(), random=random)
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
    application = Application(url, {place: 1})
    with application.connection() as connection:
        for statement in (Path(__file__).parent / "source.sql").read_text().split(";\n"):
            if statement.strip():
                connection.cursor().execute(statement)
        connection.commit()
        orders = Orders(cursor=connection.cursor(), random=Random(seed))
        for _ in range(FIRST_ORDERS):
            place(orders)
        connection.commit()
    print(f"the shop has {FIRST_ORDERS} orders", flush=True)


def write(url: str, seed: int, writers: int, pause: float, keys: int) -> None:
    """Writes until SIGTERM."""
    global ids
    application = Application(url, {**STEPS, renumber: keys})
    threading.excepthook = _end
    signal.signal(signal.SIGTERM, lambda *_: application.stopping.set())
    ids = count(1_000_000)
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
