"""`python -m infra.package`: makes all files of a deployment and prints their sizes."""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from infra.package.environment import PYTHON_PREFIX, find_python, make_environment, pack_environment
from infra.package.jar_list import jar_lists, read_jars
from infra.package.lock_files import PYTHONS
from infra.package.sbom import write_sbom
from infra.package.wheel import ROOT, build_wheel

EPOCH = 315_532_800
"""1980, the oldest time that a wheel can hold: the time of each file, where SOURCE_DATE_EPOCH gives none."""
JOBS = ROOT / "infra" / "jobs"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.package", description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "package", help="directory (default build/package)")
    parser.add_argument(
        "--python-prefix", default=PYTHON_PREFIX, help=f"where the platform has its Python (default {PYTHON_PREFIX})"
    )
    options = parser.parse_args()
    package(options.to.absolute(), options.python_prefix)
    for file in sorted(options.to.iterdir()):
        print(f"{file.stat().st_size:>12,} bytes  {file.name}")
    return 0


def package(directory: Path, prefix: str = PYTHON_PREFIX) -> None:
    """Makes all files in the directory, and removes what was there. A line names an archive whose Python is missing here."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH))
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    wheel = build_wheel(directory, epoch)
    version = wheel.name.split("-")[1]
    with tempfile.TemporaryDirectory() as temporary:
        environments: dict[str, Path] = {}
        for python_version in PYTHONS:
            archive = directory / f"statestore-{version}-py{python_version}.tar.gz"
            if (python := find_python(python_version)) is None:
                text = f"there is no python{python_version} on PATH or in pyenv: {archive.name} is not made"
                print(text, file=sys.stderr)
                continue
            environment = Path(temporary, python_version)
            environments[archive.name] = make_environment(environment, python_version, python, wheel, prefix)
            pack_environment(environment, archive, epoch)
        jars = {each.name: list(read_jars(each)) for each in jar_lists()}
        write_sbom(directory / "sbom.json", version, environments, jars, epoch)
    for file in (*jar_lists(), *sorted(JOBS.glob("*_job.py"))):
        shutil.copyfile(file, directory / file.name)
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(directory.iterdir())]
    (directory / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
