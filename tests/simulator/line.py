"""An actor's line to the world: every request of a task or a driver goes through it, is recorded, and can be played back.

That is how an actor is suspended without a thread: what it was (a function of plain data) is run again from its beginning, fed
with the answers that it had, and goes on from there for a few requests more. The product's code is deterministic given its
answers, so this is the same actor.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from processor.model.step import Message
from registry.model import Lease
from statestore.keys import Key
from statestore.store import Delete, Done, Item, Outcome, Page, Query, Refused, Write

if TYPE_CHECKING:
    from tests.simulator.world import World

T = TypeVar("T")


class Crash(BaseException):
    """The driver dies here."""


class Pause(BaseException):
    """A suspended actor has used up its turn."""


class TaskLost(Exception):
    """The task's executor is gone, as far as the driver knows."""


class Failure(NamedTuple):
    """An answer that is an error."""

    error: type[Exception]
    text: str


@dataclass(slots=True, kw_only=True)
class Line:
    """`answers`: what was answered so far; `at`: how far it was played back. `quota`: requests until a pause. `doomed`: dies
    after this request. `task`: whether a task speaks, not the driver."""

    world: "World"
    name: str
    zombie: bool = False
    answers: list[Any] = field(default_factory=list)
    at: int = 0
    quota: int | None = None
    doomed: bool = False
    task: bool = False

    @property
    def run(self) -> int:
        """The number of the run that speaks, which its name has."""
        return int(self.name.split()[1])

    @property
    def live(self) -> bool:
        """Whether everything recorded was played back."""
        return self.at == len(self.answers)

    def ask(self, what: str, do: Callable[[str | None], T]) -> T:
        """One request. `do` makes it, told of a fault that concerns the broker."""
        if self.live:
            if self.quota is not None:
                if self.quota <= 0:
                    raise Pause
                self.quota -= 1
            self.answers.append(self.world.request(self, what, do))
            if self.doomed:
                raise Crash
        answer: T = self._answer()
        return answer

    def note(self, look: Callable[[], T]) -> T:
        """Something that is no request, but must be the same when it is played back: the clock, chance."""
        if self.live:
            self.answers.append(look())
        answer: T = self._answer()
        return answer

    def _answer(self) -> Any:
        answer = self.answers[self.at]
        self.at += 1
        if isinstance(answer, Failure):
            raise answer.error(answer.text)
        return answer


class TableClient:
    """The store, as an actor has it."""

    def __init__(self, line: Line) -> None:
        self._line, self._table = line, line.world.table
        self.requests: Counter[str] = Counter()

    def write(self, write: Write) -> Outcome:
        return self._line.ask(f"write {write.key}", lambda _: self._line.world.written(write))

    def delete(self, delete: Delete) -> Done | Refused:
        return self._line.ask(f"delete {delete.key}", lambda _: self._table.delete(delete))

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        found, left = self.some(sorted(keys))
        while left:
            more, left = self.some(left)
            found = {**found, **more}
        return found

    def some(self, keys: list[Key]) -> tuple[dict[Key, Item], list[Key]]:
        """One batched read: what was read, and the keys that were not processed."""
        return self._line.ask("get", lambda _: self._line.world.processed(keys))

    def query(self, query: Query) -> list[Item]:
        size = self._line.world.temper.answer
        if not size:
            return self._line.ask(_asked(query), lambda _: self._table.query(query))
        found, after = self.page(query, None, size)
        while after is not None:
            more, after = self.page(query, after, size)
            found = [*found, *more]
        return found

    def page(self, of: Query | str, after: Key | None, limit: int) -> Page:
        return self._line.ask(_asked(of), lambda _: self._line.world.page(of, after, limit))

    def partition(self, pk: str) -> list[Item]:
        return self._line.ask(f"read {pk}", lambda _: self._table.partition(pk))


def _asked(of: Query | str) -> str:
    return f"read {of}" if isinstance(of, str) else f"query {of.slot} {of.value}"


class Rejects:
    """The dead letter topic, as a task has it."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._messages: list[Message] = []

    def send(self, message: Message) -> None:
        self._messages.append(message)

    def flush(self) -> None:
        sent, self._messages = self._messages, []
        if sent:
            self._line.ask("dead letters", lambda _: self._line.world.rejects.extend(sent))


class ProducerClient:
    """A transactional producer, as a task has it: made, it fences the earlier ones of its id."""

    def __init__(self, line: Line, producer: str) -> None:
        self._line, self._producer = line, producer
        self._messages: list[Message] = []
        self._epoch = line.ask(f"init {producer}", lambda _: line.world.broker.init(producer))

    def send(self, message: Message) -> None:
        self._line.ask(f"send {message.key!r}", lambda _: None)
        self._messages.append(message)  # leaves the producer with the commit

    def flush(self) -> None:
        sent, self._messages = self._messages, []
        if sent:
            self._line.ask(f"commit {self._producer}", lambda fault: self._commit(sent, fault))

    def _commit(self, sent: list[Message], fault: str | None) -> None:
        broker = self._line.world.broker
        broker.commit(self._producer, self._epoch, sent, fault)
        if self._line.run < broker.run:
            broker.intruded = f"run {self._line.run} published after run {broker.run} had fenced it"


class RegistryClient:
    """The registry, as an actor has it: the lease and the attempts."""

    def __init__(self, line: Line) -> None:
        self._line, self._registry = line, line.world.registry

    def holds(self, lease: Lease) -> bool:
        return self._line.ask("lease", lambda _: self._registry.holds(lease))

    def begin_attempt(self, lease: Lease, slot: int, round_: int) -> int | None:
        return self._line.ask(f"attempt {slot}", lambda _: self._registry.begin_attempt(lease, slot, round_))

    def applied(self, lease: Lease, version: int) -> None:
        self._line.ask("applied", lambda _: None)
