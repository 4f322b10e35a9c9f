"""Measure the Spark job on embedded parts: events per second, CPU of its processes, requests and documents. One run.

    python -m benchmarks.job --store moto --events 2000 --users 150 --batch 500

The clock runs from the start of the stream to its end. It includes the start of Spark's Python workers and of the first batch; it
does not include producing the records, the start of Spark or the start of the embedded parts. CPU is that of this process
and of all processes that it started, without the embedded parts (Kafka, Postgres, DynamoDB). The figures come from /proc, so
Linux only.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.history import generate_history
from benchmarks.steps import EXAMPLE
from processor.cli.options import print_progress, set_embedded_credentials, with_addresses
from processor.cli.output import write_published
from processor.cli.run_command import owner_name, prepare_plan
from processor.definitions.load import load, read_directory
from processor.job.feed import feed
from processor.job.job import Job
from processor.job.kafka.reader import read_topic
from processor.job.open_job import open_job
from processor.job.open_registry import open_registry
from processor.job.run_job import run_job
from processor.local import parts
from processor.local.dynamodb_api import start_dynamodb_local
from processor.local.jars import spark_kafka_jars
from processor.plan.plan import Plan
from processor.records import canonical_json
from processor.settings.settings import Settings, read_settings

TICKS = os.sysconf("SC_CLK_TCK")
STORES = ("moto", "local")


def measure_job(store: str, events: int, users: int, batch: int, documents: str | None = None) -> dict[str, float]:
    """Runs the job once, with new embedded parts and a new history. Writes its messages to the file `documents`, if given."""
    with start_parts(store, batch) as (settings, directory):
        file = directory / "topics.jsonl"
        lines = (canonical_json.dumps(line) + "\n" for line in generate_history(1, events, users))
        file.write_text("".join(lines), encoding="utf-8")
        plan = prepare_plan(settings, load(read_directory(EXAMPLE)))
        feed(settings, plan, str(file))
        part_processes = descendants()
        job = open_bench_job(settings, plan)
        began, cpu = perf_counter(), cpu_seconds(part_processes)
        run_job(job, once=True)
        wall, cpu = perf_counter() - began, cpu_seconds(part_processes) - cpu
        job.spark.stop()
        if documents is not None:
            topic = plan.products["user_profile"].product.topic
            write_published(read_topic(settings.bootstrap_servers, dict(settings.kafka), topic), documents)
    return {"events": events, "users": users, "batch": batch, "wall": wall, "cpu": cpu, **job.driver.tally}


def open_bench_job(settings: Settings, plan: Plan) -> Job:
    """The job of a run, on these parts."""
    return open_job(
        settings,
        plan,
        open_registry(settings),
        owner=owner_name(),
        take_over=False,
        jars=sorted(spark_kafka_jars(print_progress).glob("*.jar")),
        report=lambda event: (
            print_progress(f"{event.text}: {event.fields['read']} read") if event.what == "batch" else None
        ),
    )


@contextmanager
def start_parts(store: str, batch: int) -> Iterator[tuple[Settings, Path]]:
    """New embedded parts and a directory; both end with the block."""
    set_embedded_credentials()
    with (
        tempfile.TemporaryDirectory(prefix="statestore-bench-", ignore_cleanup_errors=True) as directory,
        parts.embedded_parts(progress=print_progress, store="dynamodb") as addresses,
    ):
        settings = with_addresses(read_settings({"batch_size": batch}), addresses)
        settings = replace(settings, checkpoint=f"{directory}/checkpoint")
        if store == "moto":
            yield settings, Path(directory)
            return
        part = start_dynamodb_local(Path(directory) / "dynamodb", progress=print_progress)
        try:
            yield replace(settings, endpoint=part.endpoint), Path(directory)
        finally:
            part.stop()


def descendants() -> set[int]:
    """The processes below this one."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields = _fields(stat)
        if fields:
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, todo = set[int](), [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found.update(below)
        todo += below
    return found


def cpu_seconds(part_processes: set[int]) -> float:
    """CPU seconds of this process and of those below it, with their ended children, without `part_processes`."""
    stats = [_fields(Path(f"/proc/{pid}/stat")) for pid in descendants() - part_processes]
    below = sum(sum(map(int, fields[11:15])) for fields in stats if fields)
    own = sum(map(int, _fields(Path("/proc/self/stat"))[11:13]))
    return (below + own) / TICKS


def _fields(stat: Path) -> list[str]:
    """The fields of a process after its name, `state` first. Empty if the process ended."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def main() -> None:
    """Measures once and prints one line of JSON to standard output. Progress goes to standard error."""
    options = argparse.ArgumentParser(description="Measures the Spark job once, on embedded parts.")
    options.add_argument("--store", choices=STORES, required=True)
    options.add_argument("--events", type=int, required=True)
    options.add_argument("--users", type=int, required=True)
    options.add_argument("--batch", type=int, required=True)
    options.add_argument("--documents", help="file for the messages of the job")
    given = options.parse_args()
    print(json.dumps(measure_job(given.store, given.events, given.users, given.batch, given.documents)))


if __name__ == "__main__":
    main()
