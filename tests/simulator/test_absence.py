"""Histories in which an index shows a deleted row late: absence is evidence only of what the index had shown under this key.

Three are written by hand: each ends right, and wrong without its protection. Random histories of small worlds find all three.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

import tests.simulator.run as run_module
from processor.engine.protocol import open_changes, segments, settle, write_state
from processor.engine.protocol.epochs import Epochs
from processor.engine.protocol.segments import observations_of
from processor.engine.rounds import step_runner
from statestore import writes
from statestore.store import AbsentOrBelow
from tests.simulator.actor import Crash
from tests.simulator.chosen_moments import ChosenMoments, ChosenReplays
from tests.simulator.history import Event
from tests.simulator.replayed_dead_letters import ODD, ReplaySimulation
from tests.simulator.run import Simulation
from tests.simulator.simulate import simulate
from tests.simulator.source_topics import OVERRIDES as SOURCE
from tests.simulator.source_topics import SourceSimulation
from tests.simulator.table import LateTable
from tests.simulator.without import operators
from tests.simulator.without.switch import Switch, combine, replacing
from tests.simulator.world import World
from tests.simulator.worlds import QUIET, chosen, chosen_replays, short_lived

Lag = Callable[[Mapping[str, Any]], float]
"""The seconds after which the indexes show a star, by its item."""
STILL = {**QUIET, "partitions": 1, "settle_first_chance": 0, "tick_chance": 0}


def star(id: int, username: str | None, n: int, **more: Any) -> Event:
    row = None if username is None else {"id": id, "username": username, "note": "0", "n": n, **more}
    return Event(entity="star", key={"id": id}, row=row)


def user(email: str, username: str, n: int) -> Event:
    return Event(entity="user", key={"email": email}, row={"email": email, "username": username, "bio": "0", "n": n})


def is_gone(item: Mapping[str, Any]) -> bool:
    return bool(item.get("_deleted"))


def stamp(item: Mapping[str, Any]) -> Any:
    return item.get("_indexed", {}).get("n")


class Written(Simulation):
    """A history by hand. `ends`: where each batch ends, in users and stars."""

    events_by_hand: Sequence[Event] = ()
    ends: Sequence[tuple[int, ...]] = ()
    lag: Lag = staticmethod(lambda _: 0.0)

    @classmethod
    def change_events(cls, seed: int, events: list[Event]) -> list[Event]:
        return list(cls.events_by_hand)

    def works_until(self, moment: float) -> bool:
        """Whether the job does background work, because it is not yet this moment. Without work the time passes."""
        if self.world.now >= moment or self.job is None:
            return False
        if not self.job.pending:
            self.world.now = moment
            return False
        self._run_background_work(self.job)
        return True

    def wait(self, name: str, seconds: float) -> float:
        """The moment this many seconds after the first question for it."""
        self.facts[name] = self.facts[name] or int(self.world.now) + 1
        return self.facts[name] + seconds


class GrownTopic(Written):
    """A topic gets a partition, and one batch inserts a star in the first partition and deletes it in the second."""

    events_by_hand = (
        user("x", "a", 1),
        user("y", "c", 2),
        star(1, "a", 3),
        star(2, "c", 4),
        star(2, None, 5),
        user("y", "c", 6),
    )
    ends = ((2, 1, 0), (2, 2, 1), (3, 2, 1))
    lag = staticmethod(lambda item: 40.0 if is_gone(item) else 25.0 if stamp(item) == 4 else 0.0)

    @staticmethod
    def change_logs(seed: int, logs: Any) -> Any:
        of_stars = logs["star", 0]
        return {**logs, ("star", 0): of_stars[:2], ("star", 1): [replace(of_stars[2], partition=1, offset=0)]}

    def run(self) -> None:
        steps = {("user", 0): ((0, 1),), ("star", 0): ((0, 1), (2, 2)), ("star", 1): ((0, 2),)}
        self.epochs = Epochs(steps=steps)
        super().run()

    def _act(self) -> bool:
        return (self.checkpoint.batch == 2 and self.works_until(self.wait("deleted", 30))) or super()._act()


class TwoFormerKeys(Written):
    """A crash leaves a deleted star with two former keys: the index has dropped it under the older one alone."""

    events_by_hand = (
        user("x", "a", 1), user("y", "c", 2), star(2, "a", 3), star(1, "a", 4), star(2, "c", 5), star(1, "b", 6),
        star(2, None, 7), user("x", "a", 8), user("y", "c", 9), user("y", "c", 10),
    )  # fmt: skip
    ends = ((2, 2), (2, 4), (2, 5), (4, 5), (5, 5))
    lag = staticmethod(lambda item: 60.0 if is_gone(item) else 100.0 if stamp(item) == 6 else 0.0)

    def _act(self) -> bool:
        batch, job = self.checkpoint.batch, self.job
        if job is None:
            return super()._act()
        if batch == 1 and job.driver.progress.open_changes.held:
            self._run_background_work(job)
            return True
        if batch == 3 and not self.facts["killed"]:
            self.facts["killed"] = 1
            self.wait("deleted", 0)
            self.end_job()
            return True
        moments = {2: lambda: self.wait("moved", 22), 4: lambda: self.wait("deleted", 24)}
        return (batch in moments and self.works_until(moments[batch]())) or super()._act()


class LateReplay(Written, ReplaySimulation):
    """A replay outlives its run, and writes its row after the next run closed the change. The star is deleted before an index
    shows that write."""

    events_by_hand = (user("y", "c", 1), star(2, "c", 2, **{ODD: "text"}), star(2, None, 3), user("y", "c", 4))
    ends = ((1, 1), (1, 2), (2, 2))
    lag = staticmethod(lambda item: 40.0 if is_gone(item) else 25.0)
    sleeping: Any = None

    def _act(self) -> bool:
        batch, job, facts = self.checkpoint.batch, self.job, self.facts
        if not facts["replays"]:
            self._declare(as_text=False)
        if job is None:
            return Simulation._act(self)
        if batch == 1 and not facts["replays"]:
            LateReplay.sleeping = True
            self._replay(self._letters_to_replay())
            return True
        if batch in (1, 2) and job.driver.pending:
            self._run_background_work(job)
            return True
        if batch == 1 and callable(LateReplay.sleeping):
            LateReplay.sleeping(None)
            LateReplay.sleeping = None
            self.wait("written", 0)
        if batch == 2 and not facts["later"]:
            facts["later"] = 1
            self.world.now = max(self.world.now, self.wait("written", 30))
        return Simulation._act(self)


def _sleep_before_its_row(request: Any) -> Any:
    """The replay's task falls asleep before it writes the row: its run takes it for dead."""

    def changed(self: World, actor: Any, name: str, send: Any) -> Any:
        if LateReplay.sleeping is True and name.startswith("write Key(pk='TABLE#star'"):
            LateReplay.sleeping = send
            raise Crash
        return request(self, actor, name, send)

    return changed


def problem_of(kind: type[Written], *switches: Switch) -> str | None:
    def ends(run: Any, offsets: Any) -> dict[Any, int]:
        return dict(zip((("user", 0), ("star", 0), ("star", 1)), kind.ends[run.checkpoint.batch], strict=False))

    def tasks(run: Any, ranges: Any) -> list[Any]:
        return [[one for p, (start, end) in sorted(ranges.ranges.items()) for one in run.logs[p][start:end]]]

    lags = [0.0]

    def lagging(replaced: Any) -> Any:
        def changed(self: LateTable, key: Any, before: Any, new: Any) -> Any:
            lags[0] = kind.lag(new) if new and key.pk == "TABLE#star" else 0.0
            return replaced(self, key, before, new)

        return changed

    def with_lags(init: Any) -> Any:
        return lambda self, slots, **kw: init(self, slots, **{**kw, "draw_lags": lambda *_: [lags[0]]})

    with ExitStack() as stack:
        for switch in (
            replacing((run_module, "draw_ends", lambda _: ends), (run_module, "draw_tasks", lambda _: tasks)),
            replacing((LateTable, "_replace", lagging), (LateTable, "__init__", with_lags)),
            replacing((World, "request", _sleep_before_its_row)),
            *switches,
        ):
            stack.enter_context(switch())
        events = len(kind.events_by_hand)
        return simulate(1, overrides={**STILL, "events": events}, simulation_class=kind).problem


any_partition = replacing((writes, "_committed", lambda _: lambda _since, below: AbsentOrBelow("_v", below)))
"""A first write over any older row, of whatever partition and epoch."""


def _by_row(seen: Any, opened: Any, dropped: Any) -> Any:
    rows = {key for (key, _), lacked in dropped.items() if lacked}
    everywhere = {(key, at): True for at, found in opened.items() for key, _ in found if key in rows}
    return observations_of(seen, opened, everywhere)


absence_by_row = replacing((step_runner, "observations_of", lambda _: _by_row))
"""Absence under one key proves that the index has dropped the row under each key."""
absence_of_unseen = replacing(
    (open_changes, "unproven_slots", lambda _: lambda _change, slots: slots),
    (segments, "unproven_slots", lambda _: lambda _change, slots: slots),
    (settle, "unproven_slots", lambda _: lambda _change, slots: slots),
)
"""A change that no index has shown becomes provable by absence when its row leaves the indexes."""
replays_published = replacing(
    (write_state._Writing, "_is_published", lambda _: lambda it, row: it.published(row.version))
)
"""A merge takes a row that a replay wrote for published, because its version is old."""


@pytest.mark.parametrize(
    ("kind", "without"),
    [
        pytest.param(GrownTopic, (any_partition, absence_of_unseen), id="a row of another partition in the same batch"),
        pytest.param(TwoFormerKeys, (absence_by_row, absence_of_unseen), id="absence counts by key"),
        pytest.param(LateReplay, (operators.over_replays,), id="a row that a replay wrote after its run"),
    ],
)
def test_absence_proves_only_what_an_index_had_shown_under_the_key(
    kind: type[Written], without: tuple[Switch, ...]
) -> None:
    assert problem_of(kind) is None
    assert "wrong at the end" in (problem_of(kind, *without) or "")


@pytest.mark.rest
@pytest.mark.parametrize(
    ("kind", "conditions", "seeds", "without"),
    [
        pytest.param(
            SourceSimulation,
            lambda seed: short_lived(seed) | SOURCE,
            range(100),
            (any_partition, absence_of_unseen),
            id="a row of another partition counts as shown",
        ),
        pytest.param(
            ChosenMoments,
            chosen,
            range(100),
            (absence_by_row, absence_of_unseen),
            id="absence counts for each key of a row",
        ),
        pytest.param(
            ChosenReplays,
            chosen_replays,
            range(100),
            (operators.over_replays,),
            id="a first write over a row that a replay wrote",
        ),
        pytest.param(
            ChosenReplays, chosen_replays, (337,), (replays_published,), id="what a replay wrote counts as published"
        ),
    ],
)
def test_random_histories_end_wrong_where(
    kind: type[Simulation],
    conditions: Callable[[int], dict[str, Any]],
    seeds: Iterable[int],
    without: tuple[Switch, ...],
) -> None:
    """Some of the first seeds find what `GrownTopic`, `TwoFormerKeys` and `LateReplay` say by hand."""

    def problems(*switches: Switch) -> Iterator[str]:
        for seed in seeds:
            switch = combine(*switches)
            run = simulate(seed, overrides=conditions(seed), switch=switch, simulation_class=kind)
            if run.problem is not None:
                yield f"seed {seed}: {run.problem}"

    assert list(problems()) == []
    assert any("wrong" in problem for problem in problems(*without))
