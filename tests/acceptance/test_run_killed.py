"""Kills the real job at named points of its work: no change is lost, and every last document equals the SQL answer.

The job runs on a real broker, Postgres and DynamoDB Local. A proxy before DynamoDB Local recognises each point by a request of
the job, and there it sends a signal to a process of the job.
"""

import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import psutil
import pytest

from benchmarks.job_process import run_command
from processor.cli.main import main
from tests.faulty.points import POINTS, AtPoint
from tests.faulty.processes import executor_of, sender_of
from tests.faulty.proxy import Request, proxy
from tests.support.sampled import sampled

Story = Any  # conftest's
# the command closes some connections only with its process
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

BATCH = 80
"""Records of a micro-batch: the story has four micro-batches."""
IN_A_TASK = ("after the first write", "between write and assemble", "while publishing", "during settle")
AFTER_A_ROUND = ("after the commit of the batch", "during settle", "while open changes are closed")
"""The points that the job reaches after the first batch has ended. It reaches all others before."""
AFTER_A_COMMIT = ("after the commit of the batch", "while open changes are closed")
EITHER_SIDE_OF_A_COMMIT = ("during settle",)
"""The first batch is due to settle 0.2 s after its round: either before or after Spark commits it."""


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collects the garbage of the module while its warnings are ignored."""
    yield
    gc.collect()


@dataclass(kw_only=True)
class InterruptedRun:
    """A run of the job that got a signal at a point. `ended`: how many batches had ended by then; `committed`: how many Spark had
    committed. `receiver`: the process that got the signal."""

    process: subprocess.Popen[bytes]
    log: Path
    ended: int = 0
    committed: int = 0
    receiver: psutil.Process | None = None

    def batches(self) -> int:
        """How many batches have ended, by the log."""
        return self.log.read_text().count(" info    batch ")

    def assert_point(self, point: str) -> None:
        """Fails if the signal came at another point of the work than `point`."""
        assert (self.ended > 0) == (point in AFTER_A_ROUND), f"{point}: {self.ended} batches had ended"
        if point not in EITHER_SIDE_OF_A_COMMIT:
            assert (self.committed > 0) == (point in AFTER_A_COMMIT), (
                f"{point}: {self.committed} batches were committed"
            )

    def assert_receiver_ended(self) -> None:
        """Fails if the process that got the signal does not end."""
        assert self.receiver is not None
        self.receiver.wait(300)


Interrupt = Callable[[Request, subprocess.Popen[bytes]], tuple[psutil.Process, bool]]
"""Sends a signal at a request of a run. Returns the process that gets it, and whether the request continues."""
Interrupted = Callable[..., Any]


@pytest.fixture
def interrupted(story: Story, statestore: list[str], dynamodb_local: str, tmp_path: Path) -> Interrupted:
    """Starts a run, waits until it got its signal at the point, and checks that this was the point."""

    @contextmanager
    def started(point: str, interrupt: Interrupt, *more: str, **environment: str) -> Iterator[InterruptedRun]:
        def act(request: Request) -> bool:
            run.ended, run.committed = run.batches(), len(commits(story))
            run.receiver, continues = interrupt(request, run.process)
            return continues

        def ready() -> bool:
            return point not in AFTER_A_COMMIT or bool(commits(story))

        at = AtPoint(point, act, ready)
        log = tmp_path / "log"
        with proxy(dynamodb_local, at) as endpoint:
            words = [*statestore, *story.run_on(endpoint), *story.define, "--from", story.file, "--batch", str(BATCH)]
            with run_command([*words, *more], log, **environment) as process:
                run = InterruptedRun(process=process, log=log)
                deadline = monotonic() + 600
                while not at.reached.wait(0.1):
                    # the signal ends the process a moment before the layer sets `reached`
                    assert process.poll() is None or at.reached.wait(300), log.read_text()
                    assert monotonic() < deadline, log.read_text()
                run.assert_point(point)
                yield run

    return started


def commits(story: Story) -> list[Path]:
    """The files of the batches that Spark committed, in the checkpoint."""
    return list(story.checkpoint.glob("commits/[0-9]*"))


def kill_driver(_: Request, process: subprocess.Popen[bytes]) -> tuple[psutil.Process, bool]:
    driver = psutil.Process(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    return driver, False


def stop_driver(_: Request, process: subprocess.Popen[bytes]) -> tuple[psutil.Process, bool]:
    driver = psutil.Process(process.pid)
    driver.send_signal(signal.SIGTERM)
    return driver, True


def end_worker(number: signal.Signals) -> Interrupt:
    def interrupt(request: Request, process: subprocess.Popen[bytes]) -> tuple[psutil.Process, bool]:
        worker = sender_of(request, process)
        worker.send_signal(number)
        return worker, False

    return interrupt


def end_executor(number: signal.Signals) -> Interrupt:
    def interrupt(request: Request, process: subprocess.Popen[bytes]) -> tuple[psutil.Process, bool]:
        executor = executor_of(sender_of(request, process))
        executor.send_signal(number)
        return executor, False

    return interrupt


def signalled(*sample: str) -> list[Any]:
    """The points of a task with SIGKILL, one of them also with SIGTERM. All but a sample with SIGKILL are marked slow."""
    ends = [*((point, signal.SIGKILL) for point in IN_A_TASK), ("while publishing", signal.SIGTERM)]
    quick = [(point, signal.SIGKILL) for point in sample]
    return [
        pytest.param(
            point, number, id=f"{number.name} {point}", marks=() if (point, number) in quick else pytest.mark.slow
        )
        for point, number in ends
    ]


@pytest.mark.rest
@pytest.mark.parametrize("point", sampled(POINTS, "after the first write"))
def test_the_next_run_finishes_the_work_of_a_killed_driver(
    story: Story, interrupted: Interrupted, dynamodb_local: str, tmp_path: Path, point: str
) -> None:
    with interrupted(point, kill_driver) as run:
        assert run.process.wait(300) == -signal.SIGKILL
    if point not in EITHER_SIDE_OF_A_COMMIT:
        assert len(commits(story)) == run.committed
    waits = point == "after the first write"  # this case waits for the lease of the killed run; the others take over
    run_to_the_end(story, dynamodb_local, tmp_path, *([] if waits else ["--take-over"]))


@pytest.mark.slow
@pytest.mark.parametrize("point", ["while publishing", "before the commit of the batch", "during settle"])
def test_the_next_run_finishes_the_work_of_a_killed_driver_without_its_checkpoint(
    story: Story, interrupted: Interrupted, dynamodb_local: str, tmp_path: Path, point: str
) -> None:
    with interrupted(point, kill_driver) as run:
        assert run.process.wait(300) == -signal.SIGKILL
    shutil.rmtree(story.checkpoint)
    run_to_the_end(story, dynamodb_local, tmp_path, "--take-over", "--batch", str(BATCH // 3))


@pytest.mark.parametrize("point", sampled(POINTS))
def test_sigterm_ends_a_run_within_one_batch_and_the_next_run_finishes_the_work(
    story: Story, interrupted: Interrupted, dynamodb_local: str, tmp_path: Path, point: str
) -> None:
    with interrupted(point, stop_driver) as run:
        assert run.process.wait(600) == 0, run.log.read_text()
        assert run.batches() <= run.ended + 1
    assert read_count(run.log.read_text()) > 0
    run_to_the_end(story, dynamodb_local, tmp_path)


@pytest.mark.parametrize(("point", "number"), signalled())
def test_spark_repeats_the_task_of_a_killed_python_worker(
    story: Story, interrupted: Interrupted, tmp_path: Path, point: str, number: signal.Signals
) -> None:
    to = tmp_path / "published.jsonl"
    with interrupted(point, end_worker(number), "--spark-master", "local[2,4]", "--once", "--to", str(to)) as run:
        run.assert_receiver_ended()
        assert run.process.wait(600) == 0, run.log.read_text()
    assert story.wrong(str(to)) == []


@pytest.mark.parametrize(("point", "number"), signalled())
def test_spark_repeats_the_tasks_of_a_killed_executor(
    story: Story, interrupted: Interrupted, spark_home: str, tmp_path: Path, point: str, number: signal.Signals
) -> None:
    to = tmp_path / "published.jsonl"
    words = ["--spark-master", "local-cluster[2,1,1024]", "--once", "--to", str(to)]
    with interrupted(point, end_executor(number), *words, SPARK_HOME=spark_home) as run:
        run.assert_receiver_ended()
        assert run.process.wait(300) == 0, run.log.read_text()
    assert story.wrong(str(to)) == []


@pytest.fixture
def spark_home(tmp_path: Path) -> str:
    """The Spark of PySpark, in a directory where executors may write their logs."""
    import pyspark

    home = tmp_path / "spark"
    home.mkdir()
    for entry in Path(pyspark.__path__[0]).iterdir():
        (home / entry.name).symlink_to(entry)
    return str(home)


def run_to_the_end(story: Story, endpoint: str, directory: Path, *more: str) -> None:
    """Runs the job until no work remains. Then every last document equals the answer of Postgres over the tables."""
    to = directory / "published.jsonl"
    assert main([*story.run_on(endpoint), "--once", "--to", str(to), *more]) == 0
    assert story.wrong(str(to)) == []


def read_count(summary: str) -> int:
    """The number of records read, from the summary."""
    (line,) = [line for line in summary.splitlines() if " records read = " in line]
    return int(line.split()[0])
