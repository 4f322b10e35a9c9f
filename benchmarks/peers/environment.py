"""A virtual environment for each peer, in `.statestore/peers`. No peer shares a package with statestore.

Promises: pip installs a peer once; another requirement installs it again. Where pip cannot install a peer, `NotInstalled` has the
reason. Does not: touch `.venv`.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from processor.cli.options import print_progress
from processor.errors import StatestoreError

HOME = Path(__file__).parents[2] / ".statestore" / "peers"
OLDEST, NEWEST = 10, 12
"""The minor versions of Python 3 for which both peers have packages."""


class NotInstalled(StatestoreError):
    """A peer that this machine cannot have. The message is the reason."""


def peer_python(name: str, requirement: str, home: Path = HOME) -> Path:
    """The Python of the peer's environment, which has `requirement`. Raises NotInstalled."""
    directory = home / name
    python, stamp = directory / "bin" / "python", directory / "installed"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == requirement:
        return python
    print_progress(f"{name}: pip installs {requirement} into {directory} (minutes)")
    directory.mkdir(parents=True, exist_ok=True)
    _run(_find_python(), "-m", "venv", "--clear", str(directory))
    _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement)
    stamp.write_text(requirement, encoding="utf-8")
    return python


def installed_version(python: Path, package: str) -> str:
    """The version of a package in a peer's environment."""
    code = f"import importlib.metadata, sys; print(importlib.metadata.version({package!r}), sys.version.split()[0])"
    version, its_python = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    return f"{version} (Python {its_python})"


def _find_python() -> str:
    """The newest Python that both peers know, this one first. Raises NotInstalled."""
    known = range(NEWEST, OLDEST - 1, -1)
    candidates = [sys.executable, *filter(None, (shutil.which(f"python3.{minor}") for minor in known))]
    for candidate in candidates:
        asked = subprocess.run(
            [candidate, "-c", "import sys; print(sys.version_info.minor)"], capture_output=True, text=True
        )
        if asked.returncode == 0 and int(asked.stdout) in known:
            return candidate
    raise NotInstalled(f"no Python 3.{OLDEST} to 3.{NEWEST} on the path; install one")


def _run(*command: str) -> None:
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        lines = [line for line in found.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")]
        raise NotInstalled((errors or lines or ["pip ended without a message"])[-1])
