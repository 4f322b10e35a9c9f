"""`statestore try`: the driver of rounds in one process, over the memory store and a virtual clock: for authors of
products, and for tests.

Takes records in file order. The file's own offsets count, so a repeated offset is a replay. Starts in milliseconds:
imports no pyspark, boto3, SQLAlchemy or confluent_kafka.

`run_case` runs a test of a product: the trial processes the rows and changes, then each published document is compared with the
expected one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from itertools import islice

from processor.counts import Count
from processor.engine.plan.plan import Plan
from processor.engine.protocol.epochs import NOTHING, Committed
from processor.engine.protocol.gates import followed_topics
from processor.engine.protocol.ledger import Run
from processor.engine.rounds.driver import Driver, make_driver
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.round_runner import InProcessExecutor
from processor.environment.settings.settings import Settings
from processor.language.definitions.product_tests import Case, ExpectedDocument
from processor.language.definitions.shape import MOST_SECONDS
from processor.values import canonical_json
from processor.values.dead_letters import rejected_record
from processor.values.framing import NO_SCHEMAS, FramedReader, bare_value
from processor.values.reasons import OF_DOCUMENTS
from processor.values.record import Message, Record, TransactionEnd, Value, read_transaction_end
from statestore.memory import MemoryStore
from statestore.store import Store


@dataclass(slots=True)
class RecordedEnds:
    """Gives each end once, in the order of the records. `schemas`: of records that a schema registry describes."""

    schemas: FramedReader = NO_SCHEMAS
    _waiting: dict[str, list[TransactionEnd]] = field(default_factory=lambda: defaultdict(list))

    def take(self, record: Record) -> None:
        """Takes a record of a transaction topic."""
        if (end := read_transaction_end(bare_value(record, self.schemas))) is not None:
            self._waiting[record.topic].append(end)

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        """The ends that came since the last call."""
        return self._waiting.pop(topic, [])

    def close(self) -> None:
        return None


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
            plan=self.plan.over_empty_table(),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A difference. `line`: of the expectation or the record; `what`: the message; `diff`: the document's diff as lines, `-`
    expected, `+` published."""

    line: int
    what: str
    diff: tuple[str, ...] = ()


def run_case(case: Case, plan: Plan, settings: Settings) -> tuple[Failure, ...]:
    """Runs one case, and returns its failures: none when the case passed."""
    trial = run_trial(case, plan, settings)
    topic = plan.products[case.product].product.topic
    published = {(m.key or b"").decode(): m.value for m in trial.published.messages if m.topic == topic}
    documents = {key: canonical_json.loads(value) for key, value in published.items() if value is not None}
    letters = _dead_letters(trial, case, topic)
    return (*letters, *_stopped(trial, case), *(f for e in case.expected for f in _compare(e, documents)))


def run_trial(case: Case, plan: Plan, settings: Settings) -> Trial:
    """The trial of a case, at the moment at which the case looks at the documents."""
    trial = Trial(plan=plan, settings=settings, consistent=True, batch_seconds=0)
    trial.clock.start = case.clock - 2 * MOST_SECONDS if case.clock else 0.0
    trial.batch(case.given)
    trial.finish()
    trial.clock.sleep(MOST_SECONDS)  # of a gate: the documents of the given rows are old
    if case.clock:
        trial.clock.start = max(trial.clock.start, case.clock - trial.clock.seconds)
        trial.finish()
    for records, after in case.changes:
        trial.batch(records)
        trial.background_work()
        if after is None:
            trial.finish()
        else:
            trial.advance(after)
    return trial


def _dead_letters(trial: Trial, case: Case, topic: str) -> Iterator[Failure]:
    """The dead letters of records, and those in place of documents of this topic."""
    for letter in trial.rejects.messages:
        rejected = rejected_record(letter)
        record = rejected.record
        if rejected.code not in OF_DOCUMENTS:
            yield Failure(line=record.timestamp, what=f"the record is a dead letter: {rejected.reason}")
        elif record.topic == topic:
            key = (record.key or b"").decode()
            yield Failure(line=case.line, what=f"the document {key} is a dead letter: {rejected.reason}")


def _stopped(trial: Trial, case: Case) -> Iterator[Failure]:
    if case.product in trial.stopped:
        yield Failure(line=case.line, what=f"the product is stopped: {trial.stopped[case.product]}")


def _compare(expected: ExpectedDocument, documents: Mapping[str, Value]) -> Iterator[Failure]:
    found = documents.get(expected.key)
    wanted = expected.document
    if not expected.whole and isinstance(found, dict):
        found = {name: value for name, value in found.items() if name in wanted}
    if not canonical_json.equal(wanted, found):
        if found is None:
            what = f"there is no document {expected.key}; the published documents are: {', '.join(documents) or 'none'}"
        elif wanted is None:
            what = f"there is a document {expected.key}, but the test expects none"
        else:
            what = f"the document {expected.key} differs"
        yield Failure(line=expected.line, what=what, diff=tuple(_diff(wanted, found)))


def _diff(wanted: Value, found: Value) -> Iterator[str]:
    before, after = (canonical_json.dumps_indented(value).splitlines() for value in (_reorder(wanted, found), found))
    yield from unified_diff(before, after, "expected", "published", lineterm="")


def _reorder(wanted: Value, found: Value) -> Value:
    """The wanted value with its members in the order of the found value, so that a diff shows only differences."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        names = [*(name for name in found if name in wanted), *(name for name in wanted if name not in found)]
        return {name: _reorder(wanted[name], found.get(name)) for name in names}
    if isinstance(wanted, list) and isinstance(found, list):
        return [*map(_reorder, wanted, found), *wanted[len(found) :]]
    return wanted
