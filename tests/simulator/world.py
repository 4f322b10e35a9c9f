"""The world of one run: the clock, the table, the broker, the registry, and whoever lives in it. It decides what goes wrong.

Before each request of a living actor time may pass, zombies may go on, and a fault may strike. Nothing here knows the protocol.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from processor.errors import Fenced, KafkaError
from processor.model.step import Message
from statestore.errors import Transient
from statestore.keys import Key
from statestore.store import Done, Item, Outcome, Page, Query, Write
from tests.simulator.broker import Broker
from tests.simulator.leases import Registry
from tests.simulator.line import Crash, Failure, Line, Pause, TaskLost
from tests.simulator.shapes import STAMP
from tests.simulator.table import LateTable
from tests.simulator.temper import S, Temper, W

EXPECTED = (Fenced, KafkaError, Transient, TaskLost)
"""What a task or a driver may fail of in a world that is not to blame."""
BROKER_FAULTS = ("acknowledgement lost", "delivered late", "not delivered")
MAX_REQUESTS = 20_000


class JobFailed(Exception):
    """A task failed as often as Spark tries it."""


class Stuck(Exception):
    """The run does not end."""


@dataclass(slots=True, kw_only=True)
class Suspended:
    """An actor that goes on later: what it does, and the answers that it had. `wake`: when at the earliest.
    `life`: turns until it ends."""

    name: str
    body: Callable[[], Any]
    answers: list[Any]
    wake: float = 0.0
    life: int = 10_000
    task: bool = False
    zombie: bool = True
    result: Any = None
    done: bool = False


@dataclass(slots=True, kw_only=True)
class World:
    """One run's world. `lines`: the actors that speak, the innermost last. `written_at`: when stamped versions were written.
    `skew`: of the clock of the job that runs."""

    rng: Random
    temper: Temper
    slots: int
    trace: list[str] | None = None
    now: float = 0.0
    skew: float = 0.0
    requests: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    left: int = field(init=False)
    zombies: list[Suspended] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    rejects: list[Message] = field(default_factory=list)
    registry: Registry = field(default_factory=Registry)
    written_at: dict[tuple[Key, int], float] = field(default_factory=dict)
    table: LateTable = field(init=False)
    broker: Broker = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.temper.faults
        self.broker = Broker(clock=lambda: self.now)
        pick = (lambda: 0) if self.temper.replicas == 1 else lambda: self.rng.randrange(self.temper.replicas)
        self.table = LateTable(self.slots, clock=lambda: self.now, lags=self._lags, pick=pick)

    @property
    def line(self) -> Line:
        """The actor that speaks."""
        return self.lines[-1]

    @contextmanager
    def on(self, line: Line) -> Iterator[Line]:
        self.lines.append(line)
        try:
            yield line
        finally:
            self.lines.pop()

    def say(self, text: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.now:7.1f} {text}")

    # requests

    def request(self, line: Line, what: str, do: Callable[[str | None], Any]) -> Any:
        """One request of `line`; its answer, or what failed."""
        self.requests += 1
        if self.requests > MAX_REQUESTS:
            raise Stuck
        rnd = self.rng.random
        if rnd() < self.temper.tick:
            self.now += self.rng.choice((0.1, 0.5, 1.0, 3.0))
        if self.broker.late:
            self.broker.tick()
        fault = None
        if not line.zombie:
            while self.zombies and rnd() < self.temper.acts and self._wake_one():
                pass
            likely = self.temper.fault * (4 if what.startswith("commit") else 1)
            if self.left and what.startswith(self.temper.aim) and rnd() < likely:
                fault = self._fault(line, what)
        if fault is not None:
            self.left -= 1
            self.faults[fault] += 1
            self.say(f"{line.name} {what}: FAULT {fault}")
        return self._answered(line, what, do, fault)

    def written(self, write: Write) -> Outcome:
        """One write, noted when it wrote a new version of a row."""
        outcome = self.table.write(write)
        if isinstance(outcome, Done) and isinstance(write.set.get(STAMP), int):  # not one that the change left out
            self.written_at.setdefault((write.key, write.set[STAMP]), self.now)
        return outcome

    def processed(self, keys: list[Key]) -> tuple[dict[Key, Item], list[Key]]:
        """One batched read, which may leave keys unprocessed."""
        shed = self.temper.unprocessed and self.rng.random() < self.temper.unprocessed
        n = self.rng.randrange(len(keys)) if shed and keys else len(keys)
        return self.table.get(keys[:n]), keys[n:]

    def page(self, of: Query | str, after: Key | None, limit: int) -> Page:
        """One page of an index query, by whichever replica, or of edges; now and then an empty one that is not the last."""
        if self.temper.answer and self.rng.random() < 0.2:
            return Page([], after or Key("", ""))
        return self.table.page(of, after, limit)

    def _answered(self, line: Line, what: str, do: Callable[[str | None], Any], fault: str | None) -> Any:
        match fault:
            case "crash before":
                raise Crash
            case "crash after":
                line.doomed = True
            case "task lost":
                return Failure(TaskLost, what)
            case "throttled":
                return Failure(Transient, what)
        try:
            answer = do(fault if fault in BROKER_FAULTS else None)
            if fault == "sent again":
                answer = do(None)
        except EXPECTED as error:
            answer = Failure(type(error), str(error))
        if self.trace is not None and not what.startswith(("get", "query", "lease")):
            self.say(f"{line.name} {what}: {answer}"[:230])
        return Failure(Transient, what) if fault == "answer lost" else answer

    def _fault(self, line: Line, what: str) -> str | None:
        table = not what.startswith(("lease", "attempt", "applied", "init", "commit", "send", "dead"))
        possible = {
            "crash before": True,
            "crash after": True,
            "task lost": line.task,
            "throttled": table,
            "answer lost": table,
            "sent again": what.startswith("write"),
            **dict.fromkeys(BROKER_FAULTS, what.startswith("commit")),
        }
        kinds = [kind for kind, may in possible.items() if may and self.temper.kinds.get(kind)]
        return self.rng.choices(kinds, [self.temper.kinds[k] for k in kinds])[0] if kinds else None

    def _lags(self) -> list[float]:
        """How late each replica shows a write: they differ by less than W."""
        r, lag, n = self.rng, self.temper.lag, self.temper.replicas
        if lag == "none":
            return [0.0] * n
        x = r.random()
        if lag == "short" or x < 0.4:
            base = r.random() * W
        elif lag == "mid" or x < 0.6:
            base = W + r.random() * (2 * S - W)
        else:
            base = S + r.random() * 7 * S
        others = [base] if n == 1 else [base, base + r.random() * W * 0.99]
        return [min(t, W * 0.99) for t in others] if lag == "short" else others

    # actors

    def stage(self, tasks: Sequence[Callable[[], list[Any]]]) -> list[list[Any]]:
        """Runs the tasks of a stage, in any order, or by turns."""
        line = self.line
        by_turns = line.note(lambda: len(tasks) > 1 and not line.zombie and self.rng.random() < self.temper.interleaved)
        if by_turns:
            try:
                return line.note(lambda: self._by_turns(tasks))
            except BaseException:
                line.answers[line.at - 1] = False  # a zombie of this driver does them one after the other
                raise
        order = line.note(lambda: self.rng.sample(range(len(tasks)), len(tasks)))
        results = {i: self._task(tasks[i], f"{line.name} task {i}") for i in order}
        return [results[i] for i in range(len(tasks))]

    def lose(self, name: str, body: Callable[[], Any], answers: list[Any], *, task: bool) -> None:
        """What is lost may live on."""
        if self.rng.random() < self.temper.zombie:
            wake = self.now + self.rng.choice((0, 0, 3, 60))
            life = self.rng.choice((2, 10, 100))
            zombie = Suspended(name=f"{name} (zombie)", body=body, answers=answers, wake=wake, life=life, task=task)
            self.zombies.append(zombie)
            self.faults["zombie task" if task else "zombie job"] += 1

    def bury(self) -> None:
        """Lets the zombies go on to their ends."""
        self.now = max(self.now, *(z.wake for z in self.zombies))
        while self._wake_one():
            pass

    def _task(self, body: Callable[[], list[Any]], name: str) -> list[Any]:
        """One task, tried again as often as Spark does."""
        line = self.line
        for tried in range(self.temper.retries + 1):
            start, line.task = line.at, True
            try:
                return body()
            except EXPECTED as error:
                self.say(f"{name} failed: {error!r}")
                if line.live and not line.zombie and isinstance(error, TaskLost):
                    self.lose(f"{name}.{tried}", body, line.answers[start : line.at - 1], task=True)
            finally:
                line.task = False
        raise JobFailed(name)

    def _by_turns(self, tasks: Sequence[Callable[[], list[Any]]]) -> list[list[Any]]:
        """All tasks at the same time, request by request."""
        name = self.line.name
        running = [
            Suspended(name=f"{name} task {i}", body=t, answers=[], zombie=False, task=True) for i, t in enumerate(tasks)
        ]
        left = dict.fromkeys(range(len(tasks)), self.temper.retries)
        try:
            while waiting := [i for i, task in enumerate(running) if not task.done]:
                i = self.rng.choice(waiting)
                failed = self._advance(running[i], self.rng.randint(1, 4))
                if failed is not None:
                    if not left[i]:
                        raise JobFailed(running[i].name)
                    left[i] -= 1
                    if isinstance(failed, TaskLost):
                        self.lose(running[i].name, tasks[i], running[i].answers[:-1], task=True)
                    again = f"{name} task {i}.{left[i]}"
                    running[i] = Suspended(name=again, body=tasks[i], answers=[], zombie=False, task=True)
        except (Crash, JobFailed):
            for i, task in enumerate(running):
                if not task.done:
                    self.lose(task.name, tasks[i], task.answers, task=True)
            raise
        return [task.result for task in running]

    def _advance(self, actor: Suspended, quota: int) -> Exception | None:
        """Lets an actor go on for some requests; returns what it failed of."""
        line = Line(
            world=self, name=actor.name, zombie=actor.zombie, answers=actor.answers, quota=quota, task=actor.task
        )
        with self.on(line):
            try:
                actor.result = actor.body()
            except Pause:
                return None
            except EXPECTED as error:
                actor.done = True
                return error
            except JobFailed:
                pass
        actor.done = True
        return None

    def _wake_one(self) -> bool:
        awake = [z for z in self.zombies if z.wake <= self.now]
        if not awake:
            return False
        zombie = self.rng.choice(awake)
        zombie.life -= 1
        self._advance(zombie, self.rng.randint(1, 6))
        if zombie.done or zombie.life <= 0:
            self.say(f"{zombie.name} ends")
            self.zombies.remove(zombie)
        return True
