"""Measure recovery: the time from kill -9 of the whole job to its first document, for tables of several sizes.

    python -m benchmarks.recovery --rows 1000 10000 100000 --kills 5

Each size has new embedded parts and a new DynamoDB Local, or with `--store postgres` a new server of Postgres that syncs each
commit to the disk. The job starts once over empty topics. Then the benchmark writes rows (`inputs.stored_users`). A producer
gives the pull request of one user after another another title. SIGKILL ends all processes of the job, and the next run starts at
once with `--take-over`, so it waits for no lease. A reader of committed messages counts from the kill until it has a document
that the broker took after the kill.

`--table` leaves out Spark, Kafka and Postgres: it measures the part of a start that reads the table, by the job's own driver in
this process: what earlier runs left, the walks, and the first batch, of one event. It does not wait W.

Promises: all settings have their defaults, W = 5 s included; the rows of the first size are as far from the job's topics as those
of the last. Does not: give the embedded parts cores of their own, or measure a job that is far behind its topics.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Event
from time import perf_counter, sleep, time

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.inputs.stored_users import PRODUCT, pull_request, write_rows
from benchmarks.job import add_store, start_parts
from benchmarks.job_process import STATESTORE, background, environment, run_command
from benchmarks.steps import EXAMPLE, demo_plan
from processor.cli.options import print_progress, set_embedded_credentials
from processor.engine.rounds.trial import Trial
from processor.environment.programs.servers import start_dynamodb_local
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import open_store
from processor.job.kafka.admin import Admin
from processor.job.kafka.client import make_consumer
from processor.job.kafka.client import settings as client_settings
from processor.job.run.open_job import prepare_plan
from processor.language.definitions.load import load, read_directory
from processor.values import canonical_json
from processor.values.record import Record
from statestore.dynamodb.store import DynamoStore

RATE = 5.0
"""Events a second."""
WORK_SECONDS = 10.0
"""The job publishes for this long before it is killed."""
START_SECONDS = 240.0


@dataclass(slots=True)
class Documents:
    """The documents of the product. `times`: Kafka's time of each, and when the reader had it, in seconds since 1970."""

    consumer: Consumer
    times: list[tuple[float, float]]
    stopped: Event

    def read(self) -> None:
        """Reads until it is stopped."""
        while not self.stopped.is_set():
            for message in self.consumer.consume(500, timeout=0.05):
                if message.error() is None:
                    self.times.append((message.timestamp()[1] / 1000, time()))

    def first_after(self, moment: float, log: Path) -> float:
        """When the reader had the first document that the broker took after this moment. Waits for it."""
        while True:
            if found := [had for sent, had in self.times if sent > moment]:
                return found[0]
            if time() > moment + START_SECONDS:
                raise TimeoutError(f"no document after {START_SECONDS:.0f} s:\n{log.read_text()[-4000:]}")
            sleep(0.02)


@contextmanager
def documents(settings: Settings, topic: str) -> Iterator[Documents]:
    """A reader of the product's topic, from its end."""
    consumer, stopped = make_consumer(settings.bootstrap_servers, {}), Event()
    ends = Admin(settings.bootstrap_servers, {}).ends(topic)
    consumer.assign([TopicPartition(topic, p, end) for p, end in ends.items()])
    reader = Documents(consumer, [], stopped)
    with background(reader.read):
        try:
            yield reader
        finally:
            stopped.set()
    consumer.close()


@contextmanager
def events(settings: Settings, users: int) -> Iterator[None]:
    """Changes the pull requests of the users in turn, at a steady rate, until the block ends."""
    producer, stopped = Producer(client_settings(settings.bootstrap_servers, {})), Event()

    def send() -> None:
        n = 0
        while not stopped.wait(1 / RATE):
            event = _event(n % users, f"{n}")
            producer.produce(event.topic, key=event.key, value=event.value, partition=0)
            producer.poll(0)
            n += 1
        producer.flush()

    with background(send):
        try:
            yield
        finally:
            stopped.set()


def measure_recovery(store_name: str, rows: int, kills: int) -> list[float]:
    """The seconds from each kill to the first document after it."""
    with start_parts(store_name, batch=Settings().batch_size) as (settings, directory):
        plan = prepare_plan(settings, load(read_directory(EXAMPLE)))
        topics = [entity.entity.topic for entity in plan.entities.values()]
        Admin(settings.bootstrap_servers, {}).ensure(topics, partitions=settings.partitions, compacted=False)
        given, log = environment(settings), directory / "job.log"
        with events(settings, 1):  # a checkpoint that read nothing counts as new: the job would publish all documents
            sleep(1)
        with run_command([STATESTORE, "run", "--once"], log, **given) as process:
            if process.wait(START_SECONDS):
                raise RuntimeError(log.read_text())
        print_progress(f"writes {rows:,} rows")
        store = open_store(settings)
        write_rows(store, plan, rows)
        store.close()
        print_progress(f"starts the job {kills + 1} times")
        found: list[float] = []
        killed = time()
        with documents(settings, plan.products[PRODUCT].product.topic) as reader, events(settings, rows // 2):
            for _ in range(kills + 1):
                began = time()  # the killed job may have committed a document in its last moment
                with run_command([STATESTORE, "run", "--take-over"], log, **given):
                    found.append(reader.first_after(began, log) - killed)
                    print_progress(f"{rows:,} rows: first document after {found[-1]:.1f} s")
                    sleep(WORK_SECONDS)
                    killed = time()
        return found[1:]  # the first run followed no kill


def measure_table(rows: int, repetitions: int) -> tuple[list[float], Counter[str]]:
    """The seconds of each start with its first batch, and the requests of one: all must ask the same."""
    set_embedded_credentials()
    plan = demo_plan()
    with tempfile.TemporaryDirectory(prefix="statestore-bench-", ignore_cleanup_errors=True) as directory:
        part = start_dynamodb_local(Path(directory), progress=print_progress)
        store = DynamoStore(table="recovery", endpoint_url=part.endpoint, region="us-east-1", threads=16)
        try:
            store.create(Settings().slots)
            first = Trial(plan=plan, settings=Settings(), other_store=store)
            first.driver.start()
            first.driver.adopt(plan)
            print_progress(f"writes {rows:,} rows")
            write_rows(store, plan, rows)
            seconds, asked = [], set[tuple[tuple[str, int], ...]]()
            for n in range(repetitions):
                before, began = store.requests.copy(), perf_counter()
                trial = Trial(plan=plan, settings=Settings(), other_store=store, run=2 + n)
                trial.driver.start()
                trial.driver.adopt(plan)
                trial.batch([_event(n, f"{n}")])
                seconds.append(perf_counter() - began)
                asked.add(tuple(sorted((store.requests - before).items())))
                trial.finish()
        finally:
            store.close()
            part.stop()
    (requests,) = asked
    return seconds, Counter(dict(requests))


def _event(n: int, title: str) -> Record:
    row = pull_request(n, title)
    key = canonical_json.encode({name: row[name] for name in ("repo", "repo_owner", "index")})
    return Record(topic="pull_request", partition=0, offset=n, epoch=1, key=key, value=canonical_json.encode(row))


def main() -> None:
    """Measures each size, and prints a line for each."""
    options = argparse.ArgumentParser(description="Measures the time from kill -9 to the first document.")
    options.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options.add_argument("--kills", type=int, default=5, help="how often the job starts again (%(default)s)")
    add_store(options)
    options.add_argument("--table", action="store_true", help="only the part of a start that reads the table")
    given = options.parse_args()
    for rows in given.rows:
        seconds, requests = (
            measure_table(rows, given.kills) if given.table else (measure_recovery(given.store, rows, given.kills), {})
        )
        figures = f"{min(seconds):.3f} / {median(seconds):.3f} / {max(seconds):.3f}"
        asked = ", ".join(f"{n} {name}" for name, n in sorted(requests.items()))
        print(f"| {rows:,} | {len(seconds)} | {figures} | {asked} |", flush=True)


if __name__ == "__main__":
    main()
