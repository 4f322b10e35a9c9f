"""PySpark's own jars decide which modules Ivy asks for; older versions replace those that the repository does not have. A set of
the cache is complete or absent, and one process at a time fetches it. The error about a missing or an old Java names the Java to
install."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from processor.environment.programs import downloads
from processor.environment.programs.downloads import (
    Module,
    NotInRepository,
    cache_directory,
    every,
    fetch_once,
    find_java,
    ivy_progress,
)
from processor.errors import PartError


class Repository:
    """A fake Ivy whose repository has the given versions of Spark's modules; it writes empty jars."""

    def __init__(self, versions: set[str], home: Path) -> None:
        self.versions = versions
        self.home = home

    def __call__(self, _name: str, _jars: Path, _progress: object) -> "Repository":
        return self

    def fetch(self, modules: list[Module], into: Path, *, types: str = "", transitive: bool = True) -> None:
        assert (types, transitive) == ("jar", False)
        for module in modules:
            if (
                module.organisation == downloads.SPARK_ORGANISATION
                and f"{module.name}:{module.version}" not in self.versions
            ):
                raise NotInRepository("x", "y", "z")
            (into / f"{module.name}-{module.version}.jar").touch()

    def clear(self) -> None:
        pass

    def description(self, _module: Module) -> Path:
        path = self.home / "ivy.xml"
        dependencies = (
            ("org.apache.kafka", "kafka-clients", "3.9.1"),
            ("org.apache.commons", "commons-pool2", "2.12.1"),
        )
        lines = "".join(f'<dependency org="{org}" name="{name}" rev="{rev}"/>' for org, name, rev in dependencies)
        path.write_text(f"<ivy-module><dependencies>{lines}</dependencies></ivy-module>")
        return path


@pytest.fixture
def pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(downloads, "jars_of_pyspark", lambda: tmp_path)
    return tmp_path


def fetched(monkeypatch: pytest.MonkeyPatch, pyspark: Path, core: str, versions: set[str]) -> list[str]:
    (pyspark / core).touch()
    monkeypatch.setattr(downloads, "Ivy", Repository(versions, pyspark))
    return sorted(path.name for path in downloads.spark_kafka_jars().iterdir())


def test_the_connector_has_the_versions_of_pyspark(monkeypatch: pytest.MonkeyPatch, pyspark: Path) -> None:
    versions = {"spark-sql-kafka-0-10_2.13:4.0.0", "spark-token-provider-kafka-0-10_2.13:4.0.0"}
    assert fetched(monkeypatch, pyspark, "spark-core_2.13-4.0.0.jar", versions) == [
        "commons-pool2-2.12.1.jar",
        "kafka-clients-3.9.1.jar",
        "spark-sql-kafka-0-10_2.13-4.0.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    ]


def test_an_older_patch_replaces_an_absent_one(monkeypatch: pytest.MonkeyPatch, pyspark: Path) -> None:
    versions = {f"spark-{part}-kafka-0-10_2.12:3.5.{patch}" for part in ("sql", "token-provider") for patch in (3, 7)}
    names = fetched(monkeypatch, pyspark, "spark-core_2.12-3.5.9.jar", versions)
    assert "spark-sql-kafka-0-10_2.12-3.5.7.jar" in names
    assert "spark-token-provider-kafka-0-10_2.12-3.5.7.jar" in names


def test_the_first_release_of_the_major_version_replaces_an_absent_token_provider(
    monkeypatch: pytest.MonkeyPatch, pyspark: Path
) -> None:
    versions = {"spark-sql-kafka-0-10_2.13:4.1.1", "spark-token-provider-kafka-0-10_2.13:4.0.0"}
    names = fetched(monkeypatch, pyspark, "spark-core_2.13-4.1.1.jar", versions)
    assert "spark-sql-kafka-0-10_2.13-4.1.1.jar" in names
    assert "spark-token-provider-kafka-0-10_2.13-4.0.0.jar" in names


def test_the_error_names_a_connector_that_the_repository_does_not_have(
    monkeypatch: pytest.MonkeyPatch, pyspark: Path
) -> None:
    with pytest.raises(PartError, match=r"none of 3\.5\.1, 3\.5\.0 is in the repository"):
        fetched(monkeypatch, pyspark, "spark-core_2.12-3.5.1.jar", set())


def test_without_pyspark_the_error_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(
        PartError, match=r"PySpark is not installed, and its Ivy is needed to fetch the jars\. `make setup`"
    ):
        downloads.spark_kafka_jars()


def test_a_long_download_says_each_moment_how_far_it_is() -> None:
    said: list[int] = []
    enough = Event()

    def say(seconds: int) -> None:
        said.append(seconds)
        if len(said) == 3:
            enough.set()

    with every(0, say):
        assert enough.wait(300)
    assert said[:3] == [0, 0, 0]


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
from processor.environment.programs.downloads import fetch_once
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


def test_the_progress_of_a_download_counts_modules_and_then_megabytes() -> None:
    found = ["\tfound org.slf4j#slf4j-api;1.7.36 in public", "\tfound org.lz4#lz4-java;1.8.0 in public"]
    assert ivy_progress(found) == "2 modules found"
    loaded = ["...... (2048kB)", ".. (0kB)", "\t[SUCCESSFUL ] org.slf4j#slf4j-api;1.7.36!slf4j-api.jar (178ms)"]
    assert ivy_progress([*found, *loaded]) == "1 files, 2 MB"
