"""Simulates a source whose transactions change several tables, and products that wait for whole ones.

The records of a transaction lie in several topics. Its end comes late, before its records, or never. After each round the run looks
at the documents that went out: for each transaction of which tasks have read a part, the document must be the same without this
part, unless it had to go out (`at_most`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from random import Random
from typing import Any

from processor.driver.round_runner import RoundRunner
from processor.plan.plan import Plan
from processor.product.gate import Gate
from processor.records import canonical_json
from processor.records.record import Record
from processor.records.source_transaction import TransactionEnd
from processor.rounds.follow_up_stages import release_stage
from tests.simulator.history import Partition
from tests.simulator.partial_transactions import PartialTransactions
from tests.simulator.run import Simulation
from tests.simulator.without.switch import replacing

TOPIC = "transactions"
AT_MOST = 60.0


def transactions_of(seed: int, logs: Mapping[Partition, list[Record]]) -> list[list[Record]]:
    """The records in transactions of one to four, in the order of the source."""
    rng = Random(f"{seed} transactions")
    records = sorted((r for log in logs.values() for r in log), key=lambda r: (r.timestamp, r.topic, r.offset))
    found = []
    while records:
        size = rng.randint(1, 4)
        found.append(records[:size])
        records = records[size:]
    return found


@dataclass(slots=True)
class LateEnds:
    """The feed of the job: the ends of transactions, each from its own moment on. `at`: the moments, None for never."""

    run: "TransactionSimulation"
    ends_at: dict[str, tuple[float | None, TransactionEnd]] = field(default_factory=dict)

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        assert topic == TOPIC
        return self.run.world.actor.remember(
            lambda: [end for at, end in self.ends_at.values() if at is not None and at <= self.run.world.now]
        )

    def close(self) -> None:
        return None


class TransactionSimulation(Simulation):
    """A run in which each record belongs to a transaction of the source."""

    __slots__ = ("partial",)

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
        if self.world.conditions.truncate_chance:
            return Simulation.run(self)
        with replacing((RoundRunner, "run_round", self._looking))():
            return Simulation.run(self)

    def _looking(self, run_round: Any) -> Any:
        """Looks at each document that a round lets through its gate."""
        numbers = {
            (record.topic, record.partition, record.offset): n
            for n, records in enumerate(transactions_of(self.seed, self.logs))
            for record in records
        }
        look = PartialTransactions(self, numbers)
        broker = self.world.broker

        def changed(runner: RoundRunner, stage: Any, work: Any, starts: Any) -> Any:
            held, before = runner.progress.held.held, len(broker.log)
            forced = stage is not release_stage or any(
                held[root].due <= runner.progress.clock.now() for root, _ in chain.from_iterable(work)
            )
            outcome = run_round(runner, stage, work, starts)
            if not forced and not self.world.actor.is_zombie:
                for _, message in broker.log[before:]:
                    self.facts["looked at"] += 1
                    found = look.shown_in(message.topic, message_key_text(message))
                    if found and "partial" not in self.facts:
                        self.facts["partial"] = 1
                        self.partial = found
            return outcome

        return changed

    def _start(self) -> None:
        Simulation._start(self)
        assert self.job is not None
        self.job.driver.transactions = self.feed()

    def feed(self) -> LateEnds:
        """The ends: some early, most late, one in fifteen never."""
        rng, feed = Random(f"{self.seed} ends"), LateEnds(self)
        for n, records in enumerate(transactions_of(self.seed, self.logs)):
            counts: dict[str, int] = {}
            for record in records:
                counts[f"s.{record.topic}"] = counts.get(f"s.{record.topic}", 0) + 1
            at = None if rng.random() < 1 / 15 else rng.choice((0.0, 2.0, 10.0, 30.0))
            feed.ends_at[str(n)] = (at, TransactionEnd(str(n), counts))
        return feed


def _with_transaction(record: Record, block: Mapping[str, Any]) -> bytes:
    source = {"connector": "postgresql", "schema": "s", "table": record.topic}
    if record.value is None:
        key = json.loads(record.key or b"{}")
        return _encoded({"before": key, "after": None, "op": "d", "source": source, "transaction": block})
    if record.value == b"{":
        return record.value
    value = json.loads(record.value)
    if value.get("op") == "t":
        return _encoded(value | {"source": source, "transaction": block})
    return _encoded({"before": None, "after": value, "op": "c", "source": source, "transaction": block})


def message_key_text(message: Any) -> str:
    """The key of a message, as the oracle has it."""
    return canonical_json.dumps(canonical_json.loads(message.key))


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
