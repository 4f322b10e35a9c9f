"""Measure what the first snapshot of the source tables costs: rows first and each document once, or documents that grow.

    python -m benchmarks.snapshot --rows 100000 --users 10000

A job that is far behind holds its products, writes rows, and publishes each root once when it has caught up
(`processor.job.run.job`). The benchmark loads the rows of the worked example's five tables once with the products held, and
once without, in two orders: table by table, and mixed. And once as `load` does, without a write for each row. Promises: request
units as AWS documents them (`statestore.memory`), with all settle work and walks. Does not: meet DynamoDB, Kafka or Spark; the
store is a map in memory, and CPU is that of the steps.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from time import process_time

from benchmarks.steps import BATCH, DiscardingOutbox, demo_plan, generate_records
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial, batches
from processor.engine.rounds.write_stage import write_stage
from processor.environment.settings.settings import Settings
from processor.tools.inspect import prices
from processor.values.record import Record
from statestore.dynamodb.requests import import_file
from statestore.items import key_of_item
from statestore.memory import LoadStore, MemoryStore, MeteredStore
from statestore.store import Write
from statestore.table import ROW

TABLES = ("user", "payment_info", "star", "pull_request", "repo")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCost:
    """The cost of a load: documents sent, request units and requests, CPU seconds."""

    documents: int
    written: Decimal
    read: Decimal
    requests: int
    cpu: float


def generate_snapshot(rows: int, users: int, *, mixed: bool) -> list[Record]:
    """The last state of the rows of a generated history, as many as asked: table by table, or mixed. Offsets count the records of
    each topic."""
    last = {(r.topic, r.key): r for r in generate_records(4 * rows, users)}
    found = [record for record in last.values() if record.value is not None][:rows]
    if len(found) < rows:
        raise SystemExit(f"the history has {len(found):,} rows only: give fewer --rows or more --users")
    Random(1).shuffle(found)
    if not mixed:
        found.sort(key=lambda record: TABLES.index(record.topic))
    return list(_numbered(found))


def _numbered(records: Sequence[Record]) -> Iterator[Record]:
    offsets = dict.fromkeys(TABLES, 0)
    for record in records:
        yield replace(record, partition=0, offset=offsets[record.topic])
        offsets[record.topic] += 1


def _metered_trial() -> tuple[Trial, MeteredStore, DiscardingOutbox]:
    """A trial over an empty table that counts its units, and the outbox that counts its documents."""
    trial, outbox = Trial(plan=demo_plan(), settings=Settings(), published=DiscardingOutbox()), DiscardingOutbox()
    store = MeteredStore(trial.settings.slots, clock=trial.clock.now)
    made = Trial(plan=trial.plan, settings=trial.settings, published=outbox, clock=trial.clock, other_store=store)
    return made, store, outbox


def _cost_of(store: MeteredStore, outbox: DiscardingOutbox, cpu: float) -> LoadCost:
    return LoadCost(
        documents=outbox.sent,
        written=Decimal(store.written),
        read=Decimal(store.read_units),
        requests=store.requests.total(),
        cpu=cpu,
    )


def measure_load(records: Sequence[Record], *, held: bool) -> LoadCost:
    """Loads the records into an empty table."""
    trial, store, outbox = _metered_trial()
    cpu = process_time()
    trial.driver.start()
    trial.driver.adopt(trial.plan)
    if held:
        trial.driver.begin_catch_up()
    for chunk in batches(records, BATCH):
        trial.batch(chunk)
        trial.background_work()
    if held:
        trial.driver.end_catch_up()
    trial.finish()
    return _cost_of(store, outbox, process_time() - cpu)


def measure_import(records: Sequence[Record]) -> tuple[LoadCost, int]:
    """Loads the records in bulk, and publishes each document. Returns the cost without the import, and the bytes of its files."""
    trial, store, outbox = _metered_trial()
    cpu = process_time()
    driver = trial.driver
    driver.start()
    driver.adopt(trial.plan)
    driver.begin_catch_up()
    rows = LoadStore(store)
    write_stage(records, driver.rounds.next_round(), StepRunner(store=rows, outbox=outbox))
    items, requests = rows.loaded(), store.requests.copy()
    size = len(import_file(items))
    for item in items:
        content = {name: value for name, value in item.items() if name not in ("PK", "SK", ROW)}
        MemoryStore.write(store, Write(key_of_item(item), content))  # as the import does, without units
    store.requests = requests
    driver.end_catch_up()
    trial.finish()
    return _cost_of(store, outbox, process_time() - cpu), size


def main() -> None:
    """Measures the loads, and prints a Markdown table."""
    options = argparse.ArgumentParser(description="Measures what the first snapshot of the source tables costs.")
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--users", type=int, default=10_000)
    given = options.parse_args()
    columns = ("order", "documents go out", "documents", "write units", "read units", "requests", "dollars", "CPU s")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for order in ("table by table", "mixed"):
        records = generate_snapshot(given.rows, given.users, mixed=order == "mixed")
        for held in (True, False):
            cost = measure_load(records, held=held)
            dollars = prices.DEFAULT.dollars(cost.written, cost.read) / 1_000_000
            print(
                f"| {order} | {'once, at the end' if held else 'as they grow'} | {cost.documents:,} | {cost.written:,} | "
                f"{cost.read:,} | {cost.requests:,} | {dollars:.3f} | {cost.cpu:.0f} |",
                flush=True,
            )
    cost, size = measure_import(generate_snapshot(given.rows, given.users, mixed=True))
    dollars, files = prices.DEFAULT.dollars(cost.written, cost.read) / 1_000_000, prices.IMPORT * size / 10**9
    print(
        f"| any | `load`: once, at the end | {cost.documents:,} | {cost.written:,} | {cost.read:,} | {cost.requests:,} | "
        f"{dollars:.3f}, and {files:.4f} for an import of {size / 10**6:.1f} MB | {cost.cpu:.0f} |"
    )


if __name__ == "__main__":
    main()
