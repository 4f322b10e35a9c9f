"""The files of the checkout."""

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNTRACKED = {"__pycache__", "build", "dist", "site"}


def repository_files() -> Iterator[Path]:
    """The files of the checkout, but what is made in it."""
    for directory, names, files in os.walk(ROOT):
        names[:] = [n for n in names if n not in UNTRACKED and not n.endswith(".egg-info")]
        names[:] = [n for n in names if not n.startswith(".") or n in (".ci", ".github")]
        yield from (Path(directory) / name for name in files)
