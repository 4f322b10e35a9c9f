"""The lock files: one release of each package that the job needs, with the hashes of its files, for each Python.

`python -m infra.package.lock_files` renews them, with the newest releases that pyproject.toml allows.
"""

import subprocess
import sys
from pathlib import Path

PYTHONS = ("3.11", "3.13")
"""Spark 3.5 of Glue 5 and EMR 7 has 3.11, and Spark 4.0 and 4.1 of EMR spark-8.0 and Glue 6 have 3.13."""
PLATFORM = "x86_64-manylinux_2_28"
"""Wheels for this C library run on Amazon Linux 2023, whatever the build machine has."""
LOCKS = Path(__file__).parent


def lock_file(version: str) -> Path:
    """The lock file of a Python such as "3.11"."""
    return LOCKS / f"lock-py{version}.txt"


def renew(version: str) -> None:
    """Writes the lock file of a Python."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--upgrade", "--generate-hashes", "--no-header"]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--only-binary", ":all:", "--python-platform", PLATFORM]
    command += ["--python-version", version, "--extra", "msk", "--extra", "schema-registry"]
    command += ["--output-file", str(lock_file(version))]
    subprocess.run([*command, "pyproject.toml"], check=True, cwd=LOCKS.parents[1])


if __name__ == "__main__":
    for each in PYTHONS:
        renew(each)
