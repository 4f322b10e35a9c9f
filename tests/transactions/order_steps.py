"""The transactions of the application of orders (orders/application.py): each writes two to five tables, and seals its orders."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

LARGE = 300
"""Lines of a large order: more than a batch of the job has records."""


@dataclass(slots=True, kw_only=True)
class Orders:
    """A connection in a transaction. `ids`: for new rows. `revisions`: of the orders that the transaction has written, None of
    one that is gone."""

    cursor: Any
    random: Random
    ids: Iterator[int]
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
        self.sql("insert into line values (%s, %s, %s)", next(self.ids), order, self.random.randrange(1, 10_000))

    def add_payment(self, order: int) -> None:
        self.sql("insert into payment values (%s, %s, %s)", order, next(self.ids), self.random.randrange(1, 10_000))

    def add_shipment(self, order: int) -> None:
        self.sql("insert into shipment values (%s, %s)", next(self.ids), order)

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
    order = next(orders.ids)
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
        new = next(orders.ids)
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
"""How often each comes. Above its most orders, the application deletes one for each new one."""
