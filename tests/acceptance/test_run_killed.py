"""The real job on the real broker, Postgres and DynamoDB Local, killed at named points of its work: nothing is lost or wrong.

A proxy before DynamoDB Local sees the job's requests, knows by them where it is, and strikes there.
"""

import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from processor.cli.main import main
from tests.faulty.points import POINTS, At
from tests.faulty.processes import asker, executor_of, running
from tests.faulty.proxy import Request, proxy

Story = Any  # conftest's
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # the command leaves connections to its process's end

BATCH = 80
"""Records a micro-batch: the story has four of these."""
IN_A_TASK = ("after the first write", "between write and assemble", "while publishing", "during settle")
COMMITTED = ("after the commit of the batch", "while open changes are closed")


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """What is left to the process's end goes while its warnings are ignored."""
    yield
    gc.collect()


@dataclass(kw_only=True)
class Struck:
    """A run that was struck. `ended`: how many batches it had ended by then."""

    process: subprocess.Popen[bytes]
    log: Path
    ended: int = 0

    def batches(self) -> int:
        return self.log.read_text().count("\nbatch ")


Strike = Callable[[Request, subprocess.Popen[bytes]], bool]
"""What is done to a run at a request of it; whether the request goes on."""
Strikes = Callable[..., Any]


@pytest.fixture
def strikes(story: Story, statestore: list[str], dynamodb_local: str, tmp_path: Path) -> Strikes:
    """Starts a run that is struck at a point, and waits until it was."""

    @contextmanager
    def started(point: str, strike: Strike, *more: str, **environment: str) -> Iterator[Struck]:
        def hit(request: Request) -> bool:
            run.ended = run.batches()
            return strike(request, run.process)

        def ready() -> bool:
            return point not in COMMITTED or bool(commits(story))

        at = At(point, hit, ready)
        log = tmp_path / "log"
        with proxy(dynamodb_local, at) as endpoint:
            words = [*statestore, *story.run_on(endpoint), *story.define, "--from", story.file, "--batch", str(BATCH)]
            with running([*words, *more], log, **environment) as process:
                run = Struck(process=process, log=log)
                deadline = monotonic() + 180
                while not at.struck.wait(0.1):
                    # the blow ends the process a moment before it is noted
                    assert process.poll() is None or at.struck.wait(10), log.read_text()
                    assert monotonic() < deadline, log.read_text()
                yield run

    return started


def commits(story: Story) -> list[Path]:
    """The batches that the checkpoint says were committed."""
    return list(story.checkpoint.glob("commits/[0-9]*"))


def kill_driver(_: Request, process: subprocess.Popen[bytes]) -> bool:
    os.killpg(process.pid, signal.SIGKILL)
    return False


def stop_driver(_: Request, process: subprocess.Popen[bytes]) -> bool:
    process.send_signal(signal.SIGTERM)
    return True


def end_worker(number: signal.Signals) -> Strike:
    def strike(request: Request, process: subprocess.Popen[bytes]) -> bool:
        asker(request, process).send_signal(number)
        return False

    return strike


def end_executor(number: signal.Signals) -> Strike:
    def strike(request: Request, process: subprocess.Popen[bytes]) -> bool:
        executor_of(asker(request, process)).send_signal(number)
        return False

    return strike


def sampled(points: Iterable[str], *sample: str) -> list[Any]:
    """The points as parameters, all but a sample of them marked slow."""
    return [pytest.param(point, marks=() if point in sample else pytest.mark.slow) for point in points]


def signalled(*sample: str) -> list[Any]:
    """The points of a task with SIGKILL, one of them also with SIGTERM; all but a sample with SIGKILL are marked slow."""
    ends = [*((point, signal.SIGKILL) for point in IN_A_TASK), ("while publishing", signal.SIGTERM)]
    quick = [(point, signal.SIGKILL) for point in sample]
    return [
        pytest.param(
            point, number, id=f"{number.name} {point}", marks=() if (point, number) in quick else pytest.mark.slow
        )
        for point, number in ends
    ]


@pytest.mark.parametrize("point", sampled(POINTS, "after the first write"))
def test_a_killed_driver_is_made_good_by_the_next_run(
    story: Story, strikes: Strikes, dynamodb_local: str, tmp_path: Path, point: str
) -> None:
    with strikes(point, kill_driver) as run:
        assert run.process.wait(60) == -signal.SIGKILL
    assert bool(commits(story)) == (point in COMMITTED) or point == "during settle"
    waits = point == "after the first write"  # for the lease of the killed run; the others take over
    went_on_to_the_end(story, dynamodb_local, tmp_path, *([] if waits else ["--take-over"]))


@pytest.mark.slow
@pytest.mark.parametrize("point", ["while publishing", "before the commit of the batch", "during settle"])
def test_a_killed_driver_is_made_good_without_its_checkpoint(
    story: Story, strikes: Strikes, dynamodb_local: str, tmp_path: Path, point: str
) -> None:
    with strikes(point, kill_driver) as run:
        run.process.wait(60)
    shutil.rmtree(story.checkpoint)
    went_on_to_the_end(story, dynamodb_local, tmp_path, "--take-over", "--batch", str(BATCH // 3))


@pytest.mark.parametrize("point", sampled(POINTS, "while publishing"))
def test_sigterm_ends_a_run_within_one_batch_and_the_next_run_goes_on(
    story: Story, strikes: Strikes, dynamodb_local: str, tmp_path: Path, point: str
) -> None:
    with strikes(point, stop_driver) as run:
        assert run.process.wait(120) == 0, run.log.read_text()
        assert run.batches() <= run.ended + 1
    assert read_count(run.log.read_text()) > 0
    went_on_to_the_end(story, dynamodb_local, tmp_path)


@pytest.mark.parametrize(("point", "number"), signalled("between write and assemble"))
def test_a_killed_python_worker_is_made_good_by_spark(
    story: Story, strikes: Strikes, tmp_path: Path, point: str, number: signal.Signals
) -> None:
    to = tmp_path / "published.jsonl"
    with strikes(point, end_worker(number), "--spark-master", "local[2,4]", "--once", "--to", str(to)) as run:
        assert run.process.wait(180) == 0, run.log.read_text()
    assert story.wrong(str(to)) == []


@pytest.mark.parametrize(("point", "number"), signalled())
def test_a_killed_executor_is_made_good_by_spark(
    story: Story, strikes: Strikes, spark_home: str, tmp_path: Path, point: str, number: signal.Signals
) -> None:
    to = tmp_path / "published.jsonl"
    words = ["--spark-master", "local-cluster[2,1,1024]", "--once", "--to", str(to)]
    with strikes(point, end_executor(number), *words, SPARK_HOME=spark_home) as run:
        assert run.process.wait(240) == 0, run.log.read_text()
    assert story.wrong(str(to)) == []


@pytest.fixture
def spark_home(tmp_path: Path) -> str:
    """PySpark's own Spark, in a directory where executors may keep their logs."""
    import pyspark

    home = tmp_path / "spark"
    home.mkdir()
    for entry in Path(pyspark.__path__[0]).iterdir():
        (home / entry.name).symlink_to(entry)
    return str(home)


def went_on_to_the_end(story: Story, endpoint: str, directory: Path, *more: str) -> None:
    """The next run works off what is left; afterwards every document is what Postgres says of the tables."""
    to = directory / "published.jsonl"
    assert main([*story.run_on(endpoint), "--once", "--to", str(to), *more]) == 0
    assert story.wrong(str(to)) == []


def read_count(summary: str) -> int:
    """The records read, as the summary says."""
    (line,) = [line for line in summary.splitlines() if " records read = " in line]
    return int(line.split()[0])
