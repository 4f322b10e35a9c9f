"""A living job keeps its lease however long a round takes, fails in one line, and gives the lease back when it is stopped."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from threading import Thread
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from benchmarks.job_process import run_command
from processor.engine.rounds.driver import Driver
from processor.errors import Fenced, StatestoreError
from processor.job.run.run_job import run_job
from registry.errors import LeaseHeld
from tests.faulty.processes import write_settings
from tests.integration.job.plain_client import plain_client
from tests.support.sampled import sampled

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # PySpark's own, and those of the command's end
COMMAND = [sys.executable, "-c", "import sys; from processor.cli.main import main; sys.exit(main(sys.argv[1:]))", "run"]


def take_lease(scene: Scene) -> None:
    settings = scene.settings
    scene.registry.take_lease(settings.job, "another", settings.lanes, take_over=False, expires_after=5)


@pytest.mark.rest
def test_a_round_longer_than_the_lease_keeps_the_lease(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Driver, "background_work", lambda driver: sleep(8))
    with scene.opened(lease_seconds=5) as job:
        settling = Thread(target=job.idle)
        settling.start()
        sleep(7)
        with pytest.raises(LeaseHeld):
            take_lease(scene)
        settling.join()


@pytest.mark.rest
def test_an_idle_job_stops_when_another_took_its_lease(scene: Scene) -> None:
    with scene.opened(lease_seconds=5) as job:
        scene.registry.take_lease(job.lease.job, "another", 2, take_over=True, expires_after=60)
        with pytest.raises(Fenced, match="generation 1 lost its lease; another job took over"):
            run_job(job, once=False)


@pytest.mark.rest
def test_a_failure_between_batches_is_one_line(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def settle(driver: Driver) -> None:
        driver.rounds.executor.spark.sparkContext.parallelize([0]).map(lambda zero: 1 / zero).collect()  # type: ignore[attr-defined]

    monkeypatch.setattr(Driver, "background_work", settle)
    with scene.opened() as job, pytest.raises(StatestoreError) as failed:
        run_job(job, once=False)
    assert str(failed.value) == "the work between batches failed: ZeroDivisionError: division by zero"


@pytest.mark.rest
@pytest.mark.parametrize("moment", sampled(["while it starts", "in a batch", "between batches"], "between batches"))
def test_sigterm_to_all_processes_of_a_job_ends_it_and_gives_the_lease_back(
    scene: Scene, rows: SimpleNamespace, tmp_path: Path, moment: str
) -> None:
    """As systemd does it: the JVM and the Python workers get the signal, too."""
    scene.produce(*(rows.user(n, f"user{n}") for n in range(1500 if moment == "in a batch" else 1)))
    log, words = tmp_path / "log", [*COMMAND, *write_settings(scene.settings, tmp_path / "settings.toml")]
    reached: dict[str, Callable[[], bool]] = {
        "while it starts": lambda: log.exists() and _has_java(process),
        "in a batch": lambda: _has_rows(scene),
        "between batches": lambda: " batch 0: " in log.read_text(),
    }
    with run_command(words, log) as process:
        deadline = monotonic() + 600
        while not reached[moment]():
            assert process.poll() is None, log.read_text()
            assert monotonic() < deadline, log.read_text()
            sleep(0.05)
        for member in [*_family(process), psutil.Process(process.pid)]:
            with suppress(ProcessLookupError):  # the signal to one may end another
                os.kill(member.pid, signal.SIGTERM)
        assert process.wait(300) == 0, log.read_text()
    assert "Traceback" not in log.read_text()
    take_lease(scene)


def _family(process: Popen[bytes]) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return list(psutil.Process(process.pid).children(recursive=True))
    return []


def _has_java(process: Popen[bytes]) -> bool:
    with suppress(psutil.NoSuchProcess):  # one of them ends meanwhile
        return any("java" in member.name() for member in _family(process))
    return False


def _has_rows(scene: Scene) -> bool:
    client = plain_client(scene.settings)
    try:
        items = client.scan(TableName=scene.settings.table)["Items"]
        return any(item["PK"]["S"].startswith("TABLE#") for item in items)
    except client.exceptions.ResourceNotFoundException:
        return False
    finally:
        client.close()
