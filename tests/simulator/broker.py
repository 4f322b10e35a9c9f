"""A double of the broker: transactions that the broker fences by their id. A producer may not get the outcome of a commit, or get
it too late.

A late commit is already decided. It becomes visible later, at the latest before the next producer of the same id begins, as
Kafka's coordinator does it. Readers see only committed messages.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from processor.environment.settings.settings import Settings
from processor.errors import Fenced, KafkaError
from processor.values.record import Message

REJECTS = Settings().dead_letter_topic


@dataclass(slots=True, kw_only=True)
class Broker:
    """`log`: (time, message) as readers see them; `letters`: those of the dead letter topic. `epochs`: of each transactional
    id. `late_commits`: (time, transactional id, messages). `newest_run`: the run that fenced all others last. `violation`: a
    run that published after it was fenced."""

    clock: Callable[[], float]
    log: list[tuple[float, Message]] = field(default_factory=list)
    letters: list[Message] = field(default_factory=list)
    epochs: dict[str, int] = field(default_factory=dict)
    late_commits: list[tuple[float, str, tuple[Message, ...]]] = field(default_factory=list)
    newest_run: int = 0
    violation: str | None = None

    def init_transactions(self, transactional_id: str) -> int:
        """Fences the earlier producers of an id; returns the epoch of the new one. Decided commits become visible before; an
        open transaction is lost."""
        self._finish([c for c in self.late_commits if c[1] == transactional_id])
        self.epochs[transactional_id] = self.epochs.get(transactional_id, 0) + 1
        return self.epochs[transactional_id]

    def commit(self, transactional_id: str, epoch: int, messages: Sequence[Message], fault: str | None) -> None:
        """Commits a transaction. Raises Fenced if a newer producer has the id, KafkaError if `fault` hides the outcome."""
        if self.epochs[transactional_id] != epoch:
            raise Fenced(f"{transactional_id} was taken over")
        if fault == "delivered late":
            self.late_commits.append((self.clock() + 1 + 7 * (len(self.log) % 9), transactional_id, tuple(messages)))
        elif fault != "not delivered":
            self._append(messages)
        if fault is not None:
            raise KafkaError(f"the commit of {transactional_id}: {fault}")

    def finish_late_commits(self) -> None:
        """Makes the late commits visible whose time has come."""
        if self.late_commits:
            self._finish([c for c in self.late_commits if c[0] <= self.clock()])

    def _finish(self, due: Iterable[tuple[float, str, tuple[Message, ...]]]) -> None:
        for commit in due:
            self.late_commits.remove(commit)
            self._append(commit[2])

    def _append(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if message.topic == REJECTS:
                self.letters.append(message)
            else:
                self.log.append((self.clock(), message))
