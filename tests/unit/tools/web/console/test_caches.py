"""The landings on the overview: a broker that is slow or away holds no page up."""

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest

from processor.environment.settings.settings import Settings
from processor.errors import KafkaError
from processor.job.landing.states import LandingState
from processor.tools.web.console import caches
from processor.tools.web.console.caches import KnownLandings, LandingCache
from registry.model import KnownLanding

AT = datetime(2026, 11, 23, tzinfo=UTC)
KNOWN = KnownLanding("f00", "profile", "profile", "db/profile", AT, AT)
STATE = LandingState("profile", "db/profile", 1.7e9, "profile", 12, 1)
Answer = Callable[[], list[LandingState]]


@pytest.fixture
def cache_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], LandingCache]:
    """Makes a cache whose broker answers so; a look never finds the last answer new enough."""
    monkeypatch.setattr(caches, "FRESH_SECONDS", -1.0)

    def make(answer: Answer) -> LandingCache:
        monkeypatch.setattr(caches, "landing_states", lambda *_: answer())
        return made

    made = LandingCache(Settings(bootstrap_servers="127.0.0.1:9092"), lambda: [KNOWN])
    return make


def settled(cache: LandingCache) -> KnownLandings:
    """What the cache knows once the broker has answered."""
    cache.landings()
    cache._asking.wait()
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
