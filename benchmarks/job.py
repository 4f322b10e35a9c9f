"""The Spark job on embedded parts: events a second, CPU of its processes, requests and documents. One run, printed as JSON.

    python -m benchmarks.job --store moto --events 2000 --users 150 --batch 500

The clock runs from the start of the stream to its end: producing the records, Spark's own start and the parts' are not in
it; the start of Spark's Python workers and of the first batch is. CPU is that of this process and of all that it
started, without the parts (Kafka, Postgres, DynamoDB), read from /proc, so Linux only.
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

from benchmarks.history import generate
from benchmarks.steps import EXAMPLE
from processor.cli.job import owner_name, prepare
from processor.cli.options import embedded_credentials, say, with_addresses
from processor.definitions.load import load, read_directory
from processor.feed import feed
from processor.job import open_job, run_job
from processor.local import parts
from processor.local.dynamodb import start_dynamodb_local
from processor.local.jars import spark_kafka_jars
from processor.model import canonical_json
from processor.settings import Settings, read_settings
from registry.repository import Registry

TICKS = os.sysconf("SC_CLK_TCK")
STORES = ("moto", "local")


def measure(store: str, events: int, users: int, batch: int) -> dict[str, float]:
    """Runs the job once over fresh parts and a fresh history."""
    with _scene(store, batch) as (settings, directory):
        file = directory / "topics.jsonl"
        lines = (canonical_json.dumps(line) + "\n" for line in generate(1, events, users))
        file.write_text("".join(lines), encoding="utf-8")
        plan = prepare(settings, load(read_directory(EXAMPLE)))
        feed(settings, plan, str(file))
        strangers = _tree()
        registry = Registry(settings.registry, settings.registry_schema)
        job = open_job(
            settings,
            plan,
            registry,
            owner=owner_name(),
            take_over=False,
            jars=sorted(spark_kafka_jars(say).glob("*.jar")),
            report=lambda what, tally: say(f"{what}: {tally.get('read', 0)} read"),
        )
        began, cpu = perf_counter(), _cpu(strangers)
        run_job(job, once=True)
        wall, cpu = perf_counter() - began, _cpu(strangers) - cpu
        job.rounds.spark.stop()
    return {"events": events, "users": users, "batch": batch, "wall": wall, "cpu": cpu, **job.rounds.tally}


@contextmanager
def _scene(store: str, batch: int) -> Iterator[tuple[Settings, Path]]:
    """Fresh parts and a directory, all gone at the end."""
    embedded_credentials()
    with (
        tempfile.TemporaryDirectory(prefix="statestore-bench-", ignore_cleanup_errors=True) as directory,
        parts.embedded(progress=say) as addresses,
    ):
        settings = with_addresses(read_settings({"batch_size": batch}), addresses)
        settings = replace(settings, checkpoint=f"{directory}/checkpoint")
        if store == "moto":
            yield settings, Path(directory)
            return
        part = start_dynamodb_local(Path(directory) / "dynamodb", progress=say)
        try:
            yield replace(settings, endpoint=part.endpoint), Path(directory)
        finally:
            part.stop()


def _tree() -> set[int]:
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


def _cpu(strangers: set[int]) -> float:
    """CPU seconds of this process and of those below it, their ended children included, without `strangers`."""
    stats = [_fields(Path(f"/proc/{pid}/stat")) for pid in _tree() - strangers]
    below = sum(sum(map(int, fields[11:15])) for fields in stats if fields)
    own = sum(map(int, _fields(Path("/proc/self/stat"))[11:13]))
    return (below + own) / TICKS


def _fields(stat: Path) -> list[str]:
    """The fields of a process after its name, `state` first; none when it has ended."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def main() -> None:
    """Measures once and prints a line of JSON; progress goes to standard error."""
    options = argparse.ArgumentParser(description="Measures the Spark job once, on embedded parts.")
    options.add_argument("--store", choices=STORES, required=True)
    options.add_argument("--events", type=int, required=True)
    options.add_argument("--users", type=int, required=True)
    options.add_argument("--batch", type=int, required=True)
    given = options.parse_args()
    print(json.dumps(measure(given.store, given.events, given.users, given.batch)))


if __name__ == "__main__":
    main()
