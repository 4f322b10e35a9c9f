"""`make bench`: measures the steps, many products, a fan-out, and the Spark job, and prints the tables of docs/benchmarks.md.

    python -m benchmarks.run [--quick] [--write]

Each Spark run is a process of its own (`benchmarks.job`), with parts of its own. Long steps say so on standard error. `--write`
puts the tables into docs/benchmarks.md, between its markers. `--quick` is for trying the benchmark itself; do not quote it.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.backlog import backlog
from benchmarks.fan_out import MEMORY, spread
from benchmarks.products import planned, reads
from benchmarks.report import Measured, Size, report
from benchmarks.steps import held, speed
from processor.cli.options import say
from processor.errors import SettingError
from processor.local.dynamodb import LOCAL

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
STORE_NAMES = {"moto": "moto", "local": LOCAL}
SMALL = (("moto", 2_000, 150, 500), ("local", 2_000, 150, 500))
FULL = Size(
    events=40_000,
    users=3_000,
    repetitions=5,
    held_events=20_000,
    passes=(1, 2, 4, 8),
    rates=(1_000, 5_000),
    products=(1, 10, 100),
    told=2_000,
    tellers=150,
    planned=1_000,
    fan_outs=((MEMORY, 1_000), (MEMORY, 10_000), (MEMORY, 100_000), (LOCAL, 1_000), (LOCAL, 10_000)),
    jobs=(*SMALL, ("local", 20_000, 1_500, 2_000)),
)
QUICK = Size(
    events=4_000,
    users=300,
    repetitions=3,
    held_events=2_000,
    passes=(1, 2, 4),
    rates=(100,),
    products=(1, 10),
    told=1_000,
    tellers=80,
    planned=100,
    fan_outs=((MEMORY, 1_000),),
    jobs=(),
)


def main() -> None:
    """Measures, prints, and with --write keeps."""
    options = argparse.ArgumentParser(description="Measures the steps alone and the Spark job.")
    options.add_argument(
        "--quick", action="store_true", help="a tenth, and no Spark: tries the benchmark, measures little"
    )
    options.add_argument("--write", action="store_true", help=f"put the tables into {DOCUMENT.name}")
    given = options.parse_args()
    if given.quick and given.write:
        options.error("--quick is no measurement to keep: leave out --write")
    size = QUICK if given.quick else FULL
    text = report(size, _measure(size))
    print(text)
    if given.write:
        DOCUMENT.write_text(kept(DOCUMENT.read_text(encoding="utf-8"), text), encoding="utf-8")


def _measure(size: Size) -> Measured:
    say(f"memory: {max(size.passes)} passes of {size.held_events:,} events")
    memory = held(size.held_events, size.users, size.passes)
    say(f"steps: {size.repetitions} x {size.events:,} events")
    speeds = speed(size.events, size.users, size.repetitions)
    say("open changes: 30 seconds at each rate")
    backlogs = [backlog(rate) for rate in size.rates]
    say(f"products: {size.told:,} events under each number of them, {size.planned:,} planned")
    found = [each for products in size.products for each in reads(products, size.told, size.tellers)]
    plans = planned(size.planned)
    say(f"fan-out: up to {max(roots for _, roots in size.fan_outs):,} documents above one change (minutes)")
    return Measured(
        speeds=speeds,
        memory=memory,
        backlogs=backlogs,
        reads=found,
        planned=plans,
        spreads=[spread(store, roots) for store, roots in size.fan_outs],
        jobs=[_job(*job) for job in size.jobs],
    )


def kept(document: str, text: str) -> str:
    """The document with `text` between its markers. Raises SettingError when it has none."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SettingError(f"{DOCUMENT} has no lines {BEGIN} and {END}: put them where the tables go")
    return f"{before}{begin}\n{text}\n{end}{after}"


def _job(store: str, events: int, users: int, batch: int) -> dict[str, Any]:
    say(f"Spark job on {STORE_NAMES[store]}: {events:,} events, {users:,} users (minutes)")
    sizes = {"--store": store, "--events": events, "--users": users, "--batch": batch}
    argv = [sys.executable, "-m", "benchmarks.job", *(str(x) for pair in sizes.items() for x in pair)]
    run = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return {"store": STORE_NAMES[store], **found}


if __name__ == "__main__":
    main()
