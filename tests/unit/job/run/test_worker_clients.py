"""A worker has the clients of one run: with those of the next run, the connections of the former ones close."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from processor.environment.settings.settings import Settings
from processor.job.run import worker
from statestore.store import FencingToken


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What opened and what closed, in turn."""
    seen: list[str] = []

    def part(name: str) -> SimpleNamespace:
        seen.append(f"open {name}")
        return SimpleNamespace(close=lambda: seen.append(f"close {name}"))

    monkeypatch.setattr(worker, "open_store", lambda settings, patience, fence: part(f"store {fence.generation}"))
    monkeypatch.setattr(worker, "open_registry", lambda settings: part("registry"))
    monkeypatch.setattr(worker, "KafkaOutbox", lambda *_, **__: None)
    monkeypatch.setattr(worker, "tune_garbage_collector", lambda: None)
    worker.clients.cache_clear()
    yield seen
    worker._opened.close()
    worker.clients.cache_clear()


def test_clients_stay_during_a_run_and_close_before_those_of_the_next_run(events: list[str]) -> None:
    settings = Settings(job="j", table="t")
    first, second = (FencingToken("j", n) for n in (1, 2))
    assert worker.clients(settings, None, first) is worker.clients(settings, None, first)
    assert events == ["open store 1", "open registry"]
    worker.clients(settings, None, second)
    assert events[2:] == ["close registry", "close store 1", "open store 2", "open registry"]
