"""`make bench-peers`, second part: the two designs that statestore replaces, and their table of benchmarks/results.md.

    python -m benchmarks.peers.old_ways [--products 1 3 10] [--joins 3 6 9] [--events 12000] [--users 1000] [--batch 2000]
        [--quick]

Progress goes to standard error. `--write` writes the table into benchmarks/results.md, between its markers.
"""

import argparse
import os
from collections.abc import Iterable
from datetime import UTC, datetime

from benchmarks.peers.old_ways.measure import WayCost, measure_ways
from benchmarks.run import DOCUMENT, insert_tables
from benchmarks.steps import BATCH
from benchmarks.tables import format_table, machine_name
from processor.cli.options import print_progress

BEGIN, END = "<!-- old ways: begin -->", "<!-- old ways: end -->"
HEAD = (
    *("products", "joins of each", "way", "requests", "rows read", "write units", "read units", "$ a million events"),
    *("documents", "wrong", "CPU ms, loop", "CPU ms, Postgres"),
)


def main() -> None:
    """Measures and prints the table; with --write, writes it into the document."""
    options = argparse.ArgumentParser(description="Measures the designs that statestore replaces.")
    options.add_argument("--products", type=int, nargs="+", default=[1, 3, 10])
    options.add_argument("--joins", type=int, nargs="+", default=[3, 6, 9], choices=range(3, 10), metavar="3..9")
    options.add_argument("--events", type=int, default=12_000)
    options.add_argument("--users", type=int, default=1_000)
    options.add_argument("--batch", type=int, default=BATCH, help="events of a batch")
    options.add_argument("--quick", action="store_true", help="a small history of two products, to test the benchmark")
    options.add_argument("--write", action="store_true", help=f"write the table into {DOCUMENT.name}")
    given = options.parse_args()
    if given.quick and given.write:
        options.error("--quick does not measure enough to write its table: leave out --quick or --write")
    if given.quick:
        given.products, given.joins, given.events, given.users, given.batch = [2], [5], 1_000, 80, 100
    costs = []
    for products in given.products:
        for joins in given.joins:
            for cost in measure_ways(products, joins, given.events, given.users, given.batch):
                print_progress(f"{products} products of {joins} joins, {cost.way}: {cost.cpu:.1f} CPU seconds")
                costs.append(cost)
    text = format_ways(costs)
    print(text)
    if given.write:
        document = insert_tables(DOCUMENT.read_text(encoding="utf-8"), text, BEGIN, END)
        DOCUMENT.write_text(document, encoding="utf-8")


def format_ways(costs: Iterable[WayCost]) -> str:
    """The table, with the machine above it. All figures but dollars and `wrong` are those of one event."""
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    title = f"{datetime.now(UTC):%Y-%m-%d}, {machine_name()}; load average at the end {load}."
    return f"{title}\n\n{format_table(HEAD, map(_row, costs))}"


def _row(cost: WayCost) -> tuple[str, ...]:
    used, events = cost.used, cost.events
    units = [f"{used.written / events:.2f}", f"{used.read / events:.2f}", f"{cost.dollars:.2f}"]
    return (
        *(str(cost.products), str(cost.joins), cost.way, f"{used.requests / events:.3f}", f"{used.rows / events:.1f}"),
        *(units if used.written else ("", "", "")),
        *(f"{used.documents / events:.2f}", f"{cost.wrong:,}", f"{1000 * cost.cpu / events:.2f}"),
        f"{1000 * used.server_cpu / events:.2f}" if used.server_cpu else "",
    )


if __name__ == "__main__":
    main()
