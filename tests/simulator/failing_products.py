"""Simulates a product that fails for some time: its documents cannot be made, its topic refuses them, or its schema.

The product stays stopped until the job starts again after the cause has gone. A crash may bring this start; at the end the
simulation starts the job once more.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import processor.engine.rounds.publish_stage
import processor.job.run.worker
from processor.engine.rounds.round import PublishSetup
from processor.errors import TopicRefused
from processor.language.product.document import Gone, Match, Renderer
from processor.values.record import Message
from tests.simulator.actor import ProducerClient
from tests.simulator.run import Simulation
from tests.simulator.without.switch import replacing


class FailingProductSimulation(Simulation):
    """A run in which one product fails some of the time. At the end the cause has gone for good."""

    __slots__ = ()

    def run(self) -> None:
        rng = Random(f"{self.seed} stopping")
        product = rng.choice(sorted(self.shape.plan.products))
        with self._refused_topic(product) if rng.random() < 0.5 else self._unexpected_data(product):
            super().run()

    def _act(self) -> bool:
        if not self.facts["cured"] and self.world.rng.random() < 0.1:
            self.facts["failing"] = 1 - self.facts["failing"]
        if super()._act():
            return True
        self.facts["failing"], self.facts["cured"] = 0, 1
        if self.job is None or not self.job.driver.progress.backlog.stopped:
            return False
        self.facts["stopped at the end"] += 1
        self.end_job()
        return True

    def _fails(self) -> bool:
        """Whether the cause is there. The actor remembers the answer, so a playback gets the same one."""
        return bool(self.world.actor.remember(lambda: self.facts["failing"]))

    @contextmanager
    def _unexpected_data(self, product: str) -> Iterator[None]:
        fails = self._fails

        class FailingRenderer(Renderer):
            def text(self, top: Match) -> str | Gone:
                if self.product.name == product and fails():
                    raise ValueError("unexpected data")
                return Renderer.text(self, top)

        with replacing((processor.engine.rounds.publish_stage, "Renderer", lambda _: FailingRenderer))():
            yield

    @contextmanager
    def _refused_topic(self, product: str) -> Iterator[None]:
        topic = self.shape.plan.products[product].product.topic

        def make_refusing(make: Any) -> Any:
            return lambda *args, **kwargs: _RefusingOutbox(make(*args, **kwargs), topic, self._fails)

        with replacing((processor.job.run.worker, "TransactionalOutbox", make_refusing))():
            yield


class UnreadyProductSimulation(FailingProductSimulation):
    """A run in which some starts of the job find that one product is not ready, because a registry refuses its schema."""

    __slots__ = ("product",)

    def run(self) -> None:
        self.product = Random(f"{self.seed} stopping").choice(sorted(self.shape.plan.products))
        Simulation.run(self)

    def _start(self) -> None:
        super()._start()
        assert self.job is not None
        if self.facts["failing"]:
            self.job.driver.progress.setup = PublishSetup(unready={self.product: "the registry refuses its schema"})
            self.facts["unready"] += 1
        self._run_driver(self.job, lambda job: job.driver.adopt(job.driver.plan))


class _RefusingOutbox:
    """A producer whose transaction fails if it has a message for the topic while the topic refuses messages."""

    def __init__(self, outbox: ProducerClient, topic: str, fails: Callable[[], bool]) -> None:
        self._outbox, self._topic, self._fails = outbox, topic, fails
        self._has_message = False

    def send(self, message: Message) -> None:
        self._has_message |= message.topic == self._topic
        self._outbox.send(message)

    def flush(self) -> None:
        if self._has_message and self._fails():
            raise TopicRefused(self._topic, "a message too large")
        self._outbox.flush()
