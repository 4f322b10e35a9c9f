"""An actor: a driver or a task whose requests the world records, and can play back.

So the world suspends an actor without a thread. It runs the actor's function again from the beginning, with the answers that the
actor had. Then the actor continues for some requests more. The code depends only on its answers, so this is the same actor.

The clients here are doubles of the job's clients. They send every request through the actor that runs.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from processor.values.record import Message
from registry.model import Lease, LetterOutcome, Snapshot, WaitingLetters
from statestore.keys import Key
from statestore.store import (
    Delete,
    Done,
    Item,
    Page,
    Query,
    Read,
    Refused,
    Write,
    WriteOutcome,
    read_alone,
    write_alone,
)

if TYPE_CHECKING:
    from tests.simulator.world import World

T = TypeVar("T")
KeyRead = Callable[[Collection[Key]], dict[Key, Item]]
"""The strongly consistent read of keys, or the weak one."""


class Crash(BaseException):
    """The process of the driver dies here."""


class Pause(BaseException):
    """A suspended actor has used its turn."""


class TaskLost(Exception):
    """The driver believes that the task's executor is gone."""


class JobFailed(Exception):
    """A task failed as often as Spark tries it."""


class Stuck(Exception):
    """The run does not end."""


class Failure(NamedTuple):
    """An answer that is an error."""

    error: type[Exception]
    text: str


@dataclass(slots=True, kw_only=True)
class Actor:
    """An actor, and the answers to its requests. `next_answer`: the index of the next answer to play back.
    `requests_left`: until the actor pauses; None means that it never pauses. `dies`: whether the actor dies after its next
    request. `in_task`: whether a task acts, and not the driver."""

    world: "World"
    name: str
    is_zombie: bool = False
    answers: list[Any] = field(default_factory=list)
    next_answer: int = 0
    requests_left: int | None = None
    dies: bool = False
    in_task: bool = False

    @property
    def run_number(self) -> int:
        """The number of the actor's run, which is part of its name."""
        return int(self.name.split()[1])

    @property
    def caught_up(self) -> bool:
        """Whether all recorded answers are played back."""
        return self.next_answer == len(self.answers)

    def request(self, name: str, send: Callable[[str | None], T]) -> T:
        """Makes one request. `send` sends it, and gets the fault if the broker has one at this request."""
        if self.caught_up:
            if self.requests_left is not None:
                if self.requests_left <= 0:
                    raise Pause
                self.requests_left -= 1
            self.answers.append(self.world.request(self, name, send))
            if self.dies:
                raise Crash
        answer: T = self._play_back()
        return answer

    def remember(self, compute: Callable[[], T]) -> T:
        """Computes a value that is no request but must be the same at playback, such as the time or a random number."""
        if self.caught_up:
            self.answers.append(compute())
        answer: T = self._play_back()
        return answer

    def _play_back(self) -> Any:
        answer = self.answers[self.next_answer]
        self.next_answer += 1
        if isinstance(answer, Failure):
            raise answer.error(answer.text)
        return answer


class TableClient:
    """The store of an actor."""

    def __init__(self, actor: Actor) -> None:
        self._actor, self._table = actor, actor.world.table
        self.requests: Counter[str] = Counter()
        self.spent: Counter[str] = Counter()

    def read(self, reads: Sequence[Read]) -> list[Page]:
        store: Any = self
        return [read_alone(store, read) for read in reads]

    def write_all(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        store: Any = self
        return [write_alone(store, request) for request in requests]

    @property
    def consistent(self) -> bool:
        return self._actor.world.conditions.consistent

    def write(self, write: Write) -> WriteOutcome:
        return self._actor.request(f"write {write.key}", lambda _: self._checked().write(write))

    def delete(self, delete: Delete) -> Done | Refused:
        return self._actor.request(f"delete {delete.key}", lambda _: self._checked().table.delete(delete))

    def _checked(self) -> "World":
        """The world, if it takes writes of this actor's run."""
        self._actor.world.fence.check(self._actor.run_number)
        return self._actor.world

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        return self._get_all(self._table.get, keys)

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        return self._get_all(self._table.get_weak, keys)

    def _get_all(self, read: KeyRead, keys: Collection[Key]) -> dict[Key, Item]:
        found, unprocessed = self.get_once(read, sorted(keys))
        while unprocessed:
            more, unprocessed = self.get_once(read, unprocessed)
            found = {**found, **more}
        return found

    def get_once(self, read: KeyRead, keys: list[Key]) -> tuple[dict[Key, Item], list[Key]]:
        """One batched read; returns the items, and the keys that were not processed."""
        return self._actor.request("get", lambda _: self._actor.world.get(read, keys))

    def query(self, query: Query) -> list[Item]:
        size = self._actor.world.conditions.index_page
        if not size or query.name:  # in an order, a page has no beginning behind a key
            return self._actor.request(_request_name(query), lambda _: self._table.query(query))
        found, after = self.page(query, None, size)
        while after is not None:
            more, after = self.page(query, after, size)
            found = [*found, *more]
        return found

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        return self._actor.request(_request_name(source), lambda _: self._actor.world.page(source, after, limit))

    def partition(self, pk: str) -> list[Item]:
        return self._actor.request(f"read {pk}", lambda _: self._table.partition(pk))


def _request_name(source: Query | str) -> str:
    return f"read {source}" if isinstance(source, str) else f"query {source.slot} {source.value}"


class DeadLetterOutbox:
    """The dead letter topic of a task."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._messages: list[Message] = []

    def send(self, message: Message) -> None:
        self._messages.append(message)

    def flush(self) -> None:
        sent, self._messages = self._messages, []
        if sent:
            self._actor.request("dead letters", lambda _: self._actor.world.dead_letters.extend(sent))


class ProducerClient:
    """The transactional producer of a task. A new one fences the earlier producers of its transactional id."""

    def __init__(self, actor: Actor, transactional_id: str) -> None:
        self._actor, self._id = actor, transactional_id
        self._messages: list[Message] = []
        self._epoch = actor.request(
            f"init {transactional_id}", lambda _: actor.world.broker.init_transactions(transactional_id)
        )

    def send(self, message: Message) -> None:
        self._actor.request(f"send {message.key!r}", lambda _: None)
        self._messages.append(message)  # the broker gets the messages with the commit

    def flush(self) -> None:
        sent, self._messages = self._messages, []
        if sent:
            self._actor.request(f"commit {self._id}", lambda fault: self._commit(sent, fault))

    def _commit(self, sent: list[Message], fault: str | None) -> None:
        broker = self._actor.world.broker
        broker.commit(self._id, self._epoch, sent, fault)
        if self._actor.run_number < broker.newest_run:
            broker.violation = f"run {self._actor.run_number} published after run {broker.newest_run} had fenced it"


class RegistryClient:
    """The registry of an actor: the lease, the attempts, and the requests of replays."""

    def __init__(self, actor: Actor) -> None:
        self._actor, self._registry = actor, actor.world.registry

    def holds(self, lease: Lease) -> bool:
        return self._actor.request("lease", lambda _: self._registry.holds(lease))

    def begin_attempt(self, lease: Lease, lane: int, round_: int) -> int | None:
        return self._actor.request(f"attempt {lane}", lambda _: self._registry.begin_attempt(lease, lane, round_))

    def applied(self, lease: Lease, version: int) -> None:
        self._actor.request("applied", lambda _: self._registry.applied(lease, version))

    def snapshot(self) -> Snapshot:
        return self._actor.request("registry", lambda _: self._registry.snapshot)

    def advance(self, lease: Lease, version: int, *, proven: frozenset[str], published: frozenset[str]) -> None:
        def send(_: str | None) -> None:
            self._registry.advance(lease, version, proven=proven, published=published)

        self._actor.request("registry advances", send)

    def next_letters(self, most: int) -> WaitingLetters | None:
        return self._actor.request("replay request", lambda _: self._registry.next_letters(most))

    def note(self, lease: Lease, request: int, outcomes: Collection[LetterOutcome]) -> None:
        self._actor.request("note replays", lambda _: self._registry.note(lease, request, outcomes))
