"""Apache Ivy, as PySpark carries it, run as a program: resolve modules of a Maven repository and copy their files."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from processor.errors import PartError
from processor.local.cache import Progress, cache_directory
from processor.local.java import find_java

PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
ATTEMPTS = 2
EVERY = 10  # one line of progress for so many files
NOT_FOUND = ": not found"


class NotFound(PartError):
    """The repository does not hold the module: final, another attempt does not help."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of a Maven repository."""

    organisation: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.version}"


class Ivy:
    """Ivy with a working directory of its own in our cache (~/.ivy2 is not touched). One process at a time per name."""

    def __init__(self, name: str, pyspark_jars: Path, progress: Progress) -> None:
        self._name = name
        self._jars = pyspark_jars
        self._progress = progress
        self._home = cache_directory() / "ivy" / name

    def fetch(self, modules: list[Module], into: Path, *, types: str = "", transitive: bool = True) -> None:
        """Copy the files of the modules, with all they need if `transitive`, into a directory.

        Raises NotFound, or PartError after a second attempt.
        """
        for attempt in range(1, ATTEMPTS + 1):
            code, output = self._run(modules, into, types, transitive)
            if code == 0:
                return
            if any(NOT_FOUND in line for line in output):
                raise NotFound(
                    self._name, f"{', '.join(map(str, modules))} is not in the repository", "try another version"
                )
            if attempt < ATTEMPTS:
                self._progress(f"{self._name}: the download failed, once more")
        said = "\n".join(line for line in output if line.strip())[-1500:]
        cure = "check the network, or name an Ivy settings file with your repository in IVY_SETTINGS"
        raise PartError(self._name, f"its jars could not be fetched; Ivy said:\n{said}", cure)

    def description(self, module: Module) -> Path:
        """Ivy's own description of a module that was fetched: its dependencies and their versions."""
        return self._home / "cache" / module.organisation / module.name / f"ivy-{module.version}.xml"

    def forget(self) -> None:
        """Remove Ivy's own copies, when all is fetched; until then they spare a second attempt the download."""
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
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
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
            done = sum("[SUCCESSFUL" in line for line in output)
            if done % EVERY == 0:
                self._progress(f"{self._name}: {done} files")


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
