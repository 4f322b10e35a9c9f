"""`statestore try`: the same steps in one process, over the memory store, without Spark: for authors of products and for tests.

Records are taken in file order, so many a batch; the file's own offsets count, so a repeated offset is a replay. Ends when all
is worked off. Starts in milliseconds: imports no pyspark, boto3, SQLAlchemy or confluent_kafka.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from processor.account import check_account
from processor.batch import Round, publish_part, write_part
from processor.lockstep import Lockstep
from processor.model.change import Record
from processor.model.ledger import Run, end_round
from processor.model.plan import Plan
from processor.model.step import Message
from processor.settings import Settings
from statestore.memory import MemoryStore

MARKER_SECONDS = 30 * 86_400


@dataclass(slots=True)
class MemoryOutbox:
    """Keeps what is sent; everything is acknowledged at once."""

    messages: list[Message] = field(default_factory=list)

    def send(self, message: Message) -> None:
        self.messages.append(message)

    def flush(self) -> None:
        return None


@dataclass(slots=True, kw_only=True)
class Trial:
    """A job in this process. `published` and `rejects` hold what it sent."""

    plan: Plan
    settings: Settings
    store: MemoryStore = field(default_factory=MemoryStore)
    published: MemoryOutbox = field(default_factory=MemoryOutbox)
    rejects: MemoryOutbox = field(default_factory=MemoryOutbox)
    tally: Counter[str] = field(default_factory=Counter)
    run: Run = field(default_factory=lambda: Run(number=1))
    ends: dict[tuple[str, int], int] = field(default_factory=dict)

    def batch(self, records: Iterable[Record]) -> Counter[str]:
        """One micro-batch, from its records to its published documents."""
        number = self.run.through + 1
        round_ = Round(
            plan=self.plan,
            run=self.run,
            number=number,
            batch=number,
            starts=self.ends,
            forget=number + MARKER_SECONDS,
            rejects=self.settings.rejects_topic,
        )
        before = self.store.requests.copy()
        written = write_part(records, round_, Lockstep(store=self.store, outbox=self.rejects), self.rejects)
        sends = Lockstep(store=self.store, outbox=self.published)
        tally = written.tally + publish_part(written.roots, round_, 0, 0, sends)
        check_account(tally, self.settings)
        self.run = replace(self.run, through=number)
        if tally["published"]:
            self.store.write(end_round(self.run))
        self.ends.update({at: max(end, self.ends.get(at, 0)) for at, end in written.ends.items()})
        tally.update({f"request {name}": n for name, n in (self.store.requests - before).items()})
        self.tally.update(tally)
        return tally


def batches(records: Iterable[Record], size: int | None) -> Iterator[list[Record]]:
    """The records in batches of `size`; all at once without one."""
    records = iter(records)
    while chunk := list(records if size is None else islice(records, size)):
        yield chunk
