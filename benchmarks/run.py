"""`make bench`: measure the steps, many products, a fan-out and the Spark job, and print the tables of benchmarks/results.md.

    python -m benchmarks.run [--quick] [--write]

Each Spark run is a process of its own (`benchmarks.job`, `benchmarks.micro_batch`, `benchmarks.freshness`), with embedded parts
of its own. Progress goes to standard error. `--write` writes them into benchmarks/results.md, between its markers. `--quick`
only tests the benchmark itself; do not quote its figures.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.backlog import RATES as WRITE_RATES
from benchmarks.backlog import measure_open_changes
from benchmarks.clients import measure_clients
from benchmarks.fan_out import MEMORY, measure_fan_out
from benchmarks.freshness import RATES, FreshnessCost
from benchmarks.micro_batch import MicroBatchCost
from benchmarks.products import measure_planning, measure_products
from benchmarks.report import BenchmarkSize, Measurements, format_report
from benchmarks.steps import measure_memory, measure_speed
from processor.cli.options import print_progress
from processor.environment.programs.servers import DYNAMODB_LOCAL_NAME
from processor.errors import SettingError

DOCUMENT = Path(__file__).with_name("results.md")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
STORE_NAMES = {"moto": "moto", "local": DYNAMODB_LOCAL_NAME}
SMALL_JOBS = (("moto", 2_000, 150, 500), ("local", 2_000, 150, 500))
FULL = BenchmarkSize(
    events=40_000,
    users=3_000,
    repetitions=5,
    memory_events=20_000,
    passes=(1, 2, 4, 8),
    rates=WRITE_RATES,
    products=(1, 10, 100),
    product_events=2_000,
    product_users=150,
    planned=1_000,
    requests=1_000,
    fan_outs=(
        (MEMORY, 1_000),
        (MEMORY, 10_000),
        (MEMORY, 100_000),
        (DYNAMODB_LOCAL_NAME, 1_000),
        (DYNAMODB_LOCAL_NAME, 10_000),
    ),
    jobs=(*SMALL_JOBS, ("local", 20_000, 1_500, 2_000)),
    micro_batches=20,
    freshness=RATES,
)
QUICK = BenchmarkSize(
    events=4_000,
    users=300,
    repetitions=3,
    memory_events=2_000,
    passes=(1, 2, 4),
    rates=(100,),
    products=(1, 10),
    product_events=1_000,
    product_users=80,
    planned=100,
    requests=500,
    fan_outs=((MEMORY, 1_000),),
    jobs=(),
    micro_batches=0,
    freshness=(),
)


def main() -> None:
    """Measures and prints the tables; with --write, writes them into the document."""
    options = argparse.ArgumentParser(description="Measures the steps alone and the Spark job.")
    options.add_argument(
        "--quick", action="store_true", help="a tenth of the size and no Spark, to test the benchmark itself"
    )
    options.add_argument("--write", action="store_true", help=f"write the tables into {DOCUMENT.name}")
    given = options.parse_args()
    if given.quick and given.write:
        options.error("--quick does not measure enough to write its tables: leave out --quick or --write")
    size = QUICK if given.quick else FULL
    text = format_report(size, _measure(size))
    print(text)
    if given.write:
        DOCUMENT.write_text(insert_tables(DOCUMENT.read_text(encoding="utf-8"), text), encoding="utf-8")


def _measure(size: BenchmarkSize) -> Measurements:
    print_progress(f"memory: {max(size.passes)} passes of {size.memory_events:,} events")
    memory = measure_memory(size.memory_events, size.users, size.passes)
    print_progress(f"steps: {size.repetitions} x {size.events:,} events")
    speeds = measure_speed(size.events, size.users, size.repetitions)
    consistent_speeds = measure_speed(size.events, size.users, size.repetitions, consistent=True)
    print_progress("open changes: 20 rounds at each rate")
    open_changes = [measure_open_changes(rate) for rate in size.rates]
    print_progress(
        f"products: {size.product_events:,} events for each number of products; planning of {size.planned:,} products"
    )
    products = [cost for n in size.products for cost in measure_products(n, size.product_events, size.product_users)]
    planning = measure_planning(size.planned)
    print_progress(f"clients of DynamoDB: {size.requests:,} requests of each kind")
    clients = measure_clients(size.requests, size.repetitions)
    print_progress(f"fan-out: up to {max(roots for _, roots in size.fan_outs):,} documents of one change (minutes)")
    return Measurements(
        speeds=speeds,
        consistent_speeds=consistent_speeds,
        memory=memory,
        open_changes=open_changes,
        products=products,
        planning=planning,
        clients=clients,
        fan_outs=[measure_fan_out(store, roots) for store, roots in size.fan_outs],
        jobs=[_job(*job) for job in size.jobs],
        micro_batches=_micro_batches(size.micro_batches),
        freshness=_freshness(size.freshness),
    )


def insert_tables(document: str, text: str, first: str = BEGIN, last: str = END) -> str:
    """The document with `text` between the markers `first` and `last`. Raises SettingError if the document has no markers."""
    before, begin, rest = document.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise SettingError(f"{DOCUMENT} has no lines {first} and {last}: add them where the tables belong")
    return f"{before}{begin}\n{text}\n{end}{after}"


def _job(store: str, events: int, users: int, batch: int) -> dict[str, Any]:
    print_progress(f"Spark job on {STORE_NAMES[store]}: {events:,} events, {users:,} users (minutes)")
    sizes = {"--store": store, "--events": events, "--users": users, "--batch": batch}
    found: dict[str, Any] = run_alone("benchmarks.job", *(str(x) for pair in sizes.items() for x in pair))
    return {"store": STORE_NAMES[store], **found}


def _micro_batches(events: int) -> list[MicroBatchCost]:
    if not events:
        return []
    print_progress(f"micro-batches: {events} of one event each (minutes)")
    return [MicroBatchCost(**cost) for cost in run_alone("benchmarks.micro_batch", "--events", str(events))]


def _freshness(rates: tuple[int, ...]) -> list[FreshnessCost]:
    if not rates:
        return []
    print_progress(f"freshness at {', '.join(map(str, rates))} events/s (minutes)")
    return [FreshnessCost(**cost) for cost in run_alone("benchmarks.freshness", "--rates", *map(str, rates))]


def run_alone(module: str, *options: str) -> Any:
    """The answer of a benchmark that needs a process of its own."""
    run = subprocess.run([sys.executable, "-m", module, *options], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
