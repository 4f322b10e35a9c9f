"""The embedded parts answer. However their owner ends, no process and no file of them remains."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from processor.environment import embedded as parts
from processor.environment.embedded import embedded_parts
from processor.environment.programs.program import EmbeddedPart
from processor.environment.programs.servers import start_dynamodb_local, start_moto
from processor.errors import PartError
from tests.support.sampled import sampled

Processes = Callable[[Path], list[str]]

OWNER = """
import signal, sys, time
from pathlib import Path
from processor.environment.embedded import embedded_parts
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores SIGINT
with embedded_parts(Path(sys.argv[1])):
    print("up", flush=True)
    time.sleep(600)
"""


def gone(processes: Processes, directory: Path, within: float = 300) -> bool:
    deadline = time.monotonic() + within
    places = directory, Path(tempfile.gettempdir())
    while processes(directory) or any(list(place.iterdir()) for place in places):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def owner(tmp_path: Path, processes: Processes) -> subprocess.Popen[str]:
    running = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    with running.stdout:
        assert running.stdout.readline() == "up\n"
    assert len(processes(tmp_path)) >= 2
    return running


@pytest.mark.rest
def test_two_sets_of_parts_answer_at_the_same_time_in_paths_with_spaces_and_leave_nothing(
    tmp_path: Path, talk: SimpleNamespace, processes: Processes
) -> None:
    places = tmp_path / "with a space, a comma and é", tmp_path / "b"
    with embedded_parts(places[0]) as one, embedded_parts(places[1], store="dynamodb") as two:
        assert (one.store, two.store) == ("postgres", "dynamodb")
        talk.use(one)
        talk.use(two)
        assert len(processes(tmp_path)) >= 5
    assert processes(tmp_path) == []
    assert [list(place.iterdir()) for place in places] == [[], []]


@pytest.mark.rest
def test_the_parts_start_without_a_home_directory_and_an_exception_in_the_block_ends_them(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("~/.cache").expanduser()))
    with pytest.raises(ZeroDivisionError, match=r"^127\.0\.0\.1:"), embedded_parts(tmp_path) as addresses:
        raise ZeroDivisionError(addresses.bootstrap_servers)
    assert gone(processes, tmp_path, within=0.1)


def test_a_part_that_cannot_start_ends_the_others(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PartError("Postgres", "it does not start", "look")

    monkeypatch.setattr(parts, "start_store_postgres", refuse)
    with pytest.raises(PartError, match="Postgres: it does not start"), embedded_parts(tmp_path):
        pass
    assert gone(processes, tmp_path, within=0.1)


@pytest.mark.rest
@pytest.mark.parametrize("number", sampled([signal.SIGINT, signal.SIGTERM], signal.SIGTERM))
def test_a_signal_ends_the_parts_before_the_owner(
    tmp_path: Path, owner: subprocess.Popen[str], processes: Processes, number: signal.Signals
) -> None:
    owner.send_signal(number)
    assert owner.wait(300) == {signal.SIGINT: -signal.SIGINT, signal.SIGTERM: 143}[number]
    assert gone(processes, tmp_path, within=0.1)


def test_a_killed_owner_leaves_no_process_and_no_file(
    tmp_path: Path, owner: subprocess.Popen[str], processes: Processes
) -> None:
    owner.kill()
    owner.wait()
    assert gone(processes, tmp_path)


@pytest.mark.rest
def test_a_killed_owner_whose_fork_lives_leaves_no_process(tmp_path: Path, processes: Processes) -> None:
    forked = OWNER.replace("    print", "    import os\n    os.fork() or (time.sleep(30), os._exit(0))\n    print")
    running = subprocess.Popen([sys.executable, "-c", forked, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    with running.stdout:
        running.stdout.readline()
    running.kill()
    running.wait()
    assert gone(processes, tmp_path)


@pytest.mark.rest
def test_killed_reapers_leave_no_process(tmp_path: Path, owner: subprocess.Popen[str], processes: Processes) -> None:
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(owner.pid)], capture_output=True, text=True, check=True)
    for pid in listing.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    deadline = time.monotonic() + 300
    while processes(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes(tmp_path) == []
    owner.terminate()
    owner.wait(300)


@pytest.mark.parametrize("start", [start_moto, start_dynamodb_local])
def test_each_dynamodb_answers_and_stops(
    tmp_path: Path, talk: SimpleNamespace, processes: Processes, start: Callable[[Path], EmbeddedPart]
) -> None:
    part = start(tmp_path / "dynamodb")
    try:
        assert talk.dynamodb(part.endpoint) == []
        assert part.alive()
    finally:
        part.stop()
    assert not part.alive()
    assert processes(tmp_path) == []
