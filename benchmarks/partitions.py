"""Measure the table of the store in Postgres, as it is and with one partition an entity: reads of an index, writes and vacuum.

    python -m benchmarks.partitions --rows 200000 --repeat 7

Both tables have the columns, indexes and options that the store makes, on one embedded server with `fsync`. They hold the same
rows: five entities, and each value of `GSI_1` has two rows of each entity. The store itself reads and writes both, in turn.

Does not: measure several writers, rows beyond the memory, or autovacuum, which is off.
"""

import argparse
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from os import getloadavg
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import psycopg

from benchmarks.report import format_table, machine_name
from processor.local.postgres_server import STORE_SETTINGS, start_postgres
from statestore.keys import Key
from statestore.postgres import PostgresStore
from statestore.store import Query, Read, Write
from statestore.table import MAX_SLOTS

ENTITIES = ("user", "star", "repo", "pull_request", "payment_info")
TABLES = {"whole": "one table", "parted": "a partition an entity"}
VACUUMED = {"whole": "state_whole.items", "parted": "state_parted.star"}  # by autovacuum, when all stars have changed
ROWS_OF_VALUE = 2
"""Rows of each entity that share a value of GSI_1."""
BATCH = 1_000
Works = list[Callable[[], object]]


def write(entity: str, number: int, change: int) -> Write:
    """The write of a row. Another `change` has another value in GSI_2, so it changes an index."""
    slots = {"GSI_1": f"v{number // ROWS_OF_VALUE}", "GSI_2": f"w{number}.{change}"}
    return Write(Key(f"TABLE#{entity}", f"{number:08d}"), {**slots, "text": "x" * 200})


def make_parted(url: str) -> None:
    """Makes the partitioned table after the shape of the other one, with one more partition for what is no row of an entity."""
    with psycopg.connect(url, autocommit=True) as connection:
        (options,) = connection.execute(
            "SELECT array_to_string(reloptions, ', ') FROM pg_class WHERE oid = 'state_whole.items'::regclass"
        ).fetchone() or ("",)
        indexes = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'state_whole' AND tablename = 'items'"
        )
        for statement in (
            "CREATE SCHEMA state_parted",
            "CREATE TABLE state_parted.fences (LIKE state_whole.fences INCLUDING ALL)",
            "CREATE TABLE state_parted.items (LIKE state_whole.items) PARTITION BY LIST (pk)",
            *(definition.replace("state_whole", "state_parted") for (definition,) in indexes),
            *(
                f"CREATE TABLE state_parted.{name} PARTITION OF state_parted.items {values} WITH ({options})"
                for name, values in [("others", "DEFAULT"), *((e, f"FOR VALUES IN ('TABLE#{e}')") for e in ENTITIES)]
            ),
        ):
            connection.execute(statement.encode())


def fill(stores: dict[str, PostgresStore], rows: int) -> None:
    """Writes the same rows into both tables, the entities side by side."""
    writes = [write(entity, number, 0) for number in range(rows // len(ENTITIES)) for entity in ENTITIES]
    for store in stores.values():
        for first in range(0, len(writes), BATCH):
            store.write_all(writes[first : first + BATCH])


def vacuum(url: str, table: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"VACUUM {table}".encode())


def works(
    url: str, table: str, store: PostgresStore, random: Random, rows: int, turn: int
) -> Iterator[tuple[str, Works]]:
    """What one turn measures: the name, and the pieces of work."""
    each = rows // len(ENTITIES)
    values = [f"v{random.randrange(each // ROWS_OF_VALUE)}" for _ in range(BATCH)]
    changed = [write(random.choice(ENTITIES), number, turn) for number in random.sample(range(each), BATCH)]
    queries = [Query("GSI_1", value) for value in values]
    yield "read 10 rows of a value, of five entities", [partial(store.query, query) for query in queries]
    yield "read 2 rows of a value, of one entity", [partial(store.query, Query("GSI_1", v, "star")) for v in values]
    yield "read 1,000 values at once, 10 rows each", [partial(store.read, list(map(Read, queries)))]
    yield "write 1,000 rows, each with another value of a slot", [partial(store.write_all, changed)]
    for first in range(0, each, BATCH):
        store.write_all([write("star", number, turn) for number in range(first, min(first + BATCH, each))])
    yield "vacuum, after all rows of one entity changed", [partial(vacuum, url, VACUUMED[table])]


def milliseconds(work: Callable[[], object]) -> float:
    """The milliseconds of this work."""
    began = perf_counter()
    work()
    return (perf_counter() - began) * 1000


def measure(url: str, rows: int, repeat: int) -> dict[str, dict[str, list[float]]]:
    """Name of the work -> table -> milliseconds of each piece of work. The first turn does not count."""
    found: dict[str, dict[str, list[float]]] = {}
    stores = {table: PostgresStore(url=url, table=table, clock=lambda: 0.0) for table in TABLES}
    stores["whole"].create(MAX_SLOTS)
    make_parted(url)
    fill(stores, rows)
    for table in TABLES:
        vacuum(url, f"(ANALYZE) state_{table}.items")
    for turn in range(repeat + 1):
        for table, store in stores.items():
            for name, pieces in works(url, table, store, Random(turn), rows, turn + 1):
                times = [milliseconds(work) for work in pieces]
                if turn:
                    found.setdefault(name, {}).setdefault(table, []).extend(times)
    for store in stores.values():
        store.close()
    return found


def report(found: dict[str, dict[str, list[float]]]) -> str:
    """The medians as a table."""
    medians = {name: [median(by[table]) for table in TABLES] for name, by in found.items()}
    rows = [[name, f"{one:.2f}", f"{many:.2f}", f"{many / one:.2f}"] for name, (one, many) in medians.items()]
    return format_table(["ms, median", *TABLES.values(), "times"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partitions", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        part = start_postgres(Path(folder), more=STORE_SETTINGS | {"autovacuum": "off"})
        try:
            print(report(measure(part.endpoint.replace("+psycopg", ""), options.rows, options.repeat)))
        finally:
            part.stop()
    loads = ", ".join(f"{load:.1f}" for load in getloadavg())
    print(f"{date.today()}, {machine_name()}; load average at the end {loads}")


if __name__ == "__main__":
    main()
