"""Measure freshness: the time from an event to its document, at a steady rate. One run for each rate.

    python -m benchmarks.freshness --rates 10 100 500 --seconds 60

The table is in DynamoDB Local, or with `--store postgres` in a server of Postgres that syncs each commit to the disk. Each event
gives the pull request of one of `USERS` users, in turn, another title, and so changes one document. A reader counts from the
broker's acknowledgement of the event until it has a document with that title, or with a later one of the same user. The job's own
histogram (`processor.engine.rounds.round_counts`) counts each document once, by its oldest event. So the reader counts that, too.
Promises: warm-up events do not count; the job is idle before each rate; the benchmark waits until each event has its document.
Does not: give the embedded parts cores of their own.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import quantiles
from threading import Thread
from time import sleep, time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from benchmarks.inputs.stored_users import PRODUCT
from benchmarks.job import add_store, open_bench_job, start_parts
from benchmarks.steps import EXAMPLE
from benchmarks.tables import format_table
from processor.engine.rounds.round_counts import read_freshness
from processor.environment.programs.servers import DYNAMODB_LOCAL_NAME
from processor.job.kafka.client import make_consumer
from processor.job.kafka.client import settings as client_settings
from processor.job.run.job import Job
from processor.job.run.open_job import prepare_plan
from processor.job.run.run_job import run_job
from processor.language.definitions.load import load, read_directory
from processor.values import canonical_json

RATES = (10, 100, 500)
USERS = 2_000
WARM_UP = (50, 20.0)
"""Events per second, and seconds, that do not count."""
DRAIN_SECONDS = 600
STORE_NAMES = {"local": DYNAMODB_LOCAL_NAME, "postgres": "Postgres"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshnessCost:
    """The freshness at `rate` events per second, of which the producer reached `sent`.

    `events`: seconds from each event to its document; `documents`: from the oldest event of each of the `published` documents;
    p50, p99 and the maximum of both. `job`: p50 and p99 of the job's own histogram. `half`, `end`: the events without a document
    at half of the time, and when the last event was sent. `drained`: seconds from then until all had one.
    """

    rate: int
    sent: float
    events: tuple[float, float, float]
    documents: tuple[float, float, float]
    published: int
    job: tuple[float, float]
    half: int
    end: int
    drained: float


@dataclass(slots=True)
class Reader:
    """The events that wait for their document, and the ages of those that have one, for the events and for the documents."""

    waiting: dict[int, dict[int, float]] = field(default_factory=lambda: {user: {} for user in range(USERS)})
    events: list[float] = field(default_factory=list)
    documents: list[float] = field(default_factory=list)
    stopped: bool = False

    def acknowledged(self, number: int) -> None:
        """Notes an event that the broker has, now."""
        self.waiting[number % USERS][number] = time()

    def lag(self) -> int:
        """The events that have no document yet."""
        return sum(map(len, self.waiting.values()))

    def read(self, consumer: Consumer) -> None:
        """Reads documents until it is stopped."""
        while not self.stopped:
            for message in consumer.consume(500, timeout=0.1):
                if message.error() is None and (value := message.value()):
                    self.arrived(json.loads(value), time())

    def arrived(self, document: dict[str, Any], now: float) -> None:
        """Takes a document: the events that it is the first to show have waited until now."""
        for shown in document["pull_requests"]:
            number = int(shown["title"])
            waiting = self.waiting[number % USERS]
            ages = [now - waiting.pop(n) for n in sorted(waiting) if n <= number]
            self.events += ages
            self.documents += ages[:1]


@dataclass(slots=True, kw_only=True)
class Feed:
    """The producer. `number`: of the next event."""

    producer: Producer
    job: Job
    reader: Reader
    number: int = 0

    def send_users(self) -> None:
        """Sends the users, whose documents do not count."""
        for user in range(USERS):
            self._send("user", {"id": user, "email": f"{user}@example.org", "username": f"user{user}"})
        self.producer.flush()

    def send_for(self, rate: int, seconds: float) -> tuple[float, int]:
        """Sends events at a steady rate; returns the rate that it reached, and how many had no document at half of the time."""
        began, total, half = time(), round(rate * seconds), 0
        for n in range(total):
            while (early := began + n / rate - time()) > 0:
                self.producer.poll(early)
            self._send("pull_request", self._pull_request())
            half = self.reader.lag() if n == total // 2 else half
        self.producer.flush()
        return total / (time() - began), half

    def _pull_request(self) -> dict[str, object]:
        user = self.number % USERS
        return {
            "repo": "hello",
            "repo_owner": "octocat",
            "index": user,
            "author": f"user{user}",
            "title": f"{self.number}",
            "created_at": "2024-01-01T00:00:00Z",
            "status": "open",
        }

    def _send(self, entity: str, row: dict[str, object]) -> None:
        declared = self.job.driver.plan.entities[entity].entity
        key = canonical_json.encode({column: row[column] for column in declared.key})
        number = self.number
        self.number += entity == "pull_request"

        def delivered(error: object, _: object) -> None:
            assert error is None, error
            if entity == "pull_request":
                self.reader.acknowledged(number)

        self.producer.produce(declared.topic, key=key, value=canonical_json.encode(row), on_delivery=delivered)
        self.producer.poll(0)


def measure_freshness(store: str, rates: Iterable[int], seconds: float) -> list[FreshnessCost]:
    """The freshness at each rate, which the producer keeps for this many seconds."""
    with start_parts(store, batch=10_000) as (settings, _):
        plan = prepare_plan(settings, load(read_directory(EXAMPLE)))
        job = open_bench_job(settings, plan)
        job.admin.ensure(job.readers, partitions=settings.partitions, compacted=False)
        consumer, reader = make_consumer(settings.bootstrap_servers, {}), Reader()
        topic = plan.products[PRODUCT].product.topic
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(settings.partitions)])
        producer = Producer(client_settings(settings.bootstrap_servers, {"linger.ms": "1"}))
        feed = Feed(producer=producer, job=job, reader=reader)
        threads = [
            Thread(target=run_job, args=(job,), kwargs={"once": False}),
            Thread(target=reader.read, args=(consumer,)),
        ]
        for thread in threads:
            thread.start()
        try:
            feed.send_users()
            feed.send_for(*WARM_UP)
            return [_measure(feed, rate, seconds) for rate in rates]
        finally:
            job.stopping.set()
            reader.stopped = True
            for thread in threads:
                thread.join()
            consumer.close()
            job.spark.stop()


def _measure(feed: Feed, rate: int, seconds: float) -> FreshnessCost:
    job, reader = feed.job, feed.reader
    _drain(feed)
    before = job.driver.tally.copy()
    reader.events, reader.documents = [], []
    sent, half = feed.send_for(rate, seconds)
    end = reader.lag()
    drained = _drain(feed)
    own = read_freshness(Counter(job.driver.tally) - before)
    return FreshnessCost(
        rate=rate,
        sent=sent,
        events=_figures(reader.events),
        documents=_figures(reader.documents),
        published=len(reader.documents),
        job=(own.quantile(0.5), own.quantile(0.99)),
        half=half,
        end=end,
        drained=drained,
    )


def _drain(feed: Feed) -> float:
    """Waits until each event has its document, and then until the job is idle. Returns the seconds of the first wait."""
    began = time()
    while lag := feed.reader.lag():
        if time() - began > DRAIN_SECONDS:
            raise TimeoutError(f"{lag} events have no document {DRAIN_SECONDS} s after the last one")
        sleep(0.05)
    drained = time() - began
    while feed.job.driver.pending:
        sleep(0.1)
    return drained


def _figures(ages: list[float]) -> tuple[float, float, float]:
    """p50, p99 and the maximum."""
    hundredths = quantiles(ages, n=100, method="inclusive")
    return hundredths[49], hundredths[98], max(ages)


def format_freshness(costs: Sequence[FreshnessCost], store: str = DYNAMODB_LOCAL_NAME) -> tuple[str, str]:
    """The title and the table of freshness. `store`: where the table is."""
    head = ("events/s", "sent/s", "each event, s", "documents", "oldest event of each document, s", "the job's own, s")
    lag = ("events that wait, at half", "at the end", "until none waits, s")
    rows = [
        (
            f"{c.rate:,}",
            f"{c.sent:,.0f}",
            " / ".join(f"{x:.2f}" for x in c.events),
            f"{c.published:,}",
            " / ".join(f"{x:.2f}" for x in c.documents),
            " / ".join(f"{x:.2f}" for x in c.job),
            f"{c.half:,}",
            f"{c.end:,}",
            f"{c.drained:.1f}",
        )
        for c in costs
    ]
    title = (
        f"**Freshness** on {store}, from an event to its document: p50 / p99 / maximum by a reader, and p50 / p99 of the "
        "job's own histogram; one run each."
    )
    return title, format_table((*head, *lag), rows)


def main() -> None:
    """Measures once and prints the table to standard error, and one line of JSON to standard output."""
    options = argparse.ArgumentParser(description="Measures the time from an event to its document, on embedded parts.")
    options.add_argument("--rates", type=int, nargs="+", default=RATES)
    options.add_argument("--seconds", type=float, default=60.0)
    add_store(options)
    given = options.parse_args()
    costs = measure_freshness(given.store, given.rates, given.seconds)
    print(*format_freshness(costs, STORE_NAMES[given.store]), sep="\n\n", file=sys.stderr)
    print(json.dumps([asdict(cost) for cost in costs]))


if __name__ == "__main__":
    main()
