"""`python -m benchmarks.peers.whole_jobs`: statestore, Flink SQL, Kafka Streams; the table in benchmarks/results.md.

    python -m benchmarks.peers.whole_jobs [statestore] [flink] [kafka-streams] [--products 1 10 100] [--events 40000]
                                          [--users 3000] [--write]

Each run has a broker and a state of its own. Above ten products, events and users are fewer in proportion. Progress goes to
standard error. `--write` writes the table into benchmarks/results.md, between its markers.
"""

import argparse
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from statistics import median

from benchmarks.peers.whole_jobs.flink import flink_system
from benchmarks.peers.whole_jobs.kafka_streams import kafka_streams_system
from benchmarks.peers.whole_jobs.measure import WholeJobCost, measure_whole_job
from benchmarks.peers.whole_jobs.system import System, statestore_system
from benchmarks.run import DOCUMENT, insert_tables
from benchmarks.tables import format_table, machine_name
from processor.cli.options import print_progress
from processor.errors import StatestoreError

SYSTEMS: dict[str, Callable[[argparse.Namespace], AbstractContextManager[System]]] = {
    "statestore": lambda _: statestore_system(),
    "flink": lambda given: flink_system(given.parallelism),
    "kafka-streams": lambda given: kafka_streams_system(given.parallelism),
}
BEGIN, END = "<!-- whole jobs: begin -->", "<!-- whole jobs: end -->"
HEAD = (
    *("products", "system", "events", "events/s", "CPU ms an event", "of them", "idle CPU", "messages an event"),
    *("state, MB", "new product, s", "after a kill, s", "wrong"),
)


def main() -> None:
    """Measures and prints the table; with --write, writes it into the document."""
    options = argparse.ArgumentParser(
        description="Runs whole jobs of statestore, Flink SQL and Kafka Streams, from Kafka to Kafka."
    )
    options.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"{', '.join(SYSTEMS)} (default: all)")
    options.add_argument("--products", type=int, nargs="+", default=[1, 10, 100])
    options.add_argument("--events", type=int, default=40_000, help="half of them warm the job up (%(default)s)")
    options.add_argument("--users", type=int, default=3_000)
    options.add_argument("--kills", type=int, default=3)
    options.add_argument("--write", action="store_true", help=f"write the table into {DOCUMENT.name}")
    options.add_argument(
        "--parallelism", type=int, default=2, help="operators of Flink, or threads of Kafka Streams (%(default)s)"
    )
    given = options.parse_args()
    if unknown := set(given.systems) - set(SYSTEMS):
        options.error(f"no system is called {', '.join(sorted(unknown))}; there are {', '.join(SYSTEMS)}")
    costs: list[WholeJobCost] = []
    missing: list[str] = []
    for products in given.products:
        events, users = (total // max(products // 10, 1) for total in (given.events, given.users))
        for name in given.systems or SYSTEMS:
            print_progress(f"{name}, {products} products, {events:,} events of {users:,} users")
            try:
                costs.append(measure_whole_job(SYSTEMS[name](given), products, events, users, given.kills))
                print_progress(" | ".join(format_cost(costs[-1])))
            except StatestoreError as error:
                missing.append(f"**{name} with {products} products** is not in the table: {error}")
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    title = f"{datetime.now(UTC):%Y-%m-%d}, {machine_name()}; load average at the end {load}."
    text = "\n\n".join([title, format_table(HEAD, map(format_cost, costs)), *missing])
    print(text)
    if given.write:
        document = insert_tables(DOCUMENT.read_text(encoding="utf-8"), text, BEGIN, END)
        DOCUMENT.write_text(document, encoding="utf-8")


def format_cost(cost: WholeJobCost) -> tuple[str, ...]:
    """A row of the table."""
    work, kills = cost.work, cost.restarts
    ms = {program: 1000 * seconds / work.events for program, seconds in work.cpu.items()}
    parts = ", ".join(f"{program} {share:.2f}" for program, share in sorted(ms.items(), key=lambda part: -part[1]))
    return (
        *(f"{cost.products}", cost.system, f"{work.events:,}", f"{work.events / work.seconds:,.0f}"),
        *(f"{sum(ms.values()):.2f}", parts, f"{sum(work.idle.values()):.2f}", f"{work.messages / work.events:.2f}"),
        *(f"{cost.state / 1e6:.1f}", f"{cost.addition:.1f}"),
        f"{min(kills):.1f} / {median(kills):.1f} / {max(kills):.1f}" if kills else "not measured",
        f"{work.wrong + cost.wrong:,}",
    )


if __name__ == "__main__":
    main()
