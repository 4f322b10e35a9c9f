"""The user's cache: sets of files. A set is complete or absent, and several processes at once fetch it only once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from processor.errors import PartError

ShowProgress = Callable[[str], None]


def cache_directory() -> Path:
    """`$XDG_CACHE_HOME/statestore`, else `~/.cache/statestore`, else a temporary directory; the first that this user can write.

    Raises PartError if the temporary directory belongs to another user.
    """
    for directory in _homes():
        with contextlib.suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)
            if os.access(directory, os.W_OK | os.X_OK):
                return directory.resolve()
    return _private(Path(tempfile.gettempdir()) / f"statestore-cache-{os.getuid()}")


def _homes() -> Iterator[Path]:
    if os.environ.get("XDG_CACHE_HOME"):
        yield Path(os.environ["XDG_CACHE_HOME"]) / "statestore"
    if os.environ.get("HOME"):
        yield Path(os.environ["HOME"]) / ".cache" / "statestore"


def kept_set(name: str) -> Path | None:
    """The directory of a set that is here already; None without one. This user need not be able to write it: an image or an
    administrator may bring it."""
    return next((sets / name for home in _homes() if ((sets := home / "jars") / name).is_dir()), None)


def _private(directory: Path) -> Path:
    """Make a directory with a known name in a place where all users may write. Raises PartError if another user owns it.

    Java runs the jars in it, so another user must not be able to write them.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.is_symlink() or directory.stat().st_uid != os.getuid():
        raise PartError(
            "The cache", f"{directory} belongs to another user", "set XDG_CACHE_HOME to a directory that belongs to you"
        )
    return directory.resolve()


def fetch_once(name: str, fill: Callable[[Path], None], progress: ShowProgress) -> Path:
    """The directory `name` of a cache. If it is absent, `fill` makes its files first, in the cache of `cache_directory`.

    1. One process at a time holds the lock of the name. The other processes wait, and then find the directory.
    2. The process fills a temporary directory next to it, which no other process reads.
    3. A rename gives the directory its name: no process ever sees an incomplete set.
    """
    if (kept := kept_set(name)) is not None:
        return kept.resolve()
    sets = cache_directory() / "jars"
    target = sets / name
    if target.is_dir():
        return target
    sets.mkdir(exist_ok=True)
    with locked(sets / f".{name}.lock", lambda: progress(f"{name}: waiting for another process that fetches it")):  # 1
        for abandoned in sets.glob(f".{name}.new-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        if not target.is_dir():
            new_set = Path(tempfile.mkdtemp(prefix=f".{name}.new-", dir=sets))
            try:
                fill(new_set)  # 2
                new_set.rename(target)  # 3
            finally:
                shutil.rmtree(new_set, ignore_errors=True)
    return target


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an advisory lock between processes. Calls `waiting` once if another process holds the lock."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
