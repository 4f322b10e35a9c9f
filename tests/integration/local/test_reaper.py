"""The reaper removes what an owner who is gone leaves, and leaves it to an owner who lives."""

import subprocess
from pathlib import Path

import pytest

from processor.environment.programs.program import Program, read_pid, start_reaper


@pytest.fixture
def remains(tmp_path: Path) -> Path:
    """A directory that the owner or the reaper removes in the end."""
    directory = tmp_path / "remains"
    directory.mkdir()
    return directory


@pytest.fixture
def reaper(tmp_path: Path, remains: Path) -> subprocess.Popen[str]:
    program = Program(name="a part", directory=tmp_path / "part", argv=("sleep", "600"))
    started = start_reaper("owned", program, remains)
    read_pid(started, program)
    return started


def test_the_closed_input_of_a_killed_owner_counts_before_linux_gives_the_reaper_another_parent(
    reaper: subprocess.Popen[str], remains: Path
) -> None:
    assert reaper.stdin is not None
    reaper.stdin.close()
    assert reaper.wait(300) == 0
    assert not remains.exists()


def test_the_byte_of_an_owner_ends_the_part_and_leaves_the_directory_to_the_owner(
    reaper: subprocess.Popen[str], remains: Path
) -> None:
    assert reaper.stdin is not None
    with reaper.stdin:
        reaper.stdin.write("x")
        reaper.stdin.flush()
        assert reaper.wait(300) == 0
    assert remains.exists()
