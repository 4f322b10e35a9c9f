"""The world of one run: the clock, the table, the broker, the registry and the actors. The world decides which faults happen.

Before each request of an actor time may pass, zombies may continue, and a fault may happen. This module does not know the
protocol of the job.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from processor.errors import Fenced, KafkaError
from processor.values.record import Message
from registry.errors import LeaseLost, SnapshotOutdated
from statestore.keys import Key
from statestore.store import Done, FencedWrite, Item, Page, Query, Transient, Write, WriteOutcome
from tests.simulator.actor import Actor, Crash, Failure, JobFailed, KeyRead, Pause, Stuck, TaskLost
from tests.simulator.broker import Broker
from tests.simulator.conditions import Conditions, S, W
from tests.simulator.fence import WriteFence
from tests.simulator.leases import Registry
from tests.simulator.shapes import STAMP
from tests.simulator.suspended_actor import SuspendedActor
from tests.simulator.table import LateTable

EXPECTED = (Fenced, KafkaError, Transient, FencedWrite, TaskLost, LeaseLost, SnapshotOutdated)
"""The errors that a fault may cause in a task or a driver."""
READS = ("get", "query", "read ", "lease", "attempt", "init", "send", "replay request")
"""How the names of requests begin that make nothing durable."""
BROKER_FAULTS = ("acknowledgement lost", "delivered late", "not delivered")
MAX_REQUESTS = 60_000
"""A run with more is stuck. Forty products with eighty edits took 21,238."""


@dataclass(slots=True, kw_only=True)
class World:
    """The world of one run. `slots`: of the table. `trace`: lines of text about the run, or None. `now`: virtual seconds. `skew`:
    of the clock of the present job's machine. `requests`: how many there were. `faults`: how many of each kind.
    `actors`: those that act now, the innermost last. `written_at`: the time at which each stamped version was written. `durable`:
    the kind of the last durable request; `instants`: how many there were before each kind of request. `row_lags`: of the rows in
    the indexes, where each row has its own."""

    rng: Random
    conditions: Conditions
    slots: int
    trace: list[str] | None = None
    now: float = 0.0
    skew: float = 0.0
    requests: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    faults_left: int = field(init=False)
    zombies: list[SuspendedActor] = field(default_factory=list)
    actors: list[Actor] = field(default_factory=list)
    dead_letters: list[Message] = field(default_factory=list)
    registry: Registry = field(init=False)
    written_at: dict[tuple[Key, int], float] = field(default_factory=dict)
    fence: WriteFence = field(default_factory=WriteFence)
    durable: str = ""
    instants: Counter[str] = field(default_factory=Counter)
    row_lags: dict[tuple[Key, str], float] = field(default_factory=dict)
    table: LateTable = field(init=False)
    broker: Broker = field(init=False)

    def __post_init__(self) -> None:
        self.faults_left = self.conditions.max_faults
        self.broker = Broker(clock=lambda: self.now)
        self.registry = Registry(self.slots)
        replicas = self.conditions.replicas
        pick = (lambda: 0) if replicas == 1 else lambda: self.rng.randrange(replicas)
        own = Random(repr(self.rng.getstate()))  # a generator of its own: the other draws of a seed stay as they were
        self.table = LateTable(
            self.slots,
            clock=lambda: self.now,
            draw_lags=self._draw_lags,
            pick_replica=pick,
            weak_seconds=self.conditions.weak_seconds,
            pick_state=own.randrange,
        )

    @property
    def actor(self) -> Actor:
        """The actor that acts now."""
        return self.actors[-1]

    @contextmanager
    def acting(self, actor: Actor) -> Iterator[Actor]:
        """Makes this actor the one that acts, inside the block."""
        self.actors.append(actor)
        try:
            yield actor
        finally:
            self.actors.pop()

    def log(self, text: str) -> None:
        """Adds a line to the trace."""
        if self.trace is not None:
            self.trace.append(f"{self.now:7.1f} {text}")

    # requests

    def request(self, actor: Actor, name: str, send: Callable[[str | None], Any]) -> Any:
        """Makes one request of an actor; returns the answer, or a Failure."""
        self.requests += 1
        if self.requests > MAX_REQUESTS:
            raise Stuck
        rnd = self.rng.random
        if rnd() < self.conditions.tick_chance:
            self.now += self.rng.choice((0.1, 0.5, 1.0, 3.0))
        if self.broker.late_commits:
            self.broker.finish_late_commits()
        fault, aimed = None, False
        if not actor.is_zombie:
            while self.zombies and rnd() < self.conditions.zombie_turn_chance and self._resume_a_zombie():
                pass
            chance = self.conditions.fault_chance * (4 if name.startswith("commit") else 1)
            if self.faults_left and name.startswith(self.conditions.fault_target) and rnd() < chance:
                fault = self._draw_fault(actor, name)
            aimed = fault is None and bool(self.conditions.aims) and self._is_instant(name)
            if aimed:
                fault = self.rng.choice(("crash before", "task lost" if actor.in_task else "crash before"))
        if fault is not None:
            self.faults_left -= not aimed
            self.faults[fault] += 1
            self.log(f"{actor.name} {name}: FAULT {fault}")
        return self._send(actor, name, send, fault)

    def end_instant(self, kind: str) -> None:
        """The moment before something durable that is no request of an actor."""
        if self.conditions.aims and self._is_instant(kind):
            self.faults["crash before"] += 1
            self.log(f"FAULT crash before the {kind}")
            raise Crash

    def _is_instant(self, name: str) -> bool:
        """Whether a fault that is aimed at the instants between two durable requests happens before this one."""
        if name.startswith(READS) or name == "registry":
            return False
        before, self.durable = self.durable, name.partition("#")[0].partition("sk=")[0]
        if before == self.durable:
            return False
        starts = {start for start, _ in self.conditions.aims if name.startswith(start)}
        self.instants.update(starts)
        return any(start in starts and self.instants[start] == number for start, number in self.conditions.aims)

    def write(self, write: Write) -> WriteOutcome:
        """One write. The world records the time at which each version of a row was written."""
        outcome = self.table.write(write)
        stamp = {**write.set, **write.set.get("_indexed", {})}.get(STAMP)
        if isinstance(outcome, Done) and isinstance(stamp, int):  # the change did not leave the stamp out
            self.written_at.setdefault((write.key, stamp), self.now)
        return outcome

    def get(self, read: KeyRead, keys: list[Key]) -> tuple[dict[Key, Item], list[Key]]:
        """One batched read, which may leave keys unprocessed; returns the items and those keys."""
        chance = self.conditions.unprocessed_chance
        leaves_some = chance and self.rng.random() < chance
        n = self.rng.randrange(len(keys)) if leaves_some and keys else len(keys)
        return read(keys[:n]), keys[n:]

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        """One page of an index query, from any replica, or of edges. Some pages are empty but not the last."""
        if self.conditions.index_page and self.rng.random() < 0.2:
            return Page([], after or Key("TABLE#", ""))
        return self.table.page(source, after, limit)

    def _send(self, actor: Actor, name: str, send: Callable[[str | None], Any], fault: str | None) -> Any:
        match fault:
            case "crash before":
                raise Crash
            case "crash after":
                actor.dies = True
            case "task lost":
                return Failure(TaskLost, name)
            case "throttled":
                return Failure(Transient, name)
        try:
            answer = send(fault if fault in BROKER_FAULTS else None)
            if fault == "sent again":
                answer = send(None)
        except EXPECTED as error:
            answer = Failure(type(error), str(error))
        if self.trace is not None and not name.startswith(("get", "query", "lease", "registry")):
            self.log(f"{actor.name} {name}: {answer}"[:230])
        return Failure(Transient, name) if fault == "answer lost" else answer

    def _draw_fault(self, actor: Actor, name: str) -> str | None:
        to_table = not name.startswith(("lease", "attempt", "applied", "registry", "init", "commit", "send", "dead"))
        possible = {
            "crash before": True,
            "crash after": True,
            "task lost": actor.in_task,
            "throttled": to_table,
            "answer lost": to_table,
            "sent again": name.startswith("write"),
            **dict.fromkeys(BROKER_FAULTS, name.startswith("commit")),
        }
        weights = self.conditions.fault_weights
        kinds = [kind for kind, may in possible.items() if may and weights.get(kind)]
        return self.rng.choices(kinds, [weights[k] for k in kinds])[0] if kinds else None

    def _draw_lags(self, key: Key, index: str) -> list[float]:
        """How late each replica shows a write of a row in an index, in seconds. The replicas differ by less than W."""
        r, lag, n = self.rng, self.conditions.lag, self.conditions.replicas
        if lag == "rows":
            if (key, index) not in self.row_lags or r.random() < self.conditions.lag_change_chance:
                late = key.pk.startswith(self.conditions.late_target) and r.random() < self.conditions.late_share
                self.row_lags[key, index] = r.choice(self.conditions.late) * S + r.uniform(-1, 1) if late else 0.0
            base = self.row_lags[key, index]
            return [base, *(base + r.random() * W * 0.99 for _ in range(n - 1))]
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

    def run_stage(self, tasks: Sequence[Callable[[], list[Any]]]) -> list[list[Any]]:
        """Runs the tasks of a stage, one after the other in any order, or by turns."""
        actor = self.actor
        by_turns = actor.remember(
            lambda: len(tasks) > 1 and not actor.is_zombie and self.rng.random() < self.conditions.interleaving_chance
        )
        if by_turns:
            try:
                return actor.remember(lambda: self._run_by_turns(tasks))
            except BaseException:
                # a zombie of this driver runs the tasks one after the other
                actor.answers[actor.next_answer - 1] = False
                raise
        order = actor.remember(lambda: self.rng.sample(range(len(tasks)), len(tasks)))
        results = {i: self._run_task(tasks[i], f"{actor.name} task {i}") for i in order}
        return [results[i] for i in range(len(tasks))]

    def give_up(self, name: str, body: Callable[[], Any], answers: list[Any], *, is_task: bool) -> None:
        """Gives up an actor, which may live on as a zombie."""
        if self.rng.random() < self.conditions.zombie_chance:
            wake_at = self.now + self.rng.choice((0, 0, 3, 60))
            zombie = SuspendedActor(
                name=f"{name} (zombie)",
                body=body,
                answers=answers,
                wake_at=wake_at,
                turns_left=self.rng.choice((2, 10, 100)),
                is_task=is_task,
            )
            self.zombies.append(zombie)
            self.faults["zombie task" if is_task else "zombie job"] += 1

    def finish_zombies(self) -> None:
        """Lets all zombies continue to their ends."""
        self.now = max(self.now, *(z.wake_at for z in self.zombies))
        while self._resume_a_zombie():
            pass

    def _run_task(self, body: Callable[[], list[Any]], name: str) -> list[Any]:
        """Runs one task, and tries it again as often as Spark does."""
        actor = self.actor
        for attempt in range(self.conditions.task_retries + 1):
            start, actor.in_task = actor.next_answer, True
            try:
                return body()
            except EXPECTED as error:
                self.log(f"{name} failed: {error!r}")
                if actor.caught_up and not actor.is_zombie and isinstance(error, TaskLost):
                    answers = actor.answers[start : actor.next_answer - 1]
                    self.give_up(f"{name}.{attempt}", body, answers, is_task=True)
            finally:
                actor.in_task = False
        raise JobFailed(name)

    def _run_by_turns(self, tasks: Sequence[Callable[[], list[Any]]]) -> list[list[Any]]:
        """Runs all tasks at the same time, request by request."""
        name = self.actor.name
        running = [
            SuspendedActor(name=f"{name} task {i}", body=t, answers=[], is_zombie=False, is_task=True)
            for i, t in enumerate(tasks)
        ]
        retries_left = dict.fromkeys(range(len(tasks)), self.conditions.task_retries)
        try:
            while waiting := [i for i, task in enumerate(running) if not task.done]:
                i = self.rng.choice(waiting)
                error = self._resume(running[i], self.rng.randint(1, 4))
                if error is not None:
                    if not retries_left[i]:
                        raise JobFailed(running[i].name)
                    retries_left[i] -= 1
                    if isinstance(error, TaskLost):
                        self.give_up(running[i].name, tasks[i], running[i].answers[:-1], is_task=True)
                    again = f"{name} task {i}.{retries_left[i]}"
                    running[i] = SuspendedActor(name=again, body=tasks[i], answers=[], is_zombie=False, is_task=True)
        except (Crash, JobFailed):
            for i, task in enumerate(running):
                if not task.done:
                    self.give_up(task.name, tasks[i], task.answers, is_task=True)
            raise
        return [task.result for task in running]

    def _resume(self, suspended: SuspendedActor, requests: int) -> Exception | None:
        """Lets an actor continue for some requests; returns the error that ended it, if one did."""
        actor = Actor(
            world=self,
            name=suspended.name,
            is_zombie=suspended.is_zombie,
            answers=suspended.answers,
            requests_left=requests,
            in_task=suspended.is_task,
        )
        with self.acting(actor):
            try:
                suspended.result = suspended.body()
            except Pause:
                return None
            except EXPECTED as error:
                suspended.done = True
                return error
            except JobFailed:
                pass
        suspended.done = True
        return None

    def _resume_a_zombie(self) -> bool:
        """Gives one zombie a turn; returns False if none can continue now."""
        awake = [z for z in self.zombies if z.wake_at <= self.now]
        if not awake:
            return False
        zombie = self.rng.choice(awake)
        zombie.turns_left -= 1
        self._resume(zombie, self.rng.randint(1, 6))
        if zombie.done or zombie.turns_left <= 0:
            self.log(f"{zombie.name} ends")
            self.zombies.remove(zombie)
        return True
