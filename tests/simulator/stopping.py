"""Products that fail for a while, in the simulator: their documents cannot be made, or their topic refuses them.

The product stays stopped until a start after the cause is gone: one of those that crashes bring, or one more at the end.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import processor.batch
import processor.worker
from processor.errors import TopicRefused
from processor.model.change import Value
from processor.model.document import Gone, Match, Renderer
from processor.model.step import Message
from tests.simulator.line import ProducerClient
from tests.simulator.run import Simulation
from tests.simulator.without.switch import replacing


class Stopping(Simulation):
    """A run in which one product fails now and then; in the end nothing does."""

    __slots__ = ()

    def run(self) -> None:
        rng = Random(f"{self.seed} stopping")
        product = rng.choice(sorted(self.shape.plan.products))
        with self._refused_topic(product) if rng.random() < 0.5 else self._unforeseen_data(product):
            super().run()

    def _act(self) -> bool:
        if not self.facts["cured"] and self.world.rng.random() < 0.1:
            self.facts["failing"] = 1 - self.facts["failing"]
        if super()._act():
            return True
        self.facts["failing"], self.facts["cured"] = 0, 1
        if self.job is None or not self.job.rounds.owed.stopped:
            return False
        self.facts["stopped at the end"] += 1
        self.end_job()
        return True

    def _fails(self) -> bool:
        """Whether the cause is there; as an actor sees it, so that a playback sees the same."""
        return bool(self.world.line.note(lambda: self.facts["failing"]))

    @contextmanager
    def _unforeseen_data(self, product: str) -> Iterator[None]:
        fails = self._fails

        class Unforeseen(Renderer):
            def document(self, top: Match) -> Value | Gone:
                if self.product.name == product and fails():
                    raise ValueError("unforeseen data")
                return Renderer.document(self, top)

        with replacing((processor.batch, "Renderer", lambda _: Unforeseen))():
            yield

    @contextmanager
    def _refused_topic(self, product: str) -> Iterator[None]:
        topic = self.shape.plan.products[product].product.topic

        def made(make: Any) -> Any:
            return lambda *args: _Refused(make(*args), topic, self._fails)

        with replacing((processor.worker, "TransactionalOutbox", made))():
            yield


class _Refused:
    """A producer whose transaction fails if it sends to the topic while that refuses."""

    def __init__(self, outbox: ProducerClient, topic: str, fails: Callable[[], bool]) -> None:
        self._outbox, self._topic, self._fails = outbox, topic, fails
        self._named = False

    def send(self, message: Message) -> None:
        self._named |= message.topic == self._topic
        self._outbox.send(message)

    def flush(self) -> None:
        if self._named and self._fails():
            raise TopicRefused(self._topic, "a message too large")
        self._outbox.flush()
