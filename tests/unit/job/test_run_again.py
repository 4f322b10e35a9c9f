"""A job opens again after a store that did not answer, and ends after several such failures in a row."""

from collections import Counter
from collections.abc import Callable
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from processor.errors import Stopped
from processor.job import run_again as module
from processor.job.run_again import MOST_FAILURES, run_again
from processor.rounds.job_event import JobEvent
from statestore.errors import Terminal, Transient


class Runs:
    """Opens jobs that end as given: `fail` fails before a batch, `late` after one, `open` at the start, `wrong` for good."""

    def __init__(self, *ends: str) -> None:
        self.ends, self.lines = list(ends), list[JobEvent]()
        self.opened = 0

    def open(self) -> Any:
        self.opened += 1
        end = self.ends.pop(0)
        if end == "open":
            raise Transient("no answer")
        return SimpleNamespace(
            end=end, last_batch=1 if end == "late" else None, driver=SimpleNamespace(tally=Counter())
        )


def run_fake(job: Any, *, once: bool) -> None:
    job.driver.tally["read"] += 10
    if job.end in ("fail", "late"):
        raise Transient("no answer")
    if job.end == "wrong":
        raise Terminal("no table")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(module, "run_job", run_fake)
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)

    def run(runs: Runs, stopping: Event | None = None) -> Any:
        return run_again(runs.open, once=True, stopping=stopping or Event(), report=runs.lines.append)

    return run


def test_a_job_continues_after_failures_that_pass_and_counts_all_its_work(run: Callable[..., Any]) -> None:
    runs = Runs("fail", "open", "good")
    job = run(runs)
    assert (job.end, job.driver.tally["read"]) == ("good", 20)
    assert [(line.level, line.text) for line in runs.lines] == [
        ("warning", f"no answer; the job starts again in 0 s (failure {n} of {MOST_FAILURES} in a row)") for n in (1, 2)
    ]


def test_a_job_ends_after_several_failures_without_a_batch_between_them(run: Callable[..., Any]) -> None:
    runs = Runs(*["fail"] * (MOST_FAILURES - 1), "late", *["fail"] * MOST_FAILURES)
    with pytest.raises(Transient):
        run(runs)
    assert runs.opened == 2 * MOST_FAILURES - 1


@pytest.mark.parametrize(("end", "error"), [("open", Transient), ("wrong", Terminal)])
def test_a_first_start_that_fails_and_a_failure_that_lasts_end_the_job(
    run: Callable[..., Any], end: str, error: type[Exception]
) -> None:
    runs = Runs(end, "good")
    with pytest.raises(error):
        run(runs)
    assert runs.opened == 1


def test_a_signal_between_two_runs_ends_the_job(run: Callable[..., Any]) -> None:
    stopping = Event()
    stopping.set()
    with pytest.raises(Stopped):
        run(Runs("fail", "good"), stopping)
