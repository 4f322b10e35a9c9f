"""Writes a site into a directory. Its own pages of an earlier run go; every other file stays."""

from collections.abc import Mapping
from pathlib import Path

from processor.catalogue.site_files import FOLDERS, MARK


def write_site(files: Mapping[str, str], directory: Path) -> None:
    """Writes the files, by their paths below the directory, and removes pages of products and entities that are gone."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for path in (path for folder in FOLDERS for path in (directory / folder).glob("*.html")):
        if path.relative_to(directory).as_posix() not in files and MARK in path.read_text(
            encoding="utf-8", errors="replace"
        ):
            path.unlink()
