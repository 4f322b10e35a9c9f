"""`statestore try`: the same steps in one process, over the memory store, without Spark: for authors of products and for tests.

Records are taken in file order, so many a batch; the file's own offsets count, so a repeated offset is a replay. Ends when all
is worked off. Starts in milliseconds: imports no pyspark, boto3, SQLAlchemy or confluent_kafka.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice

from processor.account import check_account
from processor.batch import Round, publish_part, resume_part, settle_part, tidy, write_part
from processor.lockstep import Lockstep
from processor.model.change import Record
from processor.model.fan_out import FanOut, FanOuts
from processor.model.ledger import Run, end_round
from processor.model.open_changes import OpenChanges
from processor.model.owed import Owed
from processor.model.plan import Plan
from processor.model.step import Message
from processor.model.touch import Root
from processor.settings import Settings
from statestore.memory import MemoryStore
from statestore.store import Delete, Store, Write

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
    """A job in this process, on a virtual clock: each batch is one second. `lag`: how late every index answers, in seconds.
    `pool`: threads for another `store` that is faster in parallel. `published` and `rejects` hold what it sent, `owed.stopped`
    names the products that failed."""

    plan: Plan
    settings: Settings
    lag: float = 0.0
    now: float = 0.0
    published: MemoryOutbox = field(default_factory=MemoryOutbox)
    rejects: MemoryOutbox = field(default_factory=MemoryOutbox)
    pool: ThreadPoolExecutor | None = None
    tally: Counter[str] = field(default_factory=Counter)
    run: Run = field(default_factory=lambda: Run(number=1))
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    store: Store = field(init=False)
    open: OpenChanges = field(init=False)
    fan_outs: FanOuts = field(init=False)
    owed: Owed = field(init=False)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.settings.slots, lag=self.lag, clock=lambda: self.now)
        self.fan_outs = FanOuts(products=self.plan.products, run=self.run.number)
        self.owed = Owed(products=self.plan.products, run=self.run.number)
        self.open = OpenChanges(wait=self.settings.wait_seconds, settle=self.settings.settle_seconds)

    def batch(self, records: Iterable[Record]) -> Counter[str]:
        """One micro-batch, from its records to its published documents; a second passes. `settle` comes between batches."""
        before = self.store.requests.copy()
        round_ = self._round(batch=self.tally["batches"])
        lockstep = self._lockstep(self.rejects)
        written = write_part(records, round_, lockstep, self.rejects)
        for item, entries in written.opened.items():
            self.open.opened(item, entries, self.now)
        tally = written.tally + self._publish(written.roots, round_)
        self._keep_rest(written.rest)
        check_account(tally, self.settings)
        self.ends.update({at: max(end, self.ends.get(at, 0)) for at, end in written.ends.items()})
        tally["batches"] = 1
        tally.update({f"request {name}": n for name, n in (self.store.requests - before).items()})
        self.tally.update(tally)
        self.now += 1
        return tally

    def settle(self) -> None:
        """Settles the open changes that are due now, closes those that were shown long enough, and goes on with fan-outs."""
        before = self.store.requests.copy()
        round_ = self._round(batch=max(0, self.tally["batches"] - 1))
        if due := self.open.due(self.now):
            outcomes, found = settle_part(due, self.plan, self._lockstep(self.rejects))
            tally = self._publish(found.roots, round_)
            self._keep_rest(found.rest)
            self.tally["settled"] += len(due)
            self.tally["corrections"] += tally.pop("published", 0)
            self.open.settled(outcomes, self.now)
        tidy(self.open, self.store, self.run.number, round_.number, self.now)
        self._fan_out()
        self.tally.update({f"request {name}": n for name, n in (self.store.requests - before).items()})

    def finish(self) -> None:
        """Lets time pass until all settle work is done."""
        while (due := self.open.next_due()) is not None or self.fan_outs.held:
            if due is not None and not self.fan_outs.held:
                self.now = max(self.now, due)
            self.settle()

    def _fan_out(self) -> None:
        if todo := self.fan_outs.next():
            round_ = self._round(batch=max(0, self.tally["batches"] - 1))
            resumed, found = resume_part(todo, self.plan, self._lockstep(self.rejects))
            tally = self._publish(found.roots, round_)
            self._keep_rest(found.rest)
            for each in resumed:
                self._keep(self.fan_outs.moved(each))
            self.tally.update(tally)
            self.tally["fan-out pages"] += len(todo)

    def _keep_rest(self, rest: Iterable[FanOut]) -> None:
        for fan_out in rest:
            self._keep(self.fan_outs.asked(fan_out))

    def _keep(self, request: Write | Delete) -> None:
        if isinstance(request, Write):
            self.store.write(request)
        else:
            self.store.delete(request)

    def _round(self, batch: int) -> Round:
        return Round(
            plan=self.plan,
            run=self.run,
            number=self.run.through + 1,
            batch=batch,
            starts=self.ends,
            forget=int(self.now) + MARKER_SECONDS,
            rejects=self.settings.rejects_topic,
            stopped=frozenset(self.owed.stopped),
        )

    def _lockstep(self, outbox: MemoryOutbox) -> Lockstep:
        places = (self.open.places,)
        return Lockstep(store=self.store, outbox=outbox, open=places, pool=self.pool, page=self.settings.fan_out_page)

    def _publish(self, roots: Iterable[Root], round_: Round) -> Counter[str]:
        sent = publish_part(roots, round_, 0, 0, self._lockstep(self.published))
        self.run = replace(self.run, through=round_.number)
        if sent.tally["published"]:
            self.store.write(end_round(self.run))
        self.owed.failed(sent.failed)
        for request in self.owed.asked(round_.number, sent.owed):
            self.store.write(request)
        return sent.tally


def batches(records: Iterable[Record], size: int | None) -> Iterator[list[Record]]:
    """The records in batches of `size`; all at once without one."""
    records = iter(records)
    while chunk := list(records if size is None else islice(records, size)):
        yield chunk
