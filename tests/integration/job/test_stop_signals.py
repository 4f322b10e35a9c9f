"""SIGTERM ends a job at any moment with status 0 and a line, and the next start does the work that is left."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import Popen
from threading import Event
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.job_process import run_command
from registry.edits import operations
from registry.edits.edit import Signature
from tests.faulty.processes import write_settings
from tests.faulty.proxy import Answer, Relay, Request, proxy

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect
COMMAND = [sys.executable, "-c", "import sys; from processor.cli.main import main; sys.exit(main(sys.argv[1:]))", "run"]
FOREVER = 600
"""Seconds: longer than the test waits for the end."""


@contextmanager
def started(scene: Scene, directory: Path, line: str, **changes: Any) -> Iterator[tuple[Popen[bytes], Path]]:
    """Runs the job in a process, until it prints a line with this text."""
    log = directory / "log"
    words = [*COMMAND, *write_settings(replace(scene.settings, **changes), directory / "settings.toml")]
    with run_command(words, log) as process:
        wait_for(line, log, process)
        yield process, log


def wait_for(line: str, log: Path, process: Popen[bytes]) -> None:
    deadline = monotonic() + 600
    while line not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert monotonic() < deadline, log.read_text()
        sleep(0.05)


def stop(process: Popen[bytes], log: Path) -> list[str]:
    """Sends SIGTERM; returns the text of the lines after it."""
    before = len(log.read_text().splitlines())
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0, log.read_text()
    assert "Traceback" not in log.read_text()
    return [line.partition(" info    ")[2] for line in log.read_text().splitlines()[before:]]


@pytest.mark.slow
def test_a_job_that_waits_for_a_lease_stops(scene: Scene, tmp_path: Path) -> None:
    held = scene.registry.take_lease(scene.settings.job, "another", 2, take_over=False, expires_after=FOREVER)
    with started(scene, tmp_path, "waits for the lease, until it expires: ") as (process, log):
        assert stop(process, log) == [
            "ends before the first batch; a second signal ends the process at once",
            "stopped",
        ]
    assert scene.registry.holds(held)


@pytest.mark.rest
def test_a_job_that_waits_for_the_indexes_at_its_start_stops_and_gives_the_lease_back(
    scene: Scene, tmp_path: Path
) -> None:
    settings = scene.settings
    scene.registry.give_back(scene.registry.take_lease(settings.job, "before", 2, take_over=False, expires_after=5))
    with started(scene, tmp_path, f"waits {FOREVER} s until", wait_seconds=FOREVER) as (process, log):
        assert stop(process, log)[-1] == "stopped"
    scene.registry.take_lease(settings.job, "after", 2, take_over=False, expires_after=5)


@pytest.mark.rest
def test_a_paused_job_stops(scene: Scene, tmp_path: Path) -> None:
    scene.registry.operate(Signature("a test", "a pause"), operations.pause, None, paused=True)
    with started(scene, tmp_path, "all work is paused, and the job reads no topic") as (process, log):
        first, *others = stop(process, log)
    assert first == "finishing this batch; a second signal ends the process at once"
    assert "stopped; the next start does unfinished work again" in others
    (job,) = scene.registry.jobs()
    assert job.last_end is not None
    assert (job.last_end.how, job.last_end.text) == ("stopped", "")
    assert (job.report or {})["doing"] == "has ended"


class StuckProbes:
    """A layer that answers no query for one row, as settling sends them, before the end of the test."""

    def __init__(self) -> None:
        self.reached, self.ended = Event(), Event()

    def __call__(self, request: Request, relay: Relay) -> Answer:
        if "GSI_SK = :v1" in request.body.get("KeyConditionExpression", ""):
            self.reached.set()
            self.ended.wait(FOREVER)
        return relay(request)


@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2])
def test_a_job_whose_settling_does_not_end_stops_and_the_next_settles_again(
    scene: Scene, rows: SimpleNamespace, tmp_path: Path, signals: int
) -> None:
    scene.produce(rows.user(1, "ada"))  # no answer of a query shows this row
    stuck = StuckProbes()
    with proxy(scene.settings.endpoint, stuck) as endpoint:
        with started(scene, tmp_path, " batch 0: ", endpoint=endpoint, lease_seconds=5) as (process, log):
            assert stuck.reached.wait(300), log.read_text()
            if signals == 1:
                assert stop(process, log)[0].startswith("finishing this batch")
                assert "the next start does " in log.read_text()
                assert [job.last_end.how for job in scene.registry.jobs() if job.last_end] == ["stopped"]
            else:
                process.send_signal(signal.SIGTERM)
                wait_for("finishing this batch", log, process)
                process.send_signal(signal.SIGTERM)
                assert process.wait(300) == 128 + signal.SIGTERM
        stuck.ended.set()
    scene.run(lease_seconds=5)
    assert scene.documents() == scene.truth()
