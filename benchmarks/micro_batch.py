"""Measure what a micro-batch costs however small it is: one event end to end. One run.

    python -m benchmarks.micro_batch --events 20

The table is in DynamoDB Local, or with `--store postgres` in a server of Postgres. Each event is a pull request of the same user
and changes one document. The job has nothing else to do. Promises: the first events do not count, because the workers start and
the JVM compiles. Does not: count the CPU of an idle job; that is a figure of its own, and it continues while a batch runs.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Thread
from time import perf_counter, sleep

from confluent_kafka import Consumer, TopicPartition

from benchmarks.inputs.stored_users import PRODUCT
from benchmarks.job import add_store, cpu_seconds, descendants, open_bench_job, start_parts
from benchmarks.steps import EXAMPLE
from processor.job.kafka.client import make_consumer
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.run.job import Job
from processor.job.run.open_job import prepare_plan
from processor.job.run.run_job import run_job
from processor.language.definitions.load import load, read_directory
from processor.values import canonical_json
from processor.values.record import Message

USER = {"id": 1, "email": "octo@example.org", "username": "octocat"}
LAG = 0.3
"""S and W, in seconds: the settling of an event is over before the next event."""
IDLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatchCost:
    """One micro-batch. `seconds`: from the broker's acknowledgement of the event until a reader has the document. CPU seconds
    of driver, JVM and workers: `cpu` from then until Spark has committed the batch, `settling` from then until the event is
    settled, `idle` in a second before."""

    seconds: float
    cpu: float
    settling: float
    idle: float


def measure_micro_batches(store: str, events: int, warm_up: int = 10) -> list[MicroBatchCost]:
    """The cost of this many micro-batches of one event each, after some that do not count."""
    with start_parts(store, batch=10_000) as (settings, _):
        settings = replace(settings, wait_seconds=LAG, settle_seconds=LAG)
        plan = prepare_plan(settings, load(read_directory(EXAMPLE)))
        parts = descendants()
        job = open_bench_job(settings, plan)
        job.admin.ensure(job.readers, partitions=settings.partitions, compacted=False)
        outbox, reader = KafkaOutbox(settings.bootstrap_servers, {}), make_consumer(settings.bootstrap_servers, {})
        topic = plan.products[PRODUCT].product.topic
        reader.assign([TopicPartition(topic, p, 0) for p in range(settings.partitions)])
        stream = Thread(target=run_job, args=(job,), kwargs={"once": False})
        stream.start()
        try:
            _send(outbox, job, "user", USER)
            _await_document(reader)
            return [_measure_event(job, outbox, reader, parts, n) for n in range(warm_up + events)][warm_up:]
        finally:
            job.stopping.set()
            stream.join()
            reader.close()
            job.spark.stop()


def _measure_event(job: Job, outbox: KafkaOutbox, reader: Consumer, parts: set[int], number: int) -> MicroBatchCost:
    _wait_for(lambda: not job.driver.pending)
    committed = _committed(job)
    idle = cpu_seconds(parts)
    sleep(IDLE_SECONDS)
    cpu = cpu_seconds(parts)
    _send(outbox, job, "pull_request", _pull_request(number))
    began = perf_counter()
    _await_document(reader)
    seconds = perf_counter() - began
    _wait_for(lambda: _committed(job) > committed)
    batch = cpu_seconds(parts)
    _wait_for(lambda: not job.driver.pending)
    return MicroBatchCost(seconds=seconds, cpu=batch - cpu, settling=cpu_seconds(parts) - batch, idle=cpu - idle)


def _pull_request(number: int) -> dict[str, object]:
    return {
        "repo": "hello",
        "repo_owner": "octocat",
        "index": number,
        "author": USER["username"],
        "title": f"Fix {number}",
        "created_at": "2024-01-01T00:00:00Z",
        "status": "open",
    }


def _send(outbox: KafkaOutbox, job: Job, entity: str, row: dict[str, object]) -> None:
    declared = job.driver.plan.entities[entity].entity
    key = canonical_json.encode({column: row[column] for column in declared.key})
    outbox.send(Message(topic=declared.topic, key=key, value=canonical_json.encode(row), headers=()))
    outbox.flush()


def _await_document(reader: Consumer) -> None:
    while (message := reader.poll(60)) is not None:
        if message.error() is None:
            return
    raise TimeoutError("no document within 60 s")


def _committed(job: Job) -> int:
    return len(list(Path(job.settings.checkpoint, "commits").glob("[0-9]*")))


def _wait_for(done: Callable[[], bool]) -> None:
    while not done():
        sleep(0.01)


def main() -> None:
    """Measures once and prints one line of JSON to standard output. Progress goes to standard error."""
    options = argparse.ArgumentParser(description="Measures micro-batches of one event, on embedded parts.")
    options.add_argument("--events", type=int, default=20)
    add_store(options)
    given = options.parse_args()
    print(json.dumps([asdict(cost) for cost in measure_micro_batches(given.store, given.events)]))


if __name__ == "__main__":
    main()
