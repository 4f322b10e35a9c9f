"""The wait between two runs: how long it is, what it says, and when it gives up."""

from datetime import datetime
from random import Random
from threading import Event
from typing import Any

import pytest

from processor.engine.rounds.events import JobEvent, Trouble, Troubles, trouble_line
from processor.environment.settings.settings import Settings
from processor.errors import Outage
from processor.job.run.outages import LONGEST_SECONDS, LONGEST_THROTTLED_SECONDS, MOST_RUNS, OutageWait


class Scene:
    """A wait whose clock moves by its own pauses."""

    def __init__(self, seconds: float = 300) -> None:
        self.now, self.events = 1_000.0, list[JobEvent]()
        stopping: Any = Event()
        stopping.wait = self._pass
        troubles = Troubles(self.events.append, clock=lambda: self.now)
        self.wait = OutageWait(troubles=troubles, stopping=stopping, seconds=seconds, random=Random(7))

    def _pass(self, seconds: float) -> bool:
        self.now += max(seconds, 0.001)
        return False

    def pauses(self, count: int, **outage: Any) -> list[float]:
        """The lengths of this many pauses, each after a failure."""
        found = []
        for _ in range(count):
            self.wait.note(Outage("no answer", **{"part": "store", "cure": "wait", **outage}))
            began = self.now
            self.wait.pause()
            found.append(self.now - began)
        return found


def test_pauses_grow_and_a_part_that_does_not_answer_is_asked_again_within_seconds() -> None:
    pauses = Scene(seconds=10_000).pauses(200)
    assert max(pauses[:2]) <= 4.1
    assert 0.8 * LONGEST_SECONDS < max(pauses) <= LONGEST_SECONDS + 1
    assert min(pauses[10:]) < 0.2 * LONGEST_SECONDS, "the pauses are not spread"


def test_a_store_that_throttles_gets_minutes_and_is_never_given_up() -> None:
    pauses = Scene(seconds=1).pauses(200, throttled=True)
    assert 0.8 * LONGEST_THROTTLED_SECONDS < max(pauses) <= LONGEST_THROTTLED_SECONDS + 1


def test_the_log_repeats_the_trouble_every_thirty_seconds_of_a_long_pause() -> None:
    scene = Scene()
    scene.pauses(20, throttled=True)
    lasted = scene.now - 1_000
    assert lasted / 32 - 1 <= len(scene.events) <= lasted / 30 + 1
    assert {event.what for event in scene.events} == {"degraded"}


def test_the_job_gives_up_after_its_longest_wait_and_says_since_when() -> None:
    scene = Scene(seconds=300)
    with pytest.raises(
        Outage, match=r"has waited for the store for 5 min.*since 19.*--outage-seconds 300.*No state is lost"
    ):
        scene.pauses(1_000)
    assert 1_300 <= scene.now < 1_300 + LONGEST_SECONDS


def test_outages_between_which_the_part_answers_are_several_waits() -> None:
    scene = Scene(seconds=60)
    for _ in range(10):
        began = scene.now
        while scene.now - began < 30:
            scene.pauses(1)
        scene.wait.troubles.end("store")


def test_a_pause_after_the_answer_of_the_part_repeats_no_failure_of_before() -> None:
    scene = Scene(seconds=40)
    troubles = scene.wait.troubles
    scene.pauses(3, part="registry")
    scene.wait.note(Outage("connection refused", part="registry", cure="wait"))
    scene.now += 1
    troubles.end("registry")  # by the monitor, while the run ends
    scene.wait.pause()
    scene.now += 100
    scene.wait.pause()
    assert [event.what for event in scene.events] == ["degraded", "recovered"]
    assert not troubles.now
    scene.wait.note(Outage("connection refused", part="registry", cure="wait"))
    scene.wait.pause()
    assert [event.what for event in scene.events] == ["degraded", "recovered", "degraded"]
    assert troubles.now[0].since > 1_100


def test_an_answer_that_came_after_the_failure_and_before_the_wait_counts() -> None:
    scene = Scene()
    scene.now += 5
    scene.wait.troubles.end("registry")
    scene.wait.note(Outage("connection refused", part="registry", cure="wait", at=scene.now - 2))
    scene.wait.pause()
    assert scene.events == []


def test_the_wait_has_the_age_of_the_trouble_that_the_monitor_saw_first() -> None:
    scene = Scene(seconds=40)
    scene.wait.troubles.begin("registry", "no answer", "start it")
    scene.now += 30
    with pytest.raises(Outage, match=r"has waited for the registry for 4[01] s"):
        scene.pauses(1_000, part="registry")
    assert 1_040 <= scene.now <= 1_041


def test_the_job_says_when_it_gives_up_and_the_age_only_grows() -> None:
    scene = Scene(seconds=40)
    ends = f"the job gives up at {datetime.fromtimestamp(1_040):%H:%M:%S}"

    def fails_in_turns() -> None:
        while True:
            scene.pauses(1, part="store")
            scene.pauses(1, part="registry")

    with pytest.raises(Outage, match=r"has waited for the (store|registry) for .*, since"):
        fails_in_turns()
    lines = [event.text for event in scene.events if event.fields["part"] == "store"]
    assert len(lines) == 2
    assert all(ends in line for line in lines)
    assert 1_040 <= scene.now <= 1_041 + LONGEST_SECONDS


def test_a_store_that_was_slow_for_long_and_then_does_not_answer_gets_the_whole_wait() -> None:
    scene = Scene(seconds=60)
    scene.wait.troubles.begin("store", "throttled", "wait")
    scene.now += 1_000
    scene.wait.forget(scene.now)
    with pytest.raises(Outage):
        scene.pauses(1_000)
    assert scene.now >= 2_060


def test_a_part_that_answers_every_start_and_no_work_is_given_up() -> None:
    scene = Scene(seconds=60)

    def fails_after_every_start() -> None:
        while True:
            scene.pauses(1)
            scene.wait.opened()
            scene.wait.troubles.end("store")

    with pytest.raises(Outage, match="has waited for the store for"):
        fails_after_every_start()
    assert scene.wait.runs == MOST_RUNS + 1


def test_the_wait_after_work_begins_from_zero() -> None:
    scene = Scene(seconds=300)
    for _ in range(20):
        scene.wait.forget(scene.now)
        scene.wait.troubles.end("store")
        scene.pauses(10)


def test_by_default_a_job_outlasts_the_outage_of_a_night_and_the_log_names_the_day_on_which_it_gives_up() -> None:
    assert Settings().outage_seconds == 12 * 3600
    evening = datetime(2026, 11, 24, 22, 0, 0).timestamp()
    ends = evening + Settings().outage_seconds
    trouble = Trouble(
        part="registry", text="it does not answer", cure="start it", since=evening, said=evening, gives_up=ends
    )
    assert "; the job gives up at 2026-11-25 10:00:00: start it" in trouble_line(trouble, evening)
    assert "; the job gives up at 10:00:00: start it" in trouble_line(trouble, ends - 3600)
