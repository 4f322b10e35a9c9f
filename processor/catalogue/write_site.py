"""Writes a site into a directory. Its own pages of an earlier run go; every other file stays."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from processor.catalogue.site_files import ASSETS, FOLDERS, INDEX, MARK
from processor.errors import SettingError

MARK_BYTES = 4096
"""The mark is near the beginning of a page."""


def write_site(files: Mapping[str, str], directory: Path) -> None:
    """Writes the files, by their paths below the directory, and removes pages of products and entities that are gone. Raises
    SettingError, before it writes anything, where that would overwrite a file of others or lead out of the directory."""
    if foreign := list(_foreign(files, directory)):
        more = f", and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise SettingError(
            f"--to: {foreign[0]}{more}; nothing was written: give an empty directory, or one of an earlier catalogue"
        )
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for path in (path for folder in FOLDERS for path in (directory / folder).glob("*.html")):
        if path.relative_to(directory).as_posix() not in files and _is_page(path):
            path.unlink()


def _foreign(files: Mapping[str, str], directory: Path) -> Iterator[str]:
    """What the site must not overwrite."""
    for folder in FOLDERS:
        if (directory / folder).is_symlink():
            yield f"{directory / folder} is a symbolic link, which may lead anywhere"
        elif os.path.lexists(directory / folder) and not (directory / folder).is_dir():
            yield f"{directory / folder} is no directory"
    for name in files:
        path = directory / name
        if path.is_symlink():
            yield f"{path} is a symbolic link, which may lead anywhere"
        elif os.path.lexists(path) and not _is_page(directory / INDEX if name in ASSETS else path):
            yield f"{path} is no file of a catalogue"


def _is_page(path: Path) -> bool:
    """Whether a file is a page that `catalogue` wrote."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            return MARK.encode() in file.read(MARK_BYTES)
    except FileNotFoundError:
        return False
