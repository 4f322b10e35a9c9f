"""Measure the Spark job on embedded parts: events per second, CPU of its processes, requests and documents. One run.

    python -m benchmarks.job --store moto --events 2000 --users 150 --batch 500

The clock runs from the start of the stream to its end. It includes the start of Spark's Python workers and of the first batch; it
does not include producing the records, the start of Spark or the start of the embedded parts. `steady` counts from the end of the
second batch on: the events of the later batches, and their seconds to the end. CPU is that of this process and of all processes
that it started, without the embedded parts (Kafka, Postgres, DynamoDB); `parts` is theirs. The figures come from /proc, so Linux
only.

With `--rows` the table has this many rows before the stream begins (`inputs.stored_users`), which no event touches. The job
then does not hold its products: it would publish those rows too.

With `--store postgres` the table is in a server of its own, which syncs each commit to the disk. With `--snapshot` the events are
the rows of the source's tables, table by table. The job takes itself for far behind: it writes rows first, and publishes
each root once, its walk without a limit of rows a second. With `--load` it loads them in bulk instead; `loaded` is how many
seconds that took.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any
from zlib import crc32

from benchmarks.inputs.history import generate_history
from benchmarks.inputs.stored_users import PRODUCT, write_rows
from benchmarks.snapshot import generate_snapshot
from benchmarks.steps import EXAMPLE
from processor.cli.options import print_progress, set_embedded_credentials, with_addresses
from processor.cli.printing.output import write_published
from processor.engine.plan.plan import Plan
from processor.engine.rounds.events import JobEvent
from processor.environment import embedded as parts
from processor.environment.programs.downloads import spark_kafka_jars
from processor.environment.programs.servers import start_dynamodb_local, start_postgres
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings, read_settings
from processor.environment.stores.kinds import open_store
from processor.job.kafka.reader import read_topic
from processor.job.run.feed import read_feed
from processor.job.run.job import Job
from processor.job.run.open_job import RunRequest, open_job, prepare_plan
from processor.job.run.run_job import run_job
from processor.language.definitions.load import load as load_definitions
from processor.language.definitions.load import read_directory
from processor.values import canonical_json

TICKS = os.sysconf("SC_CLK_TCK")
STORES = ("moto", "local", "postgres")
DURABLE = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "1GB", "max_wal_size": "4GB"}
"""The settings of the Postgres that holds the table."""


def measure_job(
    store: str,
    events: int,
    users: int,
    batch: int,
    documents: str | None = None,
    *,
    snapshot: bool = False,
    load: bool = False,
    rows: int = 0,
) -> dict[str, float]:
    """Runs the job once, with new embedded parts, a new history and this many other `rows`. Writes its messages to the file
    `documents`, if given."""
    with start_parts(store, batch) as (settings, directory):
        file = directory / "topics.jsonl"
        snapshot = snapshot or load
        history = snapshot_lines(events, users) if snapshot else generate_history(1, events, users)
        settings = replace(settings, catch_up_records=1, walk_rate=0, walk_page=5_000) if snapshot else settings
        settings = replace(settings, catch_up_records=0) if rows else settings
        lines = (canonical_json.dumps(line) + "\n" for line in history)
        file.write_text("".join(lines), encoding="utf-8")
        plan = prepare_plan(settings, load_definitions(read_directory(EXAMPLE)))
        read_feed(settings, plan, str(file)).produce()
        part_processes = descendants()
        ends: list[tuple[float, int]] = []
        job = open_bench_job(settings, plan, ends, load=load)
        with closing(open_store(settings)) as other:
            write_rows(other, plan, rows)
        began, cpu, of_parts = perf_counter(), cpu_seconds(part_processes), seconds_of(below(part_processes))
        run_job(job, once=True)
        ended = perf_counter()
        wall, cpu = ended - began, cpu_seconds(part_processes) - cpu
        later = {
            "steady_events": sum(read for _, read in ends[2:]),
            "steady_wall": ended - ends[min(1, len(ends) - 1)][0],
        }
        later["parts"] = seconds_of(below(part_processes)) - of_parts
        job.spark.stop()
        if documents is not None:
            topic = plan.products[PRODUCT].product.topic
            write_published(read_topic(settings.bootstrap_servers, dict(settings.kafka), topic), documents)
    return {
        "events": events,
        "users": users,
        "batch": batch,
        "rows": rows,
        "loaded": ends[-1][0] - began if load else 0,
        "wall": wall,
        "cpu": cpu,
        **later,
        **job.driver.tally,
    }


def snapshot_lines(rows: int, users: int) -> Iterator[dict[str, Any]]:
    """The recorded lines of a snapshot of the source's tables."""
    for record in generate_snapshot(rows, users, mixed=False):
        key, value = (canonical_json.loads((text or b"null").decode()) for text in (record.key, record.value))
        partition = crc32(record.key or b"") % 2
        yield {"topic": record.topic, "partition": partition, "key": key, "value": value, "timestamp": record.timestamp}


def open_bench_job(
    settings: Settings, plan: Plan, ends: list[tuple[float, int]] | None = None, *, load: bool = False
) -> Job:
    """The job of a run, on these parts. `ends`: gets the time of the end of each batch, or of the load, and the events of it."""

    def report(event: JobEvent) -> None:
        if event.what == "batch":
            print_progress(f"{event.text}: {event.fields['read']} read")
            if ends is not None:
                ends.append((perf_counter(), event.fields["read"]))
        if event.what == "loaded" and ends is not None:
            ends.append((perf_counter(), 0))

    jars = sorted(spark_kafka_jars(print_progress).glob("*.jar"))
    registry = open_registry(settings)
    return open_job(RunRequest(settings=settings, plan=plan, registry=registry, jars=jars, report=report, load=load))


@contextmanager
def start_parts(store: str, batch: int) -> Iterator[tuple[Settings, Path]]:
    """New embedded parts and a directory; both end with the block."""
    set_embedded_credentials()
    with (
        tempfile.TemporaryDirectory(prefix="statestore-bench-", ignore_cleanup_errors=True) as directory,
        parts.embedded_parts(progress=print_progress, store="dynamodb" if store == "moto" else "postgres") as addresses,
    ):
        settings = with_addresses(read_settings({"batch_size": batch}), addresses)
        settings = replace(settings, checkpoint=f"{directory}/checkpoint")
        if store == "moto":
            yield settings, Path(directory)
            return
        if store == "postgres":
            part = start_postgres(Path(directory) / "state", more=DURABLE)
            settings = replace(settings, store="postgres", store_url=part.endpoint)
        else:
            part = start_dynamodb_local(Path(directory) / "dynamodb", progress=print_progress)
            settings = replace(settings, endpoint=part.endpoint)
        try:
            yield settings, Path(directory)
        finally:
            part.stop()


def descendants() -> set[int]:
    """The processes below this one."""
    return below({os.getpid()}) - {os.getpid()}


def below(processes: set[int]) -> set[int]:
    """These processes, and those below them."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields = _fields(stat)
        if fields:
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, todo = set(processes), list(processes)
    while todo:
        those = children.get(todo.pop(), [])
        found.update(those)
        todo += those
    return found


def cpu_seconds(part_processes: set[int]) -> float:
    """CPU seconds of this process and of those below it, with their ended children, without `part_processes` and those below
    them."""
    own = sum(map(int, _fields(Path("/proc/self/stat"))[11:13])) / TICKS
    return own + seconds_of(descendants() - below(part_processes))


def seconds_of(processes: set[int]) -> float:
    """CPU seconds of these processes, with their ended children."""
    return (
        sum(sum(map(int, fields[11:15])) for pid in processes if (fields := _fields(Path(f"/proc/{pid}/stat")))) / TICKS
    )


def _fields(stat: Path) -> list[str]:
    """The fields of a process after its name, `state` first. Empty if the process ended."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def add_store(options: argparse.ArgumentParser) -> None:
    """Adds the option of the store to a benchmark that starts the job more than once, or waits for it."""
    options.add_argument("--store", choices=STORES[1:], default="local", help="local is DynamoDB Local (%(default)s)")


def main() -> None:
    """Measures once and prints one line of JSON to standard output. Progress goes to standard error."""
    options = argparse.ArgumentParser(description="Measures the Spark job once, on embedded parts.")
    options.add_argument("--store", choices=STORES, required=True)
    options.add_argument("--events", type=int, required=True)
    options.add_argument("--users", type=int, required=True)
    options.add_argument("--batch", type=int, required=True)
    options.add_argument("--snapshot", action="store_true", help="the events are a first snapshot")
    options.add_argument(
        "--load", action="store_true", help="the events are a first snapshot, which the job loads in bulk"
    )
    options.add_argument("--rows", type=int, default=0, help="rows in the table before, which no event touches")
    options.add_argument("--documents", help="file for the messages of the job")
    given = options.parse_args()
    sizes = (given.events, given.users, given.batch)
    kind: dict[str, bool] = {"snapshot": given.snapshot, "load": given.load}
    print(json.dumps(measure_job(given.store, *sizes, given.documents, **kind, rows=given.rows)))


if __name__ == "__main__":
    main()
