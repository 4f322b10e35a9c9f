"""Simulates a source, an operator and a clock that choose their turns by the state of the job and of the indexes.

A world is small: two users, and two stars that move between them. Each turn is drawn. What the job and the indexes know of the
stars decides the weights. The operator often kills a job that has forgotten a change which a start opens again. The source
often asks for the documents of an open change, or of a row whose answer is wrong. It often deletes a row that no change has
open. The clock often stops where work is due, or where an index changes. So a short history meets moments that are rare else.

At each rest the last documents must be those of the oracle. `facts` counts the turns, and the states that they need.
"""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from processor.engine.protocol.segments import OpenChange, open_items, read_changes
from processor.job.run.job import Job
from processor.values.dead_letters import DeadLetter
from processor.values.record import Record
from statestore.items import slot_name
from statestore.keys import Key
from tests.simulator.check import check_last_documents
from tests.simulator.conditions import S, W
from tests.simulator.history import Event, make_record
from tests.simulator.replayed_dead_letters import ODD, ReplaySimulation
from tests.simulator.run import Simulation, WrongAtRest
from tests.simulator.spark_checkpoint import Checkpoint

USERS = {"x": "a", "y": "c"}
NAMES = "abc"
STARS = (0, 1)
MOMENT = 1e-3
"""Seconds: shortly after something happens."""
Turns = dict[str, tuple[float, Callable[[], None]]]
"""The turns by their names, each with its weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What a job and the indexes know of the stars.

    held: the rows with an open change; waiting: those with one that waits for evidence. several: the open changes that need
    the absence of their row under several names. forgotten: the rows of changes that the job has closed, and that a start
    opens again. wrong: rows, and the names for which an index answers wrong of them."""

    held: frozenset[Key]
    waiting: frozenset[Key]
    several: tuple[OpenChange, ...]
    forgotten: frozenset[Key]
    wrong: frozenset[tuple[Key, str]]

    @property
    def late(self) -> frozenset[Key]:
        """The rows of which an index answers wrong."""
        return frozenset(row for row, _ in self.wrong)


class ChosenMoments(Simulation):
    """A run with such turns. `turns`: how many are left; `must_rest`: the next one waits until the job rests; `stars`: those
    that the source has."""

    turns: int
    must_rest: bool
    stars: set[int]

    def run(self) -> None:
        self.turns, self.must_rest, self.stars = self.world.conditions.turns, True, set()
        self.logs = {(topic, 0): [] for topic in self.shape.draw_row}
        self.available = dict.fromkeys(self.logs, 0)
        self.checkpoint = Checkpoint(offsets=dict.fromkeys(self.logs, 0))
        self._ask(USERS.values())
        for id in STARS:
            self._put_star(id)
        super().run()

    @property
    def rng(self) -> Random:
        return self.world.rng

    def _act(self) -> bool:
        job = self.job
        if job is None:
            self._start()
        elif self.has_input:
            self._run_batch(job)
        elif job.pending and self.must_rest:
            self._run_background_work(job)
        else:
            self.must_rest = False
            if not job.pending and not self._undetermined() and (problem := check_last_documents(self)):
                raise WrongAtRest(problem)
            if not self.turns:
                return self._finish()
            self.turns -= 1
            self._take_turn(job)
        return True

    def _finish(self) -> bool:
        return super()._act()

    def _undetermined(self) -> Collection[Key]:
        """The rows of which the source's tables do not say what the documents show."""
        return ()

    # turns

    def _take_turn(self, job: Job) -> None:
        turns = self._turns(job, self._knowledge(job))
        (name,) = self.rng.choices([*turns], [weight for weight, _ in turns.values()])
        self.world.log(f"turn: {name}")
        self.facts[name] += 1
        turns[name][1]()

    def _turns(self, job: Job, known: Knowledge) -> Turns:
        late, several = known.late, {change.key for change in known.several}
        closed = {id for id in self.stars if star_key(id) not in known.held}
        forgotten = {id for id in closed if star_key(id) in known.forgotten}
        unshown = {id for id in closed if star_key(id) in late}
        doubtful = {name for one in known.several if one.key in late & known.waiting for _, name in one.gone}
        closing = several & late - known.waiting
        wrong = {name for row, name in known.wrong if row not in {*known.held, *self._undetermined()}}
        swallowed = known.forgotten & late - several
        self._count("a forgotten star can be deleted", forgotten)
        self._count("a star without an open change is late", unshown)
        self._count("a late star had several names", several & late)
        self._count("a late star is about to close", closing)
        self._count("an answer is wrong", wrong)
        return {
            "move": (2, self._move),
            "delete": (1 if self.stars else 0, lambda: self._delete(closed or self.stars)),
            "delete forgotten": (10 if forgotten else 0, lambda: self._delete(forgotten)),
            "delete unshown": (60 if unshown else 0, lambda: self._delete(unshown)),
            "ask": (1, lambda: self._ask(self.rng.choice(("a", "c", "ac", "ac")))),
            "ask doubtful": (20 if doubtful else 0, lambda: self._ask(doubtful)),
            "ask wrong": (200 if wrong else 0, lambda: self._ask_and_rest(wrong)),
            "wait": (40 if closing else 4, lambda: self._wait(job)),
            "kill": (12 if swallowed else 0.2, self.end_job),
        }

    def _count(self, name: str, found: Collection[Any]) -> None:
        if found:
            self.facts[name] += 1

    def _move(self) -> None:
        for id in self.rng.sample(STARS, self.rng.choice((1, 2, 2))):
            self._put_star(id)

    def _delete(self, ids: Collection[int]) -> None:
        id = self.rng.choice(sorted(ids))
        self.stars.remove(id)
        self._write(Event(entity="star", key={"id": id}, row=None))

    def _ask(self, names: Collection[str]) -> None:
        """The source writes the users with these names, so the job makes their documents again."""
        for email, name in USERS.items():
            if name in names:
                row = {"email": email, "username": name, "bio": "0", "n": len(self.events) + 1}
                self._write(Event(entity="user", key={"email": email}, row=row))

    def _ask_and_rest(self, names: Collection[str]) -> None:
        self._ask(names)
        self.must_rest = True

    def _wait(self, job: Job) -> None:
        """Time passes until a moment. The job does its work meanwhile."""
        world = self.world
        nexts = [world.table.next_shown(), self.next_work(job) if job.pending else None]
        moments = [world.now + W, world.now + S + W, *(moment for moment in nexts * 2 if moment is not None)]
        end = max(world.now, self.rng.choice(moments)) + MOMENT
        while job.pending and ((due := self.next_work(job)) is None or due <= end):
            self._run_background_work(job)
        world.now = max(world.now, end)

    # the source

    def _put_star(self, id: int) -> None:
        """The source writes a star, often with another name than before."""
        self.stars.add(id)
        self._write(Event(entity="star", key={"id": id}, row=self._draw_star(id)))

    def _draw_star(self, id: int) -> dict[str, Any]:
        return {"id": id, "username": self.rng.choice(NAMES), "note": "0", "n": len(self.events) + 1}

    def _write(self, event: Event) -> None:
        partition = (event.entity, 0)
        log = self.logs[partition]
        self.events = [*self.events, event]
        log.append(make_record(event, partition, len(log), len(self.events), None))
        self.available[partition] = len(log)

    # the state

    def _knowledge(self, job: Job) -> Knowledge:
        held = job.driver.progress.open_changes.held.values()
        changes = [(one.shown, change) for one in held for change in one.segment.changes()]
        open_now = {(change.key, change.version) for _, change in changes}
        durable = {(one.key, one.version) for item in open_items(self.world.table) for one in read_changes(item)}
        (slot,) = self.shape.plan.entities["star"].slots
        stars = star_key(0).pk
        wrong = self.world.table.wrong_keys(slot_name(slot), stars)
        return Knowledge(
            held=frozenset(row for row, _ in open_now),
            waiting=frozenset(change.key for shown, change in changes if not shown),
            several=tuple(change for _, change in changes if len(change.gone) > 1),
            forgotten=frozenset(row for row, _ in durable - open_now if row.pk == stars),
            wrong=frozenset((row, name) for row, name in wrong if name in NAMES),
        )


class ChosenReplays(ChosenMoments, ReplaySimulation):
    """A run whose operator also replays dead letters: some changes of a star are such letters. Most replays are killed before
    they write a row, and go on later, often when another run has closed their change."""

    def run(self) -> None:
        self._declare(as_text=False)
        super().run()

    def _turns(self, job: Job, known: Knowledge) -> Turns:
        letters, zombies, turns = self._letters_to_replay(), self.world.zombies, super()._turns(job, known)
        closed = [row for row in self._undetermined() if zombies and row not in known.held]
        self._count("a killed replay waits, and its change is closed", closed)
        return turns | {
            "wait": (12, turns["wait"][1]) if zombies else turns["wait"],
            "replay": (6 if letters and not zombies else 0, lambda: self._replay(letters)),
            "go on": (0 if not zombies else 12 if closed else 0.1, self.world.finish_zombies),
        }

    def _replay(self, letters: Sequence[DeadLetter]) -> None:
        self.world.faults_left = 1
        super()._replay(letters)

    def _run_batch(self, job: Job) -> None:
        self.world.faults_left = 0
        super()._run_batch(job)

    def _draw_star(self, id: int) -> dict[str, Any]:
        row = super()._draw_star(id)
        return {**row, ODD: "text"} if id == STARS[0] and self.rng.random() < 0.6 else row

    def _finish(self) -> bool:
        """At the end all killed replays go on. Then the operator replays all letters that wait, which repairs documents."""
        if self.world.zombies:
            self.world.finish_zombies()
            return True
        return super()._finish()

    def _undetermined(self) -> Collection[Key]:
        """The rows whose last change is a letter that waits."""
        waiting = [letter.rejected.record for letter in self._letters_to_replay()]
        return {star_key(json.loads(one.key or b"")["id"]) for one in waiting if not self._has_later(one)}

    def _has_later(self, record: Record) -> bool:
        return any(later.key == record.key for later in self.logs[record.topic, record.partition][record.offset + 1 :])


def star_key(id: int) -> Key:
    """The key of a star's row."""
    return Key("TABLE#star", str(id))
