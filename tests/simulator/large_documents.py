"""Simulates topics that take only small messages for some time: the limit falls and rises while the job runs.

A job asks for the limit when it starts, and when a topic refuses a message. A document above the limit becomes a dead letter, and
its root is marked in the ledger. At the end the limit has risen for good, and the simulation starts the job once more.
"""

from collections.abc import Callable
from typing import Any

import processor.job.run.worker
from processor.engine.protocol.ledger import group_key, read_entry
from processor.engine.rounds.round import PublishSetup
from processor.errors import TopicRefused
from processor.language.product.product import root_entity
from processor.values import canonical_json
from processor.values.dead_letters import message_bytes
from processor.values.record import MAX_MESSAGE_BYTES, Message
from statestore import keys
from tests.simulator.actor import ProducerClient
from tests.simulator.broker import REJECTS
from tests.simulator.oracle import documents
from tests.simulator.run import Simulation
from tests.simulator.without.switch import replacing

LOW = 330
"""The most bytes of a message while the limit is low. About half of the documents have more."""


class LargeDocumentSimulation(Simulation):
    """A run in which the topics of the products take only small messages some of the time."""

    __slots__ = ("_silence",)

    def run(self) -> None:
        self._silence: str | None = None

        def make_refusing(make: Any) -> Any:
            return lambda *args, **kwargs: _RefusingOutbox(make(*args, **kwargs), self._limit)

        ask = (processor.job.run.worker, "ask_limit", lambda _: lambda *_: self._limit())
        with replacing((processor.job.run.worker, "TransactionalOutbox", make_refusing), ask)():
            super().run()
        self.problem = self.problem or self._silence

    def _limit(self) -> int:
        """The limit now. The actor remembers the answer, so a playback gets the same one."""
        return int(self.world.actor.remember(lambda: MAX_MESSAGE_BYTES if self.facts["high"] else LOW))

    def _start(self) -> None:
        super()._start()
        if self.job is not None:
            limit = MAX_MESSAGE_BYTES if self.facts["high"] else LOW
            self.job.driver.progress.setup = PublishSetup(message_limits=dict.fromkeys(self.shape.plan.products, limit))

    def _act(self) -> bool:
        if not self.facts["cured"] and self.world.rng.random() < 0.05:
            self.facts["high"] = 1 - self.facts["high"]
        if super()._act():
            return True
        if self.facts["cured"]:
            return False
        self._silence = self._find_silence()
        self.facts["cured"] = self.facts["high"] = 1
        self.facts["unfit at the end"] += bool(self.job and self.job.driver.progress.unfit)
        self.end_job()
        return True

    def _find_silence(self) -> str | None:
        """A document that is neither published nor marked or held by the job, with a dead letter; None if there is none."""
        last = {(message.topic, message.key): message.value for _, message in self.world.broker.log}
        letters = {message.key for message in self.world.broker.letters}
        tables, definitions = self.source_tables(), self.shape.definitions
        for product in definitions.products.values():
            root = root_entity(product, definitions.entities)
            for key, document in documents(product, definitions, tables).items():
                shown = last.get((product.topic, key.encode()))
                if shown is not None and canonical_json.loads(shown) == document:
                    continue
                sk = keys.encode([canonical_json.loads(key)[column] for column in root.key]) or ""
                place = self.shape.plan.products[product.name].ledger
                at = group_key(place, sk)
                entry = read_entry(self.world.table.get([at]).get(at), place.number)
                # where no fence is in the store, a zombie's reservation may hide the mark: the job itself still knows the root
                fenced = self.world.conditions.consistent
                held = not fenced and self.job is not None and (product.name, sk) in self.job.driver.progress.unfit
                if not (entry.unfit or held) or key.encode() not in letters:
                    return f"neither published nor marked: {product.topic} {key}"
        return None


class _RefusingOutbox:
    """A producer whose transaction fails if it has a message above the limit of its topic."""

    def __init__(self, outbox: ProducerClient, limit: Callable[[], int]) -> None:
        self._outbox, self._limit = outbox, limit
        self._messages: list[Message] = []

    def send(self, message: Message) -> None:
        self._messages.append(message)
        self._outbox.send(message)

    def flush(self) -> None:
        sent, self._messages = self._messages, []
        limit = self._limit() if sent else 0
        for message in sent:
            if message.topic != REJECTS and message_bytes(message) > limit:
                raise TopicRefused(message.topic, "a message too large", too_large=True)
        self._outbox.flush()
