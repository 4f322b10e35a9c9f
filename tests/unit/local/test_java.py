"""The error about a missing or an old Java names the Java to install."""

import stat
from pathlib import Path

import pytest

from processor.errors import PartError
from processor.local.java import find_java


def fake_java(directory: Path, version_line: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return java


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_without_java_the_error_names_the_java_to_install() -> None:
    with pytest.raises(PartError, match=r"^Java: there is no java on PATH, and JAVA_HOME is not set\. Install a JDK"):
        find_java()


def test_the_error_names_a_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(PartError, match=r"JAVA_HOME is .*gone, which has no bin/java"):
        find_java()


@pytest.mark.parametrize("line", ['java version "1.8.0_292"', 'openjdk version "11.0.2" 2019-01-15'])
def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    fake_java(tmp_path, line)
    with pytest.raises(PartError, match=r"is version (8|11), which is too old"):
        find_java()


def test_java_home_wins_over_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = fake_java(tmp_path / "home", 'openjdk version "21" 2023-09-19')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == str(java)


def test_a_java_that_prints_no_version_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    fake_java(tmp_path, "no runtime present")
    with pytest.raises(PartError, match="prints no version: no runtime present"):
        find_java()
