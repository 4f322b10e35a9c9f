"""`make bench`: measures the steps alone, what they hold, and the Spark job, and prints the tables of docs/benchmarks.md.

    python -m benchmarks.run [--quick] [--write]

Each Spark run is a process of its own (`benchmarks.job`), with parts of its own. Long steps say so on standard error. `--write`
puts the tables into docs/benchmarks.md, between its markers. `--quick` is for trying the benchmark itself; do not quote it.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.backlog import ASKED, Backlog, backlog
from benchmarks.steps import BATCH, Held, Speed, held, speed
from processor.cli.options import say
from processor.errors import SettingError
from processor.local.jars import DYNAMODB_LOCAL, KAFKA
from processor.local.java import find_java

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
STORE_NAMES = {"moto": "moto", "local": "DynamoDB Local"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured. `passes`: after how many passes of `held_events` memory is looked at; `jobs`: store, events,
    users and batch of each Spark run. `rates`: writes a second of the open changes."""

    events: int
    users: int
    repetitions: int
    held_events: int
    passes: tuple[int, ...]
    rates: tuple[int, ...]
    jobs: tuple[tuple[str, int, int, int], ...]


SMALL = (("moto", 2_000, 150, 500), ("local", 2_000, 150, 500))
FULL = Size(
    events=40_000,
    users=3_000,
    repetitions=5,
    held_events=20_000,
    passes=(1, 2, 4, 8),
    rates=(1_000, 5_000),
    jobs=(*SMALL, ("local", 20_000, 1_500, 2_000)),
)
QUICK = Size(events=4_000, users=300, repetitions=3, held_events=2_000, passes=(1, 2, 4), rates=(100,), jobs=())


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
    say(f"memory: {max(size.passes)} passes of {size.held_events:,} events")
    memory = held(size.held_events, size.users, size.passes)
    say(f"steps: {size.repetitions} x {size.events:,} events")
    speeds = speed(size.events, size.users, size.repetitions)
    say("open changes: 30 seconds at each rate")
    backlogs = [backlog(rate) for rate in size.rates]
    text = report(size, speeds, memory, backlogs, [_job(*job) for job in size.jobs])
    print(text)
    if given.write:
        DOCUMENT.write_text(kept(DOCUMENT.read_text(encoding="utf-8"), text), encoding="utf-8")


def report(
    size: Size,
    speeds: Sequence[Speed],
    memory: Sequence[Held],
    backlogs: Sequence[Backlog],
    jobs: Sequence[dict[str, Any]],
) -> str:
    """The tables, in Markdown."""
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    steps = [
        ("events/s, by the clock", *_spread([s.events / s.wall for s in speeds], ",.0f")),
        ("events/s, by CPU seconds", *_spread([s.events / s.cpu for s in speeds], ",.0f")),
        (
            "events/s, by CPU seconds, settling included",
            *_spread([s.events / (s.cpu + s.settling) for s in speeds], ",.0f"),
        ),
        ("CPU ms per event", *_spread([1000 * s.cpu / s.events for s in speeds], ".3f")),
    ]
    parts = [
        f"{datetime.now(UTC):%Y-%m-%d}, {_machine()}; load average at the end {load}. {_versions()}.",
        f"**Steps alone**, one core: {size.events:,} events, {size.users:,} users, batches of {BATCH:,}, "
        f"{speeds[0].documents:,} documents, {len(speeds)} repetitions.",
        _table(("", "min", "median", "max"), steps),
        f"**Memory** of the steps, table of constant size: {size.held_events:,} events told again and again.",
        _table(
            ("events processed", "living blocks", "against the first", "resident MB"),
            [
                (f"{h.events:,}", f"{h.blocks:,}", _change(h.blocks, memory[0].blocks), f"{h.resident:.0f}")
                for h in memory
            ],
        ),
    ]
    parts += [
        "**Open changes** at a steady rate, S and W as they are by default, a round a second.",
        _table(
            (
                "writes/s",
                "open",
                "driver holds, MB",
                "sent to an executor, MB",
                "driver, CPU ms a round",
                f"worker, CPU ms for {ASKED} keys",
            ),
            [
                (f"{b.rate:,}", f"{b.entries:,}", *(f"{x:.1f}" for x in (b.held, b.sent, b.driver, b.worker)))
                for b in backlogs
            ],
        ),
    ]
    if jobs:
        head = ("Spark job on", "events / users", "batch", "events/s", "CPU ms per event")
        per = ("UpdateItem", "Query", "BatchGetItem", "documents")
        parts += [
            "**Spark job**, one run each; the last four columns per event.",
            _table((*head, *per), map(_row, jobs)),
        ]
    return "\n\n".join(parts)


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


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    n = job["events"]
    counts = [job.get(name, 0) for name in ("request UpdateItem", "request Query", "request BatchGetItem", "published")]
    speeds = f"{n / job['wall']:,.0f}", f"{1000 * job['cpu'] / n:.1f}"
    sizes = f"{n:,} / {job['users']:,}", f"{job['batch']:,}"
    return job["store"], *sizes, *speeds, *(f"{count / n:.2f}" for count in counts)


def _spread(values: Sequence[float], form: str) -> tuple[str, ...]:
    return tuple(format(value, form) for value in (min(values), median(values), max(values)))


def _change(value: int, first: int) -> str:
    return f"{100 * (value - first) / first:+.1f} %"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _machine() -> str:
    model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), {memory:.0f} GiB"


def _versions() -> str:
    java = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True).stderr
    named = re.search(r'version "([^"]+)"', java)
    return ", ".join(
        [
            f"Python {platform.python_version()}",
            f"PySpark {version('pyspark')}",
            f"Kafka {KAFKA.version}",
            f"moto {version('moto')}",
            f"DynamoDB Local {DYNAMODB_LOCAL.version}",
            f"Java {named[1] if named else 'unknown'}",
        ]
    )


if __name__ == "__main__":
    main()
