"""What `kill -9` of the whole driver process, in the middle of a batch, and SIGTERM do: nothing is lost, nothing is wrong."""

import gc
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import boto3
import psutil
import pytest

from processor.cli.main import main
from processor.kafka import Admin

Story = Any  # conftest's
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # the command leaves connections to its process's end


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """What is left to the process's end goes while its warnings are ignored."""
    yield
    gc.collect()


@contextmanager
def running(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a group of its own, whose end nothing of it outlives; its stderr goes to a file."""
    with log.open("wb") as stderr:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True)
    family: list[psutil.Process] = []
    try:
        yield process
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _, left = psutil.wait_procs(family, timeout=30)
        for orphan in left:
            orphan.kill()


def wait_until(there: Callable[[], object], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = monotonic() + 180
    while not there():
        assert process.poll() is None, log.read_text()
        assert monotonic() < deadline, log.read_text()
        sleep(0.02)


def rows_stored(story: Story) -> Callable[[], bool]:
    """Whether the first rows of a batch stand in the table."""
    client = boto3.client("dynamodb", endpoint_url=story.endpoint, region_name="us-east-1")

    def there() -> bool:
        try:
            items = client.scan(TableName=story.name, ProjectionExpression="PK")["Items"]
        except client.exceptions.ResourceNotFoundException:
            return False
        return any(item["PK"]["S"].startswith("TABLE#") for item in items)

    return there


def messages_sent(story: Story) -> Callable[[], bool]:
    """Whether the first messages of a batch are at the broker, committed or not."""
    admin = Admin(story.bootstrap_servers, {})
    return lambda: story.topic in admin.topics([story.topic]) and any(admin.ends(story.topic).values())


@pytest.mark.parametrize(
    ("point", "again"),
    [
        pytest.param(rows_stored, [], id="after the first rows of a batch, the next run waits for the lease"),
        pytest.param(messages_sent, ["--take-over"], id="after the first messages of a batch, the next run takes over"),
    ],
)
def test_a_killed_run_is_made_good_by_the_next_one(
    story: Story,
    statestore: list[str],
    tmp_path: Path,
    point: Callable[[Story], Callable[[], bool]],
    again: list[str],
) -> None:
    log, to = tmp_path / "log", tmp_path / "published.jsonl"
    with running([*statestore, *story.run, *story.define, "--from", story.file], log) as killed:
        wait_until(point(story), killed, log)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    assert not list(story.checkpoint.glob("commits/[0-9]*")), f"the batch was over too soon: {log.read_text()}"

    assert main([*story.run, "--once", "--to", str(to), *again]) == 0
    assert story.wrong(str(to)) == []


def test_sigterm_ends_a_run_within_one_batch_and_the_next_run_goes_on(
    story: Story, statestore: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, to = tmp_path / "log", tmp_path / "published.jsonl"

    def batches() -> int:
        return log.read_text().count("\nbatch ")

    words = [*statestore, *story.run, *story.define, "--from", story.file, "--batch", "40"]
    with running(words, log) as stopped:
        wait_until(batches, stopped, log)
        stopped.send_signal(signal.SIGTERM)
        before = batches()
        assert stopped.wait(120) == 0, log.read_text()
    assert batches() <= before + 1
    assert " records read = " in log.read_text()
    first = read_count(log.read_text())

    assert main([*story.run, "--once", "--to", str(to)]) == 0
    assert read_count(capsys.readouterr().err) > 0
    assert 0 < first < sum(map(len, story.tables.values()))
    assert story.wrong(str(to)) == []


def read_count(summary: str) -> int:
    """The records read, as the summary says."""
    (line,) = [line for line in summary.splitlines() if " records read = " in line]
    return int(line.split()[0])
