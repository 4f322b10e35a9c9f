"""A part that holds its connections and gives no answer is named in seconds, and a large round alone names nobody."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.rounds.events import JobEvent, Troubles
from processor.environment.settings.settings import Settings
from processor.job.run import outages
from processor.job.run.monitor import StateKeeper
from processor.job.run.outages import REGISTRY, SCHEMA_REGISTRY, STORE, SilentParts, places
from registry.errors import RegistryMissing
from statestore.store import Terminal, Throttled, Transient

SETTINGS = Settings(
    store="postgres",
    store_url="postgresql://me:secret@10.0.0.8/states",
    registry="postgresql://me:secret@10.0.0.7/registry",
    schema_registry=(("url", "http://10.0.0.9:8081"),),
)


def wait_for(happened: Callable[[], bool]) -> None:
    until = monotonic() + 60
    while not happened():
        assert monotonic() < until
        sleep(0.001)


class Scene:
    """A job at work whose parts answer when a test lets them. `asked`: how often a question began."""

    def __init__(self, *failures: Exception | None) -> None:
        self.now, self.lines, self.asked = 100.0, list[JobEvent](), 0
        self.answer, self.failures = Event(), list(failures)
        self.job: Any = SimpleNamespace(
            settings=SETTINGS, work=7, troubles=Troubles(self.lines.append, lambda: self.now)
        )
        self.parts = SilentParts(self.job, lambda: self.now, {STORE: self.question})
        self.parts.look()

    @contextmanager
    def question(self, settings: Settings) -> Iterator[Callable[[], object]]:
        assert settings is SETTINGS

        def ask() -> None:
            self.asked += 1
            if self.failures and (failure := self.failures.pop(0)):
                raise failure
            self.answer.wait()

        yield ask

    def passes(self, seconds: int) -> None:
        """Lets seconds pass, with a look in each."""
        for _ in range(seconds):
            self.now += 1
            self.parts.look()

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.lines]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(outages, "ASK_SECONDS", 0.001)


def test_a_store_without_an_answer_is_named_within_fifteen_seconds_with_its_address_and_a_cure() -> None:
    scene = Scene()
    scene.passes(4)
    wait_for(lambda: scene.asked == 1)
    scene.passes(11)
    (text,) = scene.texts
    assert "store: the store at" in text
    assert "10.0.0.8" in text
    assert "has given no answer since" in text
    assert text.endswith("wait for the store and the network, or look at the server")
    assert "secret" not in text
    scene.answer.set()
    wait_for(lambda: not scene.job.troubles.now)
    assert scene.texts[-1].startswith("the store answers again after")


def test_a_store_that_fails_each_time_gives_no_answer_either() -> None:
    scene = Scene(*[Transient("no connection")] * 100_000)
    scene.passes(4)
    wait_for(lambda: scene.asked > 3)
    scene.passes(11)
    assert [trouble.part for trouble in scene.job.troubles.now] == [STORE]
    scene.failures.clear()
    scene.answer.set()
    wait_for(lambda: not scene.job.troubles.now)


@pytest.mark.parametrize("failure", [None, Throttled("too much"), Terminal("no right"), ValueError("?")])
def test_a_long_round_over_a_part_that_answers_or_refuses_names_nobody(failure: Exception | None) -> None:
    scene = Scene(failure)
    scene.answer.set()

    def asked_again(before: int) -> bool:
        return scene.now < 104 or scene.asked > before

    for _ in range(30):
        scene.passes(1)
        wait_for(partial(asked_again, scene.asked))
    assert scene.lines == []


def test_rounds_that_end_in_time_ask_nothing_and_an_idle_job_does_not_either() -> None:
    scene = Scene()
    for number in range(8, 20):
        scene.job.work = number
        scene.passes(3)
    scene.job.work = None
    scene.passes(30)
    assert (scene.asked, scene.lines) == (0, [])


def test_a_part_that_no_round_waits_for_any_more_is_not_named() -> None:
    scene = Scene()
    scene.passes(5)
    wait_for(lambda: scene.asked == 1)
    scene.job.work = 8
    scene.passes(3)
    scene.job.work = None
    scene.passes(30)
    assert scene.lines == []
    scene.answer.set()


def test_only_parts_that_the_settings_name_are_asked() -> None:
    scene = Scene()
    scene.job.settings = Settings(store="postgres")
    parts = SilentParts(scene.job, lambda: scene.now, {SCHEMA_REGISTRY: scene.question})
    for _ in range(20):
        scene.now += 1
        parts.look()
    assert scene.asked == 0
    assert places(SETTINGS)[SCHEMA_REGISTRY] == "http://10.0.0.9:8081"


def test_a_silent_registry_is_named_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, kept = Scene(), list[Any]()
    scene.job.work = None

    def keep_report(_lease: Any, state: Any, _ended: int | None, *, worked_at: float | None) -> None:
        kept.append(state)
        scene.answer.wait()

    monkeypatch.setattr("processor.job.run.monitor.KEEP_SECONDS", 0.001)
    registry: Any = SimpleNamespace(runs=SimpleNamespace(keep_report=keep_report))
    keeper = StateKeeper(registry, SimpleNamespace(), scene.job.troubles, scene.parts)  # type: ignore[arg-type]
    keeper.keep({"at": 1}, None)
    scene.passes(11)
    keeper.keep({"at": 2}, None)
    assert kept == [{"at": 1}], "nobody waits for a second answer"
    (text,) = scene.texts
    assert text.startswith("registry: the registry at 10.0.0.7:5432/registry has given no answer since")
    scene.answer.set()
    wait_for(lambda: not scene.job.troubles.now)
    keeper.keep({"at": 3}, None)
    assert kept == [{"at": 1}, {"at": 3}]


def test_a_registry_that_refuses_the_state_is_no_silent_part() -> None:
    scene = Scene()

    def keep_report(*_: Any) -> None:
        raise RegistryMissing("gone")

    registry: Any = SimpleNamespace(runs=SimpleNamespace(keep_report=keep_report))
    StateKeeper(registry, SimpleNamespace(), scene.job.troubles, scene.parts).keep({}, None)  # type: ignore[arg-type]
    assert REGISTRY not in scene.parts._waits
    assert scene.lines == []
