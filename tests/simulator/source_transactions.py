"""Simulates a source whose transactions change several tables, and products that wait for whole ones.

The records of a transaction lie in several topics. Its end comes late, before its records, or never. After each round the run
looks at the documents that went out. For each transaction of which tasks have written a part, the document must be the same
without this part, or with the rest, unless it had to go out (`at_most`).
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import chain
from random import Random
from typing import Any, NamedTuple

from processor.engine.plan.plan import Plan
from processor.engine.plan.step import Root
from processor.engine.protocol.gate_items import HeldPortion
from processor.engine.protocol.held_roots import DueRoots, HeldRoots
from processor.engine.rounds.follow_up_stages import release_stage
from processor.engine.rounds.round_runner import RoundRunner
from processor.engine.rounds.write_stage import write_stage
from processor.language.product.product import Gate
from processor.values import canonical_json
from processor.values.record import Record, TransactionEnd
from tests.simulator.history import Partition
from tests.simulator.partial_transactions import PartialTransactions, place_of
from tests.simulator.run import Simulation
from tests.simulator.without.switch import replacing

TOPIC = "transactions"
BROKEN = "broken"
AT_MOST = 60.0
SLACK = 40.0
"""Between two looks at the queue, with the rounds between them."""


def transactions_of(seed: int, logs: Mapping[Partition, list[Record]]) -> list[list[Record]]:
    """The records in transactions of one to four, in the order of the source."""
    rng = Random(f"{seed} transactions")
    records = list(merge(*logs.values(), key=lambda r: r.timestamp))  # keeps the order of each partition
    found = []
    while records:
        size = rng.randint(1, 4)
        found.append(records[:size])
        records = records[size:]
    return found


class SentEnd(NamedTuple):
    """An end of a transaction. `sent`: how many records its source had sent before; `at`: from when on the job can read it."""

    sent: int
    at: float
    end: TransactionEnd


@dataclass(slots=True)
class LateEnds:
    """The feed of the job: the ends of transactions, each from its own moment on."""

    run: "TransactionSimulation"
    sent: list[SentEnd] = field(default_factory=list)

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        assert topic == TOPIC
        return self.run.world.actor.remember(lambda: [one.end for one in self.sent if self._is_there(one)])

    def are_there(self, number: int) -> bool:
        """Whether the job can read all ends of a transaction, and there is one."""
        own = [self._is_there(one) for one in self.sent if one.end.id == str(number)]
        return bool(own) and all(own)

    def close(self) -> None:
        return None

    def _is_there(self, one: SentEnd) -> bool:
        return one.at <= self.run.world.now and one.sent <= self.run.sent


class TransactionSimulation(Simulation):
    """A run in which each record belongs to a transaction of the source."""

    __slots__ = ()

    @staticmethod
    def change_logs(seed: int, logs: dict[Partition, list[Record]]) -> dict[Partition, list[Record]]:
        found = {partition: list(log) for partition, log in logs.items()}
        for n, records in enumerate(transactions_of(seed, logs)):
            orders: dict[str, int] = {}
            for record in records:
                orders[record.topic] = orders.get(record.topic, 0) + 1
                block = {"id": f"{n}:{record.offset}", "data_collection_order": orders[record.topic]}
                log = found[record.topic, record.partition]
                log[record.offset] = replace(record, value=_with_transaction(record, block))
        return found

    @staticmethod
    def is_broken(record: Record) -> bool:
        return bool(json.loads(record.value or b"{}").get("after") == BROKEN)

    def start_plan(self) -> Plan:
        plan = Simulation.start_plan(self)
        entities = {
            name: replace(planned, entity=replace(planned.entity, transactions=TOPIC, source=f"s.{name}"))
            for name, planned in plan.entities.items()
        }
        gate = Gate(whole=True, at_most=AT_MOST)
        products = {
            name: replace(planned, product=replace(planned.product, gate=gate))
            for name, planned in plan.products.items()
        }
        return replace(plan, entities=entities, products=products)

    def run(self) -> None:
        watch = ReleaseWatch(self)
        with replacing(
            (RoundRunner, "run_round", watch.around),
            (HeldRoots, "due", watch.noting),
            (HeldRoots, "add", watch.touched),
        )():
            Simulation.run(self)
        self.problem = self.problem or watch.problem

    def _start(self) -> None:
        Simulation._start(self)
        assert self.job is not None
        self.job.driver.transactions = self.feed()

    def feed(self) -> LateEnds:
        """The ends: some early, most late, one in thirty never."""
        rng, feed = Random(f"{self.seed} ends"), LateEnds(self)
        for n, records in enumerate(transactions_of(self.seed, self.logs)):
            counts = Counter(f"s.{record.topic}" for record in records)
            if rng.random() >= 1 / 30:
                feed.sent.append(SentEnd(0, rng.choice((0.0, 2.0, 10.0, 30.0)), TransactionEnd(str(n), counts)))
        return feed

    @property
    def sent(self) -> int:
        """How many records the source has sent."""
        return sum(self.available.values())

    def copies_with(self, record: Record) -> Collection[int]:
        """The transactions that had ended, and of which the source sends copies when it sends this one, a copy; else empty."""
        return ()


class ReleaseWatch:
    """Looks at each round of a run: whether the documents that go out show a part of a transaction, and whether a root waits
    without need. `read`: the records that ended rounds have read. `since`: when each root began to wait.
    `last_read`: when a round last read some."""

    def __init__(self, run: TransactionSimulation) -> None:
        self.problem: str | None = None
        self._run = run
        self._number_of = {
            (record.topic, record.partition, record.offset): place_of(record)[0]
            for log in run.logs.values()
            for record in log
        }
        self._look = PartialTransactions(run)
        self._read: set[tuple[str, int, int]] = set()
        self._met: dict[int, float] = {}
        self._again: set[int] = set()
        self._last_read = 0.0
        self._incomplete: set[Root] = set()
        self._since: dict[Root, float] = {}

    def around(self, run_round: Any) -> Any:
        """`RoundRunner.run_round`, watched."""

        def changed(runner: RoundRunner, stage: Any, tasks: Any, *args: Any, **kw: Any) -> Any:
            broker, before = self._run.world.broker, len(self._run.world.broker.log)
            roots = [root for root, _ in chain.from_iterable(tasks)] if stage is release_stage else []
            now, held = self._run.world.now, runner.progress.held.held
            patience = AT_MOST - 0.01 - 2 * self._run.world.conditions.max_clock_skew
            late = [root for root in roots if self._since.get(root, now) + patience <= now]
            blocked = [root for root in late if root in self._incomplete]
            records = [*chain.from_iterable(tasks.frame.partitions)] if stage is write_stage else []
            places = {(record.topic, record.partition, record.offset) for record in records}
            for place in places:
                self._met.setdefault(self._number_of[place], now)
            for again in {n for record in records for n in self._run.copies_with(record)} - self._again:
                self._met[again] = now
                self._again.add(again)
            outcome = run_round(runner, stage, tasks, *args, **kw)
            if not self._run.world.actor.is_zombie:
                self._read |= places
                self._last_read = now if places else self._last_read
                for root in roots:
                    self._since.pop(root, None)
                self._check_waits(blocked, held, now)
                if stage is release_stage and not late:
                    self._check_documents([message for _, message in broker.log[before:]], now)
            return outcome

        return changed

    def noting(self, due: Any) -> Any:
        """`HeldRoots.due`, whose answer this notes."""

        def changed(held: HeldRoots, now: float) -> DueRoots:
            found: DueRoots = due(held, now)
            self._incomplete = found.incomplete
            return found

        return changed

    def touched(self, add: Any) -> Any:
        """`HeldRoots.add`, whose roots begin to wait."""

        def changed(held: HeldRoots, portions: Iterable[HeldPortion], now: float) -> Any:
            portions = list(portions)
            if not self._run.world.actor.is_zombie:
                for root in chain.from_iterable(portion.held.roots for portion in portions):
                    self._since.setdefault(root, self._run.world.now)
            return add(held, portions, now)

        return changed

    def _check_waits(self, blocked: Sequence[Root], held: Mapping[Root, Any], now: float) -> None:
        """Each root goes out in time, and early where no transaction is open. Looks at runs without faults or a long pause."""
        over = [root for root, since in self._since.items() if root in held and now > since + AT_MOST + SLACK]
        conditions = self._run.world.conditions
        is_calm = not (conditions.max_faults or conditions.late_events or conditions.tick_chance > 0.2)
        if over and is_calm:
            wait = now - self._since[over[0]]
            self.problem = self.problem or f"{over[0]} waits for longer than at_most: {wait:.1f} s"
        open_ones = (self._is_open(n, now) for n in set(self._number_of.values()))
        may_know = now > self._last_read or not self._run.facts["sent again"]  # the job asks in its next turn
        if blocked and is_calm and may_know and not any(open_ones):
            self.problem = self.problem or f"{blocked[0]} waited for at_most, and no transaction is open"

    def _check_documents(self, messages: Sequence[Any], now: float) -> None:
        patience = AT_MOST - 0.01 - 2 * self._run.world.conditions.max_clock_skew
        waited_for = [n for n in set(self._number_of.values()) if now < self._met.get(n, now) + patience]
        for message in messages:
            self._run.facts["looked at"] += 1
            found = self._look.shown_in(message.topic, message_key_text(message), waited_for)
            self.problem = self.problem or found

    def _is_open(self, number: int, now: float) -> bool:
        """Whether a part of the transaction is read, and not all, or its end is not known, or too late."""
        if self._met.get(number, now) + 2 * AT_MOST < now:
            return True
        places = [place for place, of in self._number_of.items() if of == number]
        is_known = self._run.feed().are_there(number)
        return any(place in self._read for place in places) and not (
            is_known and all(place in self._read for place in places)
        )


def _with_transaction(record: Record, block: Mapping[str, Any]) -> bytes:
    source = {"connector": "postgresql", "schema": "s", "table": record.topic}
    if record.value is None:
        key = json.loads(record.key or b"{}")
        return _encoded({"before": key, "after": None, "op": "d", "source": source, "transaction": block})
    if record.value == b"{":  # a record that names its transaction, and no row
        return _encoded({"before": None, "after": BROKEN, "op": "c", "source": source, "transaction": block})
    value = json.loads(record.value)
    if value.get("op") == "t":
        return _encoded(value | {"source": source, "transaction": block})
    return _encoded({"before": None, "after": value, "op": "c", "source": source, "transaction": block})


def message_key_text(message: Any) -> str:
    """The key of a message, as the oracle has it."""
    return canonical_json.dumps(canonical_json.loads(message.key))


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
