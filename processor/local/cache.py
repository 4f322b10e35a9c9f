"""The user's cache: sets of files that are fetched once, whole or not at all, by any number of processes at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from processor.errors import PartError

Progress = Callable[[str], None]


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/statestore`, else `~/.cache/statestore`, else (none can be written) one of temporary files."""
    homes = [Path(os.environ["XDG_CACHE_HOME"])] if os.environ.get("XDG_CACHE_HOME") else []
    if os.environ.get("HOME"):
        homes.append(Path(os.environ["HOME"]) / ".cache")
    for home in homes:
        with contextlib.suppress(OSError):
            directory = home / "statestore"
            directory.mkdir(parents=True, exist_ok=True)
            if os.access(directory, os.W_OK | os.X_OK):
                return directory.resolve()
    return _private(Path(tempfile.gettempdir()) / f"statestore-cache-{os.getuid()}")


def _private(directory: Path) -> Path:
    """A directory with a known name in a place where all may write: ours alone, or an error (its jars are run)."""
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.is_symlink() or directory.stat().st_uid != os.getuid():
        raise PartError(
            "The cache", f"{directory} belongs to another user", "set XDG_CACHE_HOME to a directory of yours"
        )
    return directory.resolve()


def once(name: str, fill: Callable[[Path], None], progress: Progress) -> Path:
    """The directory `name` of the cache, filled by `fill` when it is not there.

    1. One process at a time holds the lock of the name; the others wait, and find the work done.
    2. It fills a directory beside, which no one else reads.
    3. A rename makes it the one: before it there is nothing, after it everything.
    """
    sets = cache_directory() / "jars"
    target = sets / name
    if target.is_dir():
        return target
    sets.mkdir(exist_ok=True)
    with locked(sets / f".{name}.lock", lambda: progress(f"{name}: another process is fetching it, waiting")):  # 1
        for abandoned in sets.glob(f".{name}.new-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        if not target.is_dir():
            fresh = Path(tempfile.mkdtemp(prefix=f".{name}.new-", dir=sets))
            try:
                fill(fresh)  # 2
                fresh.rename(target)  # 3
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return target


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an advisory lock between processes; `waiting` is called once if another one holds it."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
