"""`statestore try`: the driver of rounds in one process, over the memory store and a virtual clock: for authors of
products, and for tests.

Takes records in file order. The file's own offsets count, so a repeated offset is a replay. Starts in milliseconds:
imports no pyspark, boto3, SQLAlchemy or confluent_kafka.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from processor.counts import Count
from processor.engine.plan.plan import Plan
from processor.engine.protocol.committed import NOTHING, Committed
from processor.engine.protocol.ledger import Run
from processor.engine.protocol.seen_transactions import followed_topics
from processor.engine.rounds.clock import VirtualClock
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.executor import InProcessExecutor
from processor.engine.rounds.make_driver import make_driver
from processor.engine.rounds.recorded_ends import RecordedEnds
from processor.environment.settings.settings import Settings
from processor.values.framing import NO_SCHEMAS, FramedReader
from processor.values.record import Message, Record
from statestore.memory import MemoryStore
from statestore.store import Store

CLOSE = 1e-6
"""Seconds between two moments that are one: sums of floats differ."""


@dataclass(slots=True)
class MemoryOutbox:
    """Keeps the messages that a job sends, and acknowledges them at once."""

    messages: list[Message] = field(default_factory=list)

    def send(self, message: Message) -> None:
        self.messages.append(message)

    def flush(self) -> None:
        return None


@dataclass(slots=True, kw_only=True)
class Trial:
    """A job in this process: each batch takes `batch_seconds`. `run`: the number of this run. `lag`: how late every index
    answers, in seconds. `consistent`: whether the memory store says that none is ever late, so that the job keeps no open
    changes. `other_store`: in place of memory. `schemas`: of records that a schema registry describes. `published` and `rejects`
    hold the messages that it sent."""

    plan: Plan
    settings: Settings
    run: int = 1
    lag: float = 0.0
    consistent: bool = False
    batch_seconds: float = 1.0
    other_store: Store | None = None
    schemas: FramedReader = NO_SCHEMAS
    published: MemoryOutbox = field(default_factory=MemoryOutbox)
    rejects: MemoryOutbox = field(default_factory=MemoryOutbox)
    clock: VirtualClock = field(default_factory=VirtualClock)
    driver: Driver = field(init=False)
    committed: Committed = NOTHING
    transactions: RecordedEnds = field(init=False)

    def __post_init__(self) -> None:
        self.transactions = RecordedEnds(self.schemas)
        slots, now = self.settings.slots, self.clock.now
        store = self.other_store or MemoryStore(slots, lag=self.lag, clock=now, consistent=self.consistent)
        executor = InProcessExecutor(
            store=store,
            begin=lambda _: (0, LaneOutbox(self)),
            rejects=self.rejects,
            page=self.settings.fan_out_page,
            schemas=self.schemas,
        )
        self.driver = make_driver(
            settings=self.settings,
            plan=self.plan,
            store=store,
            executor=executor,
            clock=self.clock,
            run=Run(number=self.run),
            transactions=self.transactions,
        )

    @property
    def store(self) -> Store:
        """The store that holds the state."""
        return self.driver.store

    @property
    def tally(self) -> Counter[str]:
        """The counts of all rounds so far."""
        return self.driver.tally

    @property
    def stopped(self) -> Mapping[str, str]:
        """The products that failed, with the reason."""
        return self.driver.progress.backlog.stopped

    def batch(self, records: Iterable[Record]) -> Counter[str]:
        """One micro-batch, from its records to its published documents; returns its counts. `background_work` comes
        between batches."""
        records = list(records)
        topics = followed_topics(self.driver.plan)
        for record in (record for record in records if record.topic in topics):
            self.transactions.take(record)
        records = [record for record in records if record.topic not in topics]
        known = ((topic, partition) for topic, _, partition in self.committed.offsets)
        read = {*known, *((record.topic, record.partition) for record in records)}
        self.driver.rounds.partitions = Counter(topic for topic, _ in read)
        tally = self.driver.process_batch([records], self.committed)
        self.committed = self.committed.and_read(records)
        self.driver.tally[Count.BATCHES] += 1
        self.clock.sleep(self.batch_seconds)
        return tally

    def background_work(self) -> None:
        """Settles the open changes that are due now, and continues fan-outs."""
        self.driver.background_work()

    def advance(self, seconds: float) -> None:
        """Lets so much time pass, and does the background work that is due until then."""
        end = self.clock.seconds + seconds
        while self.driver.busy or ((due := self.driver.next_due()) is not None and due <= end + CLOSE):
            if not self.driver.busy:
                self.clock.seconds = max(self.clock.seconds, due or 0)
            self.driver.background_work()
        self.clock.seconds = max(self.clock.seconds, end)

    def finish(self) -> None:
        """Lets time pass until no background work remains."""
        while self.driver.pending:
            if not self.driver.busy:
                self.clock.seconds = max(self.clock.seconds, self.driver.next_due() or 0)
            self.driver.background_work()


@dataclass(frozen=True, slots=True)
class LaneOutbox:
    """The outbox of a trial's lane: a dead letter that takes the place of a document goes to the dead letters."""

    trial: Trial

    def send(self, message: Message) -> None:
        trial = self.trial
        (trial.rejects if message.topic == trial.settings.dead_letter_topic else trial.published).send(message)

    def flush(self) -> None:
        return None


def batches(records: Iterable[Record], size: int | None) -> Iterator[list[Record]]:
    """The records in batches of `size`; all at once without a size."""
    records = iter(records)
    while chunk := list(records if size is None else islice(records, size)):
        yield chunk
