"""A job opens again after an outage, as often as it takes, and ends when a part does not answer for too long."""

import re
from collections import Counter
from collections.abc import Callable
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.rounds.events import JobEvent, Troubles
from processor.environment.settings.settings import Settings
from processor.errors import Fenced, KafkaError, Outage, Stopped
from processor.job.metrics.status import JobPhase
from processor.job.run import outages
from processor.job.run import run_job as module
from processor.job.run.open_job import RunRequest
from processor.job.run.run_job import run_again, run_to_end
from registry.errors import LeaseLost, RegistryUnreachable
from registry.model import Lease
from statestore.store import Terminal, Transient


class Runs:
    """Opens jobs that end as given: `fail` fails before a batch, `late` after one, `open` at the start, `wrong` for good. The
    store answers a probe, unless `probes` has errors. `stopping`: set by a test."""

    def __init__(self, *ends: str, seconds: int = 300, probes: tuple[Exception, ...] = ()) -> None:
        self.ends, self.lines = list(ends), list[JobEvent]()
        self.probes = list(probes)
        self.opened, self.seconds, self.away = 0, seconds, 0
        self.held: list[int] = []
        self.troubles = Troubles(self.lines.append)
        self.stopping = Event()

    def open(self) -> Any:
        self.opened += 1
        generation, end = self.opened, self.ends.pop(0)
        if end == "open":
            raise Transient("no answer")
        self.held.append(generation)
        job = SimpleNamespace(
            end_=end,
            last_batch=SimpleNamespace(at=0.0) if end == "late" else None,
            driver=SimpleNamespace(tally=Counter()),
            troubles=self.troubles,
            settings=Settings(
                outage_seconds=self.seconds, store="postgres", store_url="postgresql://me@db:5432/states"
            ),
            registry=SimpleNamespace(renew=lambda _: self.answer(), binding=self.answer),
            admin=SimpleNamespace(names=lambda _seconds: self._broker()),
            lease=Lease(job="main", generation=generation, owner="one", lanes=1),
            stopping=self.stopping,
            begin=lambda: None,
            phase=JobPhase.STARTS,
        )
        job.end = lambda: self._end(job)
        return job

    def _end(self, job: Any) -> None:
        if job.phase is not JobPhase.ENDED:
            job.phase = JobPhase.ENDED
            self.held.remove(job.lease.generation)

    def _broker(self) -> None:
        """The answer of the broker to a probe."""
        if self.away:
            self.away -= 1
            raise KafkaError("cannot list the topics at 127.0.0.1:9092: no answer")

    def answer(self) -> None:
        """The answer of the registry to a probe."""
        assert len(self.held) <= 1
        if self.probes:
            raise self.probes.pop(0)


def run_fake(job: Any, *, once: bool) -> None:
    job.driver.tally["read"] += 10
    match job.end_:
        case "fail" | "late":
            raise Outage("the batch failed: no answer", part="store", cure="wait")
        case "throttle":
            raise Outage("the batch failed: throttled", part="store", cure="wait", throttled=True)
        case "wrong":
            raise Terminal("no table")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    store = SimpleNamespace(describe=lambda: None, close=lambda: None)
    monkeypatch.setattr(module, "run_job", run_fake)
    monkeypatch.setattr(module, "open_store", lambda _: store)
    monkeypatch.setattr(outages, "FIRST_SECONDS", 0.0)
    return lambda runs: run_again(runs.open, once=True, stopping=runs.stopping)


def test_a_job_continues_after_outages_and_counts_all_its_work(run: Callable[..., Any]) -> None:
    runs = Runs("fail", "open", *["fail"] * 20, "good")
    job = run(runs)
    assert (job.end_, job.driver.tally["read"]) == ("good", 220)
    assert runs.held == [23]


def test_a_run_whose_broker_is_away_keeps_its_lease_until_the_broker_answers(run: Callable[..., Any]) -> None:
    runs = Runs("fail", "good")
    runs.away = 3
    assert run(runs).end_ == "good"
    assert runs.opened == 2, "no start fails meanwhile, and gives the lease back"


def test_the_log_says_once_what_the_job_waits_for(run: Callable[..., Any]) -> None:
    runs = Runs("fail", "fail", "good")
    run(runs)
    (line,) = runs.lines
    assert (line.what, line.level) == ("degraded", "warning")
    assert re.fullmatch(
        r"store: the batch failed: no answer \(the store is at db:5432/states\); the job waits, and then continues where it was; "
        r"the job gives up at \d\d:\d\d:\d\d: wait",
        line.text,
    )


def test_a_run_that_waits_keeps_its_lease_until_the_registry_and_the_store_answer(run: Callable[..., Any]) -> None:
    away = RegistryUnreachable("no connection to the registry")
    runs = Runs("fail", "good", probes=(away, away, away))
    run(runs)
    assert runs.opened == 2
    assert [trouble.part for trouble in runs.troubles.now] == ["store", "registry"]


def test_a_run_whose_lease_another_run_took_meanwhile_ends(run: Callable[..., Any]) -> None:
    runs = Runs("fail", "good", probes=(LeaseLost("another run has taken it"),))
    with pytest.raises(Fenced, match="generation 1 lost its lease"):
        run(runs)
    assert (runs.opened, runs.held) == (1, [])


def test_a_job_ends_when_a_part_does_not_answer_for_too_long(run: Callable[..., Any]) -> None:
    runs = Runs(*["fail"] * 500, seconds=0)
    with pytest.raises(Outage) as ended:
        run(runs)
    text = str(ended.value)
    assert text.startswith(
        "the batch failed: no answer (the store is at db:5432/states); the job has waited for the store for "
    )
    assert text.endswith("(--outage-seconds 0), and ends. No state is lost: wait; then start the job again")
    assert runs.held == []


def test_a_job_never_gives_up_a_store_that_throttles(run: Callable[..., Any]) -> None:
    runs = Runs(*["throttle"] * 50, "good", seconds=0)
    assert run(runs).end_ == "good"


@pytest.mark.parametrize(("end", "error"), [("open", Transient), ("wrong", Terminal)])
def test_a_first_start_that_fails_and_a_failure_that_lasts_end_the_job(
    run: Callable[..., Any], end: str, error: type[Exception]
) -> None:
    runs = Runs(end, "good")
    with pytest.raises(error):
        run(runs)
    assert runs.opened == 1


def test_a_signal_between_two_runs_ends_the_job_and_gives_the_lease_back(run: Callable[..., Any]) -> None:
    runs = Runs("fail", "good")
    runs.stopping.set()
    with pytest.raises(Stopped):
        run(runs)
    assert runs.held == []


def test_a_later_start_is_by_the_registrys_version_of_then(monkeypatch: pytest.MonkeyPatch) -> None:
    versions, asked = iter([11, 12]), list[tuple[int, bool]]()
    monkeypatch.setattr(module, "plan_of", lambda version: SimpleNamespace(version=version))
    monkeypatch.setattr(module, "keep_last_progress", lambda _: None)

    def prepare(request: RunRequest) -> Any:
        asked.append((request.plan.version, request.take_over))
        return SimpleNamespace(lease=1)

    def again(open_: Callable[[], Any], **_: Any) -> Any:
        return [open_(), open_(), open_()][-1]

    monkeypatch.setattr(module, "prepare_job", prepare)
    monkeypatch.setattr(module, "run_again", again)
    registry: Any = SimpleNamespace(snapshot=lambda: next(versions), runs=SimpleNamespace(begin=lambda _: None))
    plan: Any = SimpleNamespace(version=2)
    request = RunRequest(settings=Settings(), plan=plan, registry=registry, report=lambda _: None, take_over=True)
    run_to_end(request, once=True, opened=lambda _: None)
    assert asked == [(2, True), (11, False), (12, False)]
