"""An open folder: where a program that root starts as another user may enter, when its own directory is closed to that user.

The folder is in the system's place for temporary files, under a name that nobody can guess. Any user may enter it, and only
root may write to it. The reaper removes the folder when the owner was killed; else the owner does, or `local down`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from processor.errors import PartError

PREFIX = "statestore-open-"
DATA = "data"
"""The name of a link in the part's directory. The link leads to the data in the open folder, and so finds the folder again."""


def is_open(path: Path) -> bool:
    """Whether any user may enter the directory: its own mode allows it, and the modes of all folders above it."""
    path = path.resolve()
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


def find_open_folder(directory: Path) -> Path | None:
    """The open folder of a part's directory; None where the part has its data in the directory, or has none.

    Another user may have planted the link. So only a folder of this user, with our prefix, counts as an open folder.
    """
    link = directory / DATA
    folder = link.readlink().parent if link.is_symlink() else None
    if folder is None or not folder.name.startswith(PREFIX) or not folder.is_dir():
        return None
    return folder if folder.lstat().st_uid == os.geteuid() else None


def make_open_folder(part: str, fill: Callable[[Path], None]) -> Path:
    """Makes a folder that any user may enter, and fills it; an error removes it again. Raises PartError."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_temporary_place(part)))
    try:
        folder.chmod(0o755)
        fill(folder)
    except BaseException:
        remove_folder(folder)
        raise
    return folder


def share(directory: Path) -> None:
    """Lets any user read the files of a directory, and run its programs."""
    for folder, _, files in os.walk(directory):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | (0o555 if mode & 0o100 else 0o444))


def remove_folder(folder: Path | None) -> None:
    """Removes a folder, if there is one."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _temporary_place(part: str) -> Path:
    """The first place for temporary files that any user may enter, and where programs may run."""
    places = [Path(place).resolve() for place in (tempfile.gettempdir(), "/tmp", "/var/tmp") if Path(place).is_dir()]
    for place in places:
        if is_open(place) and not os.statvfs(place).f_flag & getattr(os, "ST_NOEXEC", 0):
            return place
    names = ", ".join(map(str, dict.fromkeys(places)))
    cure = "open one of them to all users, or start as another user than root"
    raise PartError(part, f"root starts it as another user, and that user can run no program in {names}", cure)
