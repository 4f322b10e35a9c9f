"""A set of the cache is complete or absent, and one process at a time fetches it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from processor.local.cache import cache_directory, fetch_once


def silent(_: str) -> None: ...


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "cache" / "statestore"


def write(directory: Path) -> None:
    (directory / "a.jar").write_text("a")


def test_a_set_is_filled_once() -> None:
    calls: list[Path] = []

    def fill(directory: Path) -> None:
        calls.append(directory)
        write(directory)

    for _ in range(2):
        found = fetch_once("set-1", fill, silent)
    assert [path.name for path in found.iterdir()] == ["a.jar"]
    assert len(calls) == 1


def test_an_interrupted_fetch_leaves_no_incomplete_set(cache: Path) -> None:
    def interrupted(directory: Path) -> None:
        write(directory)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_once("set-1", interrupted, silent)
    assert not (cache / "jars" / "set-1").exists()
    assert not list((cache / "jars").glob(".set-1.new-*"))
    assert (fetch_once("set-1", write, silent) / "a.jar").exists()


def test_the_next_fetch_removes_the_files_of_a_killed_fetch(cache: Path) -> None:
    abandoned = cache / "jars" / ".set-1.new-abc"
    abandoned.mkdir(parents=True)
    fetch_once("set-1", write, silent)
    assert not abandoned.exists()


FETCH = """
import sys, time
from pathlib import Path
from processor.local.cache import fetch_once
def fill(directory):
    print("filled", flush=True)
    time.sleep(0.5)
    (directory / "a.jar").write_text("a")
print((fetch_once("set-1", fill, print) / "a.jar").read_text())
"""


def test_two_processes_at_the_same_time_fetch_a_set_once() -> None:
    running = [subprocess.Popen([sys.executable, "-c", FETCH], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=300)[0].splitlines() for process in running]
    assert [lines[-1] for lines in outputs] == ["a", "a"]
    assert sum("filled" in lines for lines in outputs) == 1


def test_without_a_home_the_cache_is_a_private_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = cache_directory()
    assert found.parent == tmp_path.resolve()
    assert found.stat().st_mode & 0o777 == 0o700


def test_the_cache_skips_a_directory_that_it_cannot_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == (tmp_path / "home" / ".cache" / "statestore").resolve()


def test_a_set_that_an_image_brought_serves_a_user_who_may_not_write_it(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    (cache / "jars" / "set-1").mkdir(parents=True)
    monkeypatch.setattr(os, "access", lambda path, _: not Path(path).is_relative_to(cache))  # root may write everywhere
    assert fetch_once("set-1", write, silent) == (cache / "jars" / "set-1").resolve()
