"""Format the measurements as the Markdown tables of benchmarks/results.md, with the machine and the versions above them."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median
from typing import Any

from benchmarks.backlog import OpenChangeCost
from benchmarks.clients import ClientCost, format_clients
from benchmarks.fan_out import FanOutCost
from benchmarks.freshness import FreshnessCost, format_freshness
from benchmarks.micro_batch import MicroBatchCost
from benchmarks.products import PlanningCost, ProductCost
from benchmarks.steps import BATCH, MemoryUse, Speed
from benchmarks.tables import format_table, machine_name, min_median_max
from processor.environment.programs.downloads import DYNAMODB_LOCAL_MODULE, KAFKA_MODULE, find_java


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSize:
    """The size of each benchmark.

    `passes`: the memory is measured after this many passes of `memory_events` events. `rates`: writes per second for the open
    changes. `products`: numbers of products, each measured after `product_events` events of `product_users` users.
    `planned`: how many products are planned. `requests`: how many requests of each kind the lean client sends. `fan_outs`: store
    and documents of each fan-out. `jobs`: store, events, users and batch size of each Spark run. `micro_batches`: how many of one
    event each. `freshness`: rates, in events per second.
    """

    events: int
    users: int
    repetitions: int
    memory_events: int
    passes: tuple[int, ...]
    rates: tuple[int, ...]
    products: tuple[int, ...]
    product_events: int
    product_users: int
    planned: int
    requests: int
    fan_outs: tuple[tuple[str, int], ...]
    jobs: tuple[tuple[str, int, int, int], ...]
    micro_batches: int
    freshness: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """All measurements, in the order of the tables. `consistent_speeds`: over a store whose indexes are never late."""

    speeds: Sequence[Speed]
    consistent_speeds: Sequence[Speed]
    memory: Sequence[MemoryUse]
    open_changes: Sequence[OpenChangeCost]
    products: Sequence[ProductCost]
    planning: PlanningCost
    clients: Sequence[ClientCost]
    fan_outs: Sequence[FanOutCost]
    jobs: Sequence[dict[str, Any]]
    micro_batches: Sequence[MicroBatchCost]
    freshness: Sequence[FreshnessCost]


def format_report(size: BenchmarkSize, measured: Measurements) -> str:
    """The tables, in Markdown."""
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    parts = [
        f"{datetime.now(UTC):%Y-%m-%d}, {machine_name()}; load average at the end {load}. {_versions()}.",
        *_steps(size, measured.speeds, measured.consistent_speeds),
        *_memory(size, measured.memory),
        *format_open_changes(measured.open_changes),
        *_products(size, measured.products, measured.planning),
        *format_clients(measured.clients),
        *_fan_outs(measured.fan_outs),
        *(_jobs(measured.jobs) if measured.jobs else ()),
        *(_micro_batches(measured.micro_batches) if measured.micro_batches else ()),
        *(format_freshness(measured.freshness) if measured.freshness else ()),
    ]
    return "\n\n".join(parts)


def _steps(size: BenchmarkSize, speeds: Sequence[Speed], consistent: Sequence[Speed]) -> tuple[str, str]:
    rows = [
        ("events/s, by the clock", *min_median_max([s.events / s.wall for s in speeds], ",.0f")),
        ("events/s, by CPU seconds", *min_median_max([s.events / s.cpu for s in speeds], ",.0f")),
        (
            "events/s, by CPU seconds, settling included",
            *min_median_max([s.events / (s.cpu + s.settling) for s in speeds], ",.0f"),
        ),
        (
            "events/s, by CPU seconds, over a consistent store",
            *min_median_max([s.events / (s.cpu + s.settling) for s in consistent], ",.0f"),
        ),
        ("CPU ms per event", *min_median_max([1000 * s.cpu / s.events for s in speeds], ".3f")),
        ("times the CPU of JSON, settling included", *min_median_max([s.against_json for s in speeds], ".1f")),
        (
            "times the CPU of JSON, over a consistent store",
            *min_median_max([s.against_json for s in consistent], ".1f"),
        ),
    ]
    title = (
        f"**Steps alone**, one core: {size.events:,} events, {size.users:,} users, batches of {BATCH:,}, "
        f"{speeds[0].documents:,} documents, {len(speeds)} repetitions."
    )
    return title, format_table(("", "min", "median", "max"), rows)


def _memory(size: BenchmarkSize, memory: Sequence[MemoryUse]) -> tuple[str, str]:
    title = (
        f"**Memory** of the steps, table of constant size: {size.memory_events:,} events, the same ones in each pass."
    )
    rows = [
        (f"{h.events:,}", f"{h.blocks:,}", _change(h.blocks, memory[0].blocks), f"{h.resident:.0f}") for h in memory
    ]
    return title, format_table(("events processed", "living blocks", "against the first", "resident MB"), rows)


def format_open_changes(costs: Sequence[OpenChangeCost]) -> tuple[str, str]:
    """The table of open changes, below its title."""
    head = (
        *(
            "writes/s",
            "open",
            "driver, CPU ms a second",
            "of a write, us",
            "driver holds, MB",
            "sent to an executor, MB/s",
        ),
        *(
            "workers, CPU us a write",
            "each worker, CPU ms/s for what is new",
            "write units/s of the busiest key: `OPEN#`",
        ),
        *("`LEDGER#`", "`RUNS`"),
    )
    rows = [
        (
            *(f"{c.rate:,}", f"{c.entries:,}", f"{c.driver_cpu:.1f}", f"{1000 * c.driver_cpu / c.rate:.1f}"),
            *(f"{x:.1f}" for x in (c.driver_memory, c.sent, c.worker_write, c.worker_load)),
            *(f"{units:,.0f}" for units in (c.open_units, c.ledger_units, c.runs_units)),
        )
        for c in costs
    ]
    title = "**Open changes** at a steady rate, S and W by default, a round a second. The tasks of Spark are simulated."
    return title, format_table(head, rows)


def _products(size: BenchmarkSize, found: Sequence[ProductCost], planning: PlanningCost) -> tuple[str, str, str]:
    title = (
        f"**Products**: what a change of one column costs, one core, by how many products read the column; after "
        f"{size.product_events:,} events of {size.product_users:,} users, {found[0].events:,} changes each."
    )
    rows = [(f"{r.products:,}", r.readers, f"{r.cpu:.3f}", f"{r.documents:.2f}") for r in found]
    table = format_table(("products", "of them read the column", "CPU ms per event", "documents per event"), rows)
    sentence = (
        f"Planning {planning.products:,} products: {planning.load:.1f} CPU seconds to read and check their files, "
        f"{planning.plan:.1f} to plan them."
    )
    return title, table, sentence


def _fan_outs(costs: Sequence[FanOutCost]) -> tuple[str, str]:
    head = ("documents above", "seconds", "until settled", "rounds", "MB above the base", "documents sent", "again")
    per = ("UpdateItem", "Query", "BatchGetItem")
    rows = [
        (
            s.store,
            f"{s.roots:,}",
            f"{s.seconds:.1f}",
            f"{s.settled:.1f}",
            f"{s.rounds:,}",
            f"{s.memory:.1f}",
            f"{s.documents:,}",
            f"{s.repeated:,}",
            *(f"{s.requests.get(name, 0) / s.documents:.2f}" for name in per),
        )
        for s in costs
    ]
    title = "**Fan-out** of one change, pages of 1,000 rows, one run each; the last three columns per document, until settled."
    return title, format_table(("store", *head, *per), rows)


def _jobs(jobs: Sequence[dict[str, Any]]) -> tuple[str, str]:
    head = ("Spark job on", "events / users", "batch", "events/s", "CPU ms per event")
    per = ("UpdateItem", "Query", "BatchGetItem", "documents")
    return "**Spark job**, one run each; the last four columns per event.", format_table((*head, *per), map(_row, jobs))


def _micro_batches(costs: Sequence[MicroBatchCost]) -> tuple[str, str]:
    figures = {
        "one event end to end, s": [cost.seconds for cost in costs],
        "CPU fixed per micro-batch, s": [cost.cpu for cost in costs],
        "CPU to settle it, s": [cost.settling for cost in costs],
        "CPU of the idle job, s each second": [cost.idle for cost in costs],
    }
    rows = [(name, f"{median(values):.2f}", f"{max(values):.2f}") for name, values in figures.items()]
    title = f"**Micro-batches of one event** on DynamoDB Local, {len(costs)} of them."
    return title, format_table(("", "p50", "max"), rows)


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    n = job["events"]
    counts = [job.get(name, 0) for name in ("request UpdateItem", "request Query", "request BatchGetItem", "published")]
    speeds = f"{n / job['wall']:,.0f}", f"{1000 * job['cpu'] / n:.1f}"
    sizes = f"{n:,} / {job['users']:,}", f"{job['batch']:,}"
    return job["store"], *sizes, *speeds, *(f"{count / n:.2f}" for count in counts)


def _change(value: int, first: int) -> str:
    return f"{100 * (value - first) / first:+.1f} %"


def _versions() -> str:
    java = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True).stderr
    named = re.search(r'version "([^"]+)"', java)
    return ", ".join(
        [
            f"Python {platform.python_version()}",
            f"PySpark {version('pyspark')}",
            f"Kafka {KAFKA_MODULE.version}",
            f"moto {version('moto')}",
            f"DynamoDB Local {DYNAMODB_LOCAL_MODULE.version}",
            f"Java {named[1] if named else 'unknown'}",
        ]
    )
