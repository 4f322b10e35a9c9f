"""Builds the wheel of the project from a copy of its sources, so that no file of an earlier build gets into it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("statestore", "processor", "registry")
TEXTS = ("pyproject.toml", "README.md", "LICENSE")


def build_wheel(directory: Path, epoch: int) -> Path:
    """Builds the wheel into the directory. Each file in it has the time `epoch`, in seconds since 1970, and plain rights."""
    with tempfile.TemporaryDirectory() as copy:
        for package in PACKAGES:
            shutil.copytree(ROOT / package, Path(copy, package), ignore=shutil.ignore_patterns("__pycache__"))
        for text in TEXTS:
            shutil.copy(ROOT / text, copy)
        for path in Path(copy).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--no-build-isolation", "--wheel-dir", str(directory), copy]
        subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}, umask=0o022)
    (wheel,) = directory.glob("*.whl")
    return wheel
