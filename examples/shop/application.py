"""The application of the shop: writes to its Postgres as applications do. The application knows neither Debezium nor statestore.

    python examples/shop/application.py create URL                       makes the database `shop`, its tables and first rows
    python examples/shop/application.py write URL --steps 40 --pause 1   writes; each step is one transaction

Without `--steps` the application writes until SIGTERM. Its last row then shows that all its changes are in the log.
URL is the address of the database `postgres` of a server, as libpq reads it. The variable PGPASSWORD may have the password.
"""

import argparse
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import psycopg

DATABASE = "shop"
LARGE = 3_000
"""Characters of a large text. PostgreSQL keeps a text of more than about 2,000 outside of the row."""
WORDS = ("red", "green", "small", "large", "old", "new", "round", "flat")
THINGS = ("lamp", "chair", "table", "clock", "radio", "kettle")


@dataclass(frozen=True, kw_only=True)
class Shop:
    """A connection to the database of the shop, and a source of chance."""

    connection: psycopg.Connection
    random: Random

    def sql(self, statement: str, *values: Any) -> int:
        """Runs a statement. Returns how many rows it changed."""
        return self.connection.execute(statement.encode(), values).rowcount

    def any_of(self, query: str) -> Any:
        """One row of a query, None if there is none."""
        rows = self.connection.execute(query.encode()).fetchall()
        return self.random.choice(rows) if rows else None

    def name(self) -> str:
        return f"{self.random.choice(WORDS)} {self.random.choice(THINGS)} {self.random.randrange(1000)}"

    def large_text(self) -> str:
        return self.random.randbytes(LARGE // 2).hex()


Step = Callable[[Shop], str | None]
"""Writes in one transaction. Returns a line that says what the step did, None if there was nothing to do."""


def add_customer(shop: Shop) -> str:
    name = shop.name()
    email = f"{name.replace(' ', '.')}@example.org"
    shop.sql("insert into customer (name, email, profile) values (%s, %s, %s)", name, email, shop.large_text())
    shop.sql("insert into ticket (email, subject) values (%s, 'welcome')", email)
    return f"adds customer {name!r}, with a large profile and a ticket"


def add_article(shop: Shop) -> str:
    title, code = shop.name(), f"A{shop.random.randrange(10**9)}"
    price = shop.random.randrange(1, 100_000) / 100
    values = (code, title, price, shop.large_text())
    shop.sql("insert into article (code, title, price, manual) values (%s, %s, %s, %s)", *values)
    return f"adds article {code}"


def place_purchase(shop: Shop) -> str | None:
    customer = shop.any_of("select id from customer order by id")
    if customer is None:
        return None
    (purchase,) = shop.any_of(f"insert into purchase (customer_id) values ({customer[0]:d}) returning id")
    lines = shop.random.randrange(1, 4)
    for number in range(1, lines + 1):
        (code,) = shop.any_of("select code from article order by code")
        shop.sql("insert into line values (%s, %s, %s, %s)", purchase, number, code, shop.random.randrange(1, 9))
    return f"places purchase {purchase} with {lines} lines for customer {customer[0]}, in one transaction"


def rename_customer(shop: Shop) -> str | None:
    customer, name = shop.any_of("select id from customer order by id"), shop.name()
    if customer is None:
        return None
    shop.sql("update customer set name = %s where id = %s", name, *customer)
    return f"renames customer {customer[0]} to {name!r}; the large profile does not change, so the log does not have it"


def change_email(shop: Shop) -> str | None:
    """Changes a join key; every second time that of the tickets too, in the same transaction."""
    customer = shop.any_of("select id, email from customer order by id")
    if customer is None:
        return None
    email, moves = f"{shop.random.randrange(10**6)}@example.org", shop.random.random() < 0.5
    shop.sql("update customer set email = %s where id = %s", email, customer[0])
    tickets = shop.sql("update ticket set email = %s where email = %s", email, customer[1]) if moves else 0
    return f"gives customer {customer[0]} the e-mail {email}; {tickets} tickets move with it"


def solve_tickets(shop: Shop) -> str:
    count = shop.sql("update ticket set solved = not solved where id %% 3 = %s", shop.random.randrange(3))
    return f"turns every third ticket from open to solved or back: {count} rows in one statement"


def ship_purchases(shop: Shop) -> str:
    status = shop.random.choice(("paid", "shipped", "returned"))
    count = shop.sql("update purchase set status = %s where id %% 2 = %s", status, shop.random.randrange(2))
    return f"sets every second purchase to {status!r}: {count} rows in one statement"


def change_prices(shop: Shop) -> str:
    count = shop.sql("update article set price = price + 0.05")
    return f"raises the prices of all {count} articles in one statement"


def change_code(shop: Shop) -> str | None:
    """Changes a primary key. The foreign key of the lines follows by ON UPDATE CASCADE, in the same transaction."""
    article, code = shop.any_of("select code from article order by code"), f"B{shop.random.randrange(10**9)}"
    if article is None:
        return None
    shop.sql("update article set code = %s where code = %s", code, *article)
    return f"gives article {article[0]} the new primary key {code}; its lines follow"


def number_lines(shop: Shop) -> str | None:
    """Changes one part of a primary key of two columns, for all lines of a purchase."""
    purchase = shop.any_of("select distinct purchase_id from line order by 1")
    if purchase is None:
        return None
    count = shop.sql("update line set number = number + 100 where purchase_id = %s", *purchase)
    return f"gives the {count} lines of purchase {purchase[0]} new primary keys"


def swap_lines(shop: Shop) -> str | None:
    """Swaps the primary keys of two rows, by a third key, in one transaction."""
    line = shop.any_of(
        "select purchase_id, min(number), max(number) from line group by 1 having count(*) > 1 order by 1"
    )
    if line is None:
        return None
    purchase, first, last = line
    for before, after in ((first, 0), (last, first), (0, last)):
        shop.sql("update line set number = %s where purchase_id = %s and number = %s", after, purchase, before)
    return f"swaps the primary keys of lines {first} and {last} of purchase {purchase}"


def replace_line(shop: Shop) -> str | None:
    """Deletes a row, and inserts another one with the same primary key, in one transaction."""
    line = shop.any_of("select purchase_id, number, article_code from line order by 1, 2")
    if line is None:
        return None
    shop.sql("delete from line where purchase_id = %s and number = %s", *line[:2])
    shop.sql("insert into line values (%s, %s, %s, 1)", *line)
    return f"deletes line {line[1]} of purchase {line[0]}, and inserts it again with quantity 1"


def write_manual(shop: Shop) -> str | None:
    article = shop.any_of("select code from article order by code")
    if article is None:
        return None
    shop.sql("update article set manual = %s where code = %s", shop.large_text(), *article)
    return f"writes a new manual for article {article[0]}"


def delete_purchase(shop: Shop) -> str | None:
    purchase = shop.any_of("select id from purchase order by id")
    if purchase is None:
        return None
    shop.sql("delete from purchase where id = %s", *purchase)
    return f"deletes purchase {purchase[0]}; its lines go with it"


def delete_customer(shop: Shop) -> str | None:
    customer = shop.any_of("select id from customer order by id")
    if customer is None:
        return None
    shop.sql("delete from customer where id = %s", *customer)
    return f"deletes customer {customer[0]}; the purchases stay, without a customer"


def roll_back(shop: Shop) -> str:
    """Begins a large change and gives it up; keeps a small one."""
    with shop.connection.transaction(force_rollback=True):
        shop.sql("delete from line")
        shop.sql("update customer set name = 'nobody'")
    count = shop.sql("update customer set balance = balance + 1.25")
    return f"deletes all lines and rolls this back; then adds 1.25 to {count} balances"


def change_identity(shop: Shop) -> str:
    """The replica identity decides which old values the log has. No document may depend on it."""
    identity = shop.random.choice(("FULL", "DEFAULT"))
    shop.sql(f"alter table purchase replica identity {identity}")
    return f"sets the replica identity of purchase to {identity}"


def add_column(shop: Shop) -> str:
    shop.sql("alter table ticket add column if not exists note text")
    count = shop.sql("update ticket set note = 'seen' where note is null")
    return f"adds a column to ticket that no product names, and fills it in {count} rows"


STEPS: tuple[Step, ...] = (
    add_customer,
    place_purchase,
    rename_customer,
    change_email,
    change_prices,
    change_code,
    number_lines,
    swap_lines,
    replace_line,
    write_manual,
    solve_tickets,
    ship_purchases,
    roll_back,
    delete_purchase,
    delete_customer,
    change_identity,
    add_column,
)


def create(url: str, seed: int) -> None:
    """Makes the database with its tables and first rows."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"create database {DATABASE}".encode())
    with psycopg.connect(url, dbname=DATABASE) as connection:
        connection.execute((Path(__file__).parent / "source.sql").read_bytes())
        shop = Shop(connection=connection, random=Random(seed))
        for step in (*[add_customer] * 8, *[add_article] * 6, *[place_purchase] * 12):
            step(shop)
    print("the shop has 8 customers, 6 articles and 12 purchases", flush=True)


def write(url: str, seed: int, steps: int | None, pause: float) -> None:
    """Writes `steps` steps, or until SIGTERM: first each step in its order, then steps by chance."""
    random, number, stopping = Random(seed), 0, Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    with psycopg.connect(url, dbname=DATABASE, autocommit=True) as connection:
        shop = Shop(connection=connection, random=random)
        while number != steps and not stopping.wait(pause):
            step = STEPS[number] if number < len(STEPS) else random.choice(STEPS)
            with connection.transaction():
                line = step(shop)
            number += 1
            if line is not None:
                print(line, flush=True)
        shop.sql("insert into closing default values")
    print(f"closes after {number} steps", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="writes to the Postgres of the shop")
    parser.add_argument("action", choices=("create", "write"))
    parser.add_argument("url", help="address of the database `postgres`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="end after this many steps (default: at SIGTERM)")
    parser.add_argument("--pause", type=float, default=1, help="seconds between two steps")
    given = parser.parse_args()
    if given.action == "create":
        create(given.url, given.seed)
    else:
        write(given.url, given.seed, given.steps, given.pause)


if __name__ == "__main__":
    main()
