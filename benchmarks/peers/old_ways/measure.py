"""Runs the ways over the same changes, and compares their last documents with the answer of the products' SQL.

Promises: each way starts empty. The figures are those of the second half of the events, with the work that remains at the end,
and with the garbage collector of a worker, for each way.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks.peers.old_ways.look_up_tables import LookUpTables, own_table, shared_table
from benchmarks.peers.old_ways.rows_in_postgres import RowsInPostgres
from benchmarks.peers.old_ways.way import StoredRows, Way, WayCounts, last_changes
from benchmarks.peers.old_ways.workload import joined_definitions, joined_records
from processor.engine.plan.plan import Plan, root_of
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.engine.rounds.trial import batches
from processor.environment.programs.servers import start_postgres
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from processor.tools.inspect import prices
from processor.tools.inspect.oracle import oracle
from processor.values.record import Record, Value

Documents = dict[str, dict[str, Value]]
SERVER = {"jit": "off", "random_page_cost": "1.1"}
"""Settings of Postgres for data in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WayCost:
    """What `events` events cost a way. `cpu`: CPU seconds of the loop; `wrong`: roots whose last document differs from SQL's
    answer."""

    way: str
    products: int
    joins: int
    events: int
    used: WayCounts
    cpu: float
    wrong: int

    @property
    def dollars(self) -> Decimal:
        """Dollars a million events for request units on demand."""
        return prices.DEFAULT.dollars(self.used.written, self.used.read) / self.events


@contextmanager
def _rows_in_postgres(plan: Plan) -> Iterator[Way]:
    with _database() as (url, pid), closing(RowsInPostgres(url, pid, plan)) as way:
        yield way


WAYS: dict[str, Callable[[Plan], AbstractContextManager[Way]]] = {
    "statestore": lambda plan: nullcontext(StoredRows(plan)),
    "look-up tables, shared": lambda plan: nullcontext(LookUpTables(plan, shared_table)),
    "look-up tables of each product": lambda plan: nullcontext(LookUpTables(plan, own_table)),
    "Postgres and SQL": _rows_in_postgres,
}
"""Each way by its name in the table. Another store of statestore gets a line here."""


def measure_ways(products: int, joins: int, events: int, users: int, batch: int) -> Iterator[WayCost]:
    """The cost of each way, in batches of this many events."""
    definitions = load(joined_definitions(products, joins))
    records = joined_records(events, users, joins)
    plan = plan_alone(definitions, Settings().slots)
    answer = {
        name: {
            root_of(definitions.entities[definitions.products[name].root], key) or "": it for key, it in found.items()
        }
        for name, found in sql_documents(definitions, plan, records).items()
    }
    for name, start in WAYS.items():
        with start(plan) as way:
            used, cpu = _run(way, records, batch)
            yield WayCost(
                way=name,
                products=products,
                joins=joins,
                events=len(records) - len(records) // 2,
                used=used,
                cpu=cpu,
                wrong=_wrong(way.documents(), answer),
            )


def _run(way: Way, records: Sequence[Record], batch: int) -> tuple[WayCounts, float]:
    """What the way used for the second half, and its CPU seconds."""
    half = len(records) // 2
    for chunk in batches(records[:half], batch):
        way.process(chunk)
    gc.collect()
    tune_garbage_collector()
    before, began = way.counts(), process_time()
    for chunk in batches(records[half:], batch):
        way.process(chunk)
    way.finish()
    cpu = process_time() - began
    return way.counts().since(before), cpu


def _wrong(documents: Documents, answer: Documents) -> int:
    return sum(
        documents.get(product, {}).get(root) != answer[product].get(root)
        for product in answer
        for root in documents.get(product, {}).keys() | answer[product].keys()
    )


def sql_documents(definitions: Definitions, plan: Plan, records: Sequence[Record]) -> Documents:
    """The documents that the products' SQL gives for the last rows: product -> message key -> document."""
    rows: dict[str, list[dict[str, Value]]] = {name: [] for name in definitions.entities}
    for (entity, _), change in last_changes(records, plan).items():
        if change.row is not None:
            rows[entity].append(dict(change.row))
    with _database() as (url, _), oracle(url, "answers", definitions.entities) as tables:
        for name, indexed in plan.entities.items():
            tables.fill(name, rows[name], list(indexed.slots.values()))
        return {name: tables.documents(product) for name, product in definitions.products.items()}


@contextmanager
def _database() -> Iterator[tuple[str, int]]:
    """An empty embedded Postgres: its URL, and the id of its main process."""
    with TemporaryDirectory(prefix="statestore-ways-") as directory:
        part = start_postgres(Path(directory) / "postgres", more=SERVER)
        try:
            yield part.endpoint, part.process.pid
        finally:
            part.stop()
