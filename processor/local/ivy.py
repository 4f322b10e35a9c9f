"""Run the Apache Ivy of PySpark as a program: resolve modules of a Maven repository and copy their files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from xml.sax.saxutils import quoteattr

from processor.errors import PartError
from processor.local.cache import ShowProgress, cache_directory
from processor.local.java import find_java

PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
FETCH_ATTEMPTS = 2
FILES_PER_LINE = 10  # files for each line of progress
LINE_SECONDS = 10  # the longest time without a line of progress
NOT_FOUND = ": not found"


class NotInRepository(PartError):
    """The repository does not have the module; another attempt does not help."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of a Maven repository."""

    organisation: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.version}"


class Ivy:
    """Ivy with a working directory of its own in our cache; it does not use ~/.ivy2. One process at a time may use a name."""

    def __init__(self, name: str, pyspark_jars: Path, progress: ShowProgress) -> None:
        self._name = name
        self._jars = pyspark_jars
        self._progress = progress
        self._home = cache_directory() / "ivy" / name

    def fetch(self, modules: list[Module], into: Path, *, types: str = "", transitive: bool = True) -> None:
        """Copy the files of the modules into a directory; if `transitive`, the files of their dependencies too.

        Raises NotInRepository, or PartError after a second attempt.
        """
        for attempt in range(1, FETCH_ATTEMPTS + 1):
            code, output = self._run(modules, into, types, transitive)
            if code == 0:
                return
            if any(NOT_FOUND in line for line in output):
                raise NotInRepository(
                    self._name, f"{', '.join(map(str, modules))} is not in the repository", "try another version"
                )
            if attempt < FETCH_ATTEMPTS:
                self._progress(f"{self._name}: the download failed, trying again")
        last_lines = "\n".join(line for line in output if line.strip())[-1500:]
        cure = "check the network, or set IVY_SETTINGS to an Ivy settings file that names your repository"
        raise PartError(self._name, f"its jars could not be fetched; Ivy printed:\n{last_lines}", cure)

    def description(self, module: Module) -> Path:
        """The path of Ivy's own description of a fetched module: its dependencies and their versions."""
        return self._home / "cache" / module.organisation / module.name / f"ivy-{module.version}.xml"

    def clear(self) -> None:
        """Remove Ivy's own copies of the files. Until then a second attempt needs no download of them."""
        shutil.rmtree(self._home, ignore_errors=True)

    def _run(self, modules: list[Module], into: Path, types: str, transitive: bool) -> tuple[int, list[str]]:
        self._home.mkdir(parents=True, exist_ok=True)
        wanted = self._home / "wanted.xml"
        wanted.write_text(_description(self._name, modules, transitive), encoding="utf-8")
        command = [find_java(), f"-Duser.home={self._home}", "-cp", f"{self._jars}/*", "org.apache.ivy.Main"]
        command += ["-cache", str(self._home / "cache"), "-ivy", str(wanted), "-confs", "default"]
        command += ["-retrieve", f"{into}/{PATTERN}"]
        command += ["-types", *types.split()] if types else []
        if os.environ.get("IVY_SETTINGS"):
            command += ["-settings", os.environ["IVY_SETTINGS"]]
        output: list[str] = []
        with (
            every(
                LINE_SECONDS, lambda seconds: self._progress(f"{self._name}: {_files(output)} files after {seconds} s")
            ),
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run,
        ):
            assert run.stdout is not None
            try:
                for line in run.stdout:
                    output.append(line.rstrip())
                    self._report(output)
            except BaseException:
                run.kill()
                raise
        return run.returncode, output

    def _report(self, output: list[str]) -> None:
        if "[SUCCESSFUL" in output[-1]:
            done = _files(output)
            if done % FILES_PER_LINE == 0:
                self._progress(f"{self._name}: {done} files")


def _files(output: list[str]) -> int:
    """How many files Ivy has fetched, by its output."""
    return sum("[SUCCESSFUL" in line for line in output)


@contextmanager
def every(seconds: int, say: Callable[[int], None]) -> Iterator[None]:
    """Within the block, calls `say` every so many seconds, with the seconds since the beginning."""
    ended = Event()

    def repeat() -> None:
        passed = seconds
        while not ended.wait(seconds):
            say(passed)
            passed += seconds

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _description(name: str, modules: list[Module], transitive: bool) -> str:
    lines = [
        f"<dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)}"
        f' rev={quoteattr(module.version)} conf="default->default" transitive="{str(transitive).lower()}"/>'
        for module in modules
    ]
    return (
        f'<ivy-module version="2.0"><info organisation="statestore" module={quoteattr(name)}/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )
