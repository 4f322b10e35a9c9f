"""Runs the fast tests and those that start Spark on another Spark, with its Python: `python -m tests.support.other_spark 4.1.1`.

Each Spark has an environment of its own in `.statestore/spark`: the first run makes it, which takes minutes and 1 GB. The marker
`spark` names the tests that start Spark. Does not touch `.venv`.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from infra.package.environment import find_python

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".statestore" / "spark"
PYTHONS = {"3.5.7": "3.11", "4.0.0": "3.13", "4.1.1": "3.13"}
"""The Python of each Spark."""
FAST = ("tests/unit", "tests/architecture", "tests/fuzz")
STARTS_SPARK = ("--no-loadscope-reorder", "tests/integration", "tests/acceptance")


class NoPython(Exception):
    """This machine lacks the Python of a Spark. The message says which, and how to get it."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.other_spark", description=__doc__)
    parser.add_argument("sparks", nargs="+", choices=PYTHONS, metavar="SPARK", help=f"of {', '.join(PYTHONS)}")
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--slow", action="store_true", help="run the slow tests, too")
    extent.add_argument("--start", action="store_true", help="run only those tests of `make test` that start Spark")
    options = parser.parse_args()
    for spark in options.sparks:
        try:
            python = spark_python(spark)
        except NoPython as error:
            print(error, file=sys.stderr)
            if os.environ.get("CI") == "true":
                return 1
            continue
        for marker, folders in runs(slow=options.slow, start=options.start):
            print(f"== Spark {spark}: {' '.join(folders)}", flush=True)
            words = [str(python), "-m", "pytest", "-q", "-m", marker, "-n", "2", "--dist", "loadfile", *folders]
            if status := subprocess.run(words, cwd=ROOT, check=False).returncode:
                return status
    return 0


def runs(*, slow: bool, start: bool) -> list[tuple[str, tuple[str, ...]]]:
    """The markers and the folders of each run of pytest."""
    if start:
        return [("spark and not slow and not rest", STARTS_SPARK)]
    return [("not slow", FAST), ("spark" if slow else "spark and not slow", STARTS_SPARK)]


def spark_python(spark: str) -> Path:
    """The Python of an environment with this Spark, and with this checkout. Raises NoPython."""
    directory = HOME / spark
    python, stamp = directory / "bin" / "python", directory / "installed"
    wanted = f"{ROOT}\n{(ROOT / 'pyproject.toml').read_text(encoding='utf-8')}"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    version = PYTHONS[spark]
    if (found := find_python(version)) is None:
        raise NoPython(
            f"there is no python{version} on PATH or in pyenv, so nothing runs on Spark {spark}: install it, for example by "
            f"`pyenv install {version}`"
        )
    print(f"Spark {spark}: pip installs it and statestore into {directory} (minutes, 1 GB)", flush=True)
    subprocess.run([found, "-m", "venv", "--clear", str(directory)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--editable", ".[dev]", f"pyspark=={spark}"], cwd=ROOT, check=True)
    stamp.write_text(wanted, encoding="utf-8")
    return python


if __name__ == "__main__":
    sys.exit(main())
