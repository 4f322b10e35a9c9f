"""The broker's double: transactions that are fenced by their id, whose outcome a producer may never hear, or hear too late.

A commit whose answer is late is decided already: it becomes visible by itself later, or at the latest before the next producer
of the same id begins, as Kafka's coordinator has it. Readers see committed messages only.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from processor.errors import Fenced, KafkaError
from processor.model.step import Message


@dataclass(slots=True, kw_only=True)
class Broker:
    """`log`: (time, message) as readers see them. `run`: the one that fenced all others last; `intruded`: by an earlier one."""

    clock: Callable[[], float]
    log: list[tuple[float, Message]] = field(default_factory=list)
    epochs: dict[str, int] = field(default_factory=dict)
    late: list[tuple[float, str, tuple[Message, ...]]] = field(default_factory=list)
    run: int = 0
    intruded: str | None = None

    def init(self, producer: str) -> int:
        """Takes over a transactional id: what was decided lands, what was open is gone."""
        self._land([c for c in self.late if c[1] == producer])
        self.epochs[producer] = self.epochs.get(producer, 0) + 1
        return self.epochs[producer]

    def commit(self, producer: str, epoch: int, messages: Sequence[Message], fault: str | None) -> None:
        """Commits a transaction. Raises Fenced when the id was taken over, KafkaError where `fault` hides the outcome."""
        if self.epochs[producer] != epoch:
            raise Fenced(f"{producer} was taken over")
        if fault == "delivered late":
            self.late.append((self.clock() + 1 + 7 * (len(self.log) % 9), producer, tuple(messages)))
        elif fault != "not delivered":
            self._append(messages)
        if fault is not None:
            raise KafkaError(f"the commit of {producer}: {fault}")

    def tick(self) -> None:
        """Lets land what is due."""
        if self.late:
            self._land([c for c in self.late if c[0] <= self.clock()])

    def _land(self, due: Iterable[tuple[float, str, tuple[Message, ...]]]) -> None:
        for commit in due:
            self.late.remove(commit)
            self._append(commit[2])

    def _append(self, messages: Iterable[Message]) -> None:
        self.log += ((self.clock(), message) for message in messages)
