"""The lists of the jars that the job needs next to the platform's Spark: Maven coordinates, each with its SHA-256.

Each list is what the job ran with in our tests (tests/integration/infra). `python -m infra.package.jar_list DIRECTORY` fetches
the jars of all lists by the Ivy of the installed PySpark, and checks each.
"""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from processor.environment.programs.downloads import Ivy, Module, jars_of_pyspark

LISTS = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """A jar of a list."""

    module: Module
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.module.name}-{self.module.version}.jar"


def jar_lists() -> list[Path]:
    """The lists, in the order of Spark's versions."""
    return sorted(LISTS.glob("jars-spark-*.txt"))


def read_jars(list_: Path) -> Iterator[Jar]:
    """The jars of a list."""
    for line in list_.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            coordinates, sha256 = line.split()
            yield Jar(module=Module(*coordinates.split(":")), sha256=sha256)


def fetch_jars(list_: Path, into: Path) -> list[Path]:
    """Fetches the jars of a list into a directory. Raises SystemExit for a jar with another hash."""
    jars = list(read_jars(list_))
    into.mkdir(parents=True, exist_ok=True)
    ivy = Ivy(list_.stem, jars_of_pyspark(), print)
    ivy.fetch([jar.module for jar in jars], into, types="jar", transitive=False)
    for jar in jars:
        if hashlib.sha256((into / jar.file).read_bytes()).hexdigest() != jar.sha256:
            raise SystemExit(f"{into / jar.file} has another SHA-256 than {list_.name} says: do not use it")
    return [into / jar.file for jar in jars]


if __name__ == "__main__":
    for each in jar_lists():
        for path in fetch_jars(each, Path(sys.argv[1]) / each.stem.removeprefix("jars-")):
            print(path)
