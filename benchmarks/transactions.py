"""Measure the price of the publishers' transactions: the same messages through an outbox with and without them. One broker.

    python -m benchmarks.transactions --messages 2000 --repeat 5

A batch is what one publish task sends in a round: so many messages, then `flush`. Three outboxes take turns in each repetition:

plain            idempotent, outside transactions, one producer for all batches
transactions     one transaction a batch, one producer for all batches
as the job       one transaction a batch, and a new producer for each batch, which fences the one before

Does not: measure Spark, the documents, several brokers, or what a reader pays.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from os import getloadavg
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import NamedTuple

from benchmarks.report import format_table, machine_name
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox, TransactionalOutbox
from processor.local.kafka_broker import start_kafka
from processor.records.message import Message

BATCHES = (10, 100, 1000)
BODY = b'{"name":"%s"}' % (b"x" * 989)
"""A document of 1,000 bytes."""
TOPIC = "documents"
Outboxes = Iterator[KafkaOutbox]


class Cost(NamedTuple):
    """Milliseconds of a batch: by the clock, and of this process's CPU."""

    clock: float
    cpu: float


def plain(broker: str) -> Outboxes:
    outbox = KafkaOutbox(broker, {})
    while True:
        yield outbox


def transactions(broker: str) -> Outboxes:
    outbox = TransactionalOutbox(broker, {}, "kept")
    while True:
        yield outbox


def as_the_job(broker: str) -> Outboxes:
    while True:
        yield TransactionalOutbox(broker, {}, "lane")


KINDS: dict[str, Callable[[str], Outboxes]] = {"plain": plain, "transactions": transactions, "as the job": as_the_job}


def measure(broker: str, messages: int, repeat: int) -> dict[tuple[str, int], list[Cost]]:
    """The cost of a batch by kind of outbox and size of the batch, one value for each repetition. The first batch of each
    outbox does not count."""
    outboxes = {kind: make(broker) for kind, make in KINDS.items()}
    for each in outboxes.values():
        _send(each, 1)
    found: dict[tuple[str, int], list[Cost]] = {}
    for _ in range(repeat):
        for size in BATCHES:
            for kind, each in outboxes.items():
                batches = messages // size
                clock, cpu = perf_counter(), process_time()
                for _ in range(batches):
                    _send(each, size)
                cost = Cost((perf_counter() - clock) * 1000 / batches, (process_time() - cpu) * 1000 / batches)
                found.setdefault((kind, size), []).append(cost)
    return found


def _send(outboxes: Outboxes, size: int) -> None:
    outbox = next(outboxes)
    for n in range(size):
        outbox.send(Message(TOPIC, b'{"id":%d}' % n, BODY))
    outbox.flush()


@contextmanager
def _broker() -> Iterator[str]:
    with TemporaryDirectory() as folder:
        part = start_kafka(Path(folder))
        try:
            Admin(part.endpoint, {}).ensure([TOPIC], partitions=2, compacted=True)
            yield part.endpoint
        finally:
            part.stop()


def report(found: dict[tuple[str, int], list[Cost]]) -> str:
    """The medians as a table, and the range of the clock."""
    rows = []
    for (kind, size), costs in sorted(found.items(), key=lambda pair: (pair[0][1], list(KINDS).index(pair[0][0]))):
        clock = [cost.clock for cost in costs]
        cpu = median(cost.cpu for cost in costs)
        rows.append([f"{size:,}", kind, f"{median(clock):.1f}", f"{min(clock):.1f} to {max(clock):.1f}", f"{cpu:.1f}"])
    return format_table(["messages a batch", "outbox", "ms a batch, median", "range", "ms of CPU"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transactions", description=__doc__)
    parser.add_argument("--messages", type=int, default=2000, help="messages of each outbox, size and repetition")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with _broker() as broker:
        print(report(measure(broker, options.messages, options.repeat)))
    loads = ", ".join(f"{load:.1f}" for load in getloadavg())
    print(f"{date.today()}, {machine_name()}; load average at the end {loads}")


if __name__ == "__main__":
    main()
