"""Answers that a page keeps: their age and their number; a broker that is slow holds no page up."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from threading import Event
from typing import Any

import pytest

from processor.environment.settings.settings import Settings
from processor.errors import KafkaError
from processor.job.landing.landing import LandingState
from processor.tools.web import answers
from processor.tools.web.answers import Cached, Deadline, LookUpProblem, Overdue, Questions, Recent
from processor.tools.web.console import overview
from processor.tools.web.console.overview import LandingCache
from processor.tools.web.console.screen import KnownLandings
from registry.model import KnownLanding

AT = datetime(2026, 11, 23, tzinfo=UTC)
KNOWN = KnownLanding("f00", "profile", "profile", "db/profile", AT, AT)
STATE = LandingState("profile", "db/profile", 1.7e9, "profile", 12, 1)
Answer = Callable[[], list[LandingState]]


@pytest.fixture
def cache_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], LandingCache]:
    """Makes a cache whose broker answers so; a look never finds the last answer new enough."""
    monkeypatch.setattr(overview, "FRESH_SECONDS", -1.0)

    def make(answer: Answer) -> LandingCache:
        monkeypatch.setattr(overview, "landing_states", lambda *_: answer())
        return made

    made = LandingCache(Settings(bootstrap_servers="127.0.0.1:9092"), lambda: [KNOWN])
    return make


def settled(cache: LandingCache) -> KnownLandings:
    """What the cache knows once the broker has answered."""
    cache.landings()
    cache._answers.wait()
    return cache.landings()


def test_a_page_waits_no_longer_for_a_slow_broker(cache_of: Any) -> None:
    answered = Event()
    slow = cache_of(lambda: [STATE] if answered.wait(30) else [])
    assert slow.landings() == KnownLandings(why="the broker has not answered yet")
    answered.set()
    assert settled(slow).states == (STATE,)


def test_while_the_broker_is_away_the_last_answer_stays_with_the_reason(cache_of: Any) -> None:
    def away() -> list[LandingState]:
        raise KafkaError("cannot list groups at 127.0.0.1:9092")

    assert settled(cache_of(lambda: [STATE])).why == ""
    found = settled(cache_of(away))
    assert (found.states, found.why) == ((STATE,), "cannot list groups at 127.0.0.1:9092")


def test_a_broker_that_never_answered_hides_no_landing(cache_of: Any) -> None:
    def away() -> list[LandingState]:
        raise KafkaError("cannot list groups at 127.0.0.1:9092")

    (one,) = settled(cache_of(away)).states
    assert (one.place, one.behind, one.seen_at) == ("db/profile", None, AT.timestamp())


def test_without_a_broker_only_the_registry_is_asked() -> None:
    (one,) = settled(LandingCache(Settings(), lambda: [KNOWN])).states
    assert (one.id, one.landed_at, one.processes) == ("f00", None, 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the cache, which a test sets."""
    now = [0.0]
    monkeypatch.setattr(answers, "monotonic", lambda: now[0])
    return now


def test_a_value_is_read_again_after_its_seconds_and_an_error_is_not_kept(clock: list[float]) -> None:
    values, cached = iter(["old", "new"]), Cached[str]()

    def fails() -> str:
        raise LookUpProblem(503, "no answer")

    seen = [cached.get(1.0, lambda: next(values)) for clock[0] in (0.0, 0.9)]
    clock[0] = 1.0
    with pytest.raises(LookUpProblem):
        cached.get(1.0, fails)
    assert cached.last is None
    assert [*seen, cached.get(1.0, lambda: next(values))] == ["old", "old", "new"]


def kept(read: list[int], key: int) -> int:
    """A read that counts itself."""
    read.append(key)
    return key


def test_of_many_keys_the_newest_answers_stay(clock: list[float]) -> None:
    read, cached = list[int](), Cached[int](most=2)
    for key in (1, 2, 1, 3, 2, 1):
        cached.get(5.0, partial(kept, read, key), key)
    assert read == [1, 2, 3, 1]
    assert cached.last == (0.0, 1)


def test_while_a_refresh_works_the_old_answer_stays_and_no_other_begins() -> None:
    go, begun, cached = Event(), list[str](), Cached[str]()
    cached.put("old")

    def ask() -> None:
        begun.append("new")
        go.wait(30)
        cached.put("new")

    for _ in range(2):
        cached.refresh(-1.0, ask)
    assert (cached.last or (0, ""))[1] == "old"
    go.set()
    cached.wait()
    assert ((cached.last or (0, ""))[1], begun) == ("new", ["new"])
    cached.refresh(60.0, ask)
    assert begun == ["new"]


def test_the_last_entries_stay_and_a_write_makes_its_entry_the_last_one() -> None:
    kept = Recent[str, int](2)
    for name in ("a", "b", "a", "c"):
        kept[name] = 1
    assert list(kept) == ["a", "c"]


def test_a_silent_part_gets_no_more_questions_than_it_may_have_at_once() -> None:
    begun, answer, asked = Event(), Event(), list[str]()
    questions = Questions("the broker", most=4, patience=0.01, at_once=1)

    def ask(key: str) -> None:
        asked.append(key)
        begun.set()
        answer.wait()

    for key in ("a", "b", "c"):
        assert questions.ask(key, partial(ask, key), 60.0).why == "the broker has not answered within 0.01 s"
        assert begun.wait(10.0)
    assert asked == ["a"]
    answer.set()


def test_no_page_begins_while_too_many_threads_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_OVERDUE", 1)
    deadline, silent = Deadline(), Event()
    with pytest.raises(Overdue):
        deadline.run(0.01, silent.wait)
    with pytest.raises(Overdue):
        deadline.run(60.0, lambda: 1)
    silent.set()
