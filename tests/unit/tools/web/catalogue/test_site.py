"""What a catalogue overwrites: its own files, and no other."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from processor.errors import SettingError
from processor.tools.web.catalogue.site import MARK, write_site

PAGE = f"<head>{MARK}</head>"
SITE = {"index.html": PAGE, "products/p.html": PAGE, "entities/e.html": PAGE, "catalogue.css": "", "catalogue.js": ""}
OURS = "a page"


def tree(directory: Path) -> dict[str, str]:
    return {p.relative_to(directory).as_posix(): p.read_text() for p in directory.rglob("*") if p.is_file()}


def test_a_site_is_written_again_and_loses_the_pages_that_are_gone(tmp_path: Path) -> None:
    site = tmp_path / "new" / "site"
    write_site(SITE | {"products/old.html": PAGE}, site)
    (site / "products" / "notes.html").write_text(OURS)
    (site / "CNAME").write_text(OURS)
    write_site(SITE, site)
    assert tree(site) == SITE | {"products/notes.html": OURS, "CNAME": OURS}


def test_a_link_to_the_whole_directory_is_the_choice_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "site").symlink_to(tmp_path / "real")
    write_site(SITE, tmp_path / "site")
    assert tree(tmp_path / "real") == SITE


def foreign_index(site: Path, _: Path) -> None:
    (site / "index.html").write_text("my home page")


def foreign_page(site: Path, _: Path) -> None:
    (site / "products").mkdir()
    (site / "products" / "p.html").write_text("my page")


def foreign_style(site: Path, _: Path) -> None:
    (site / "catalogue.css").write_text("my style")


def foreign_index_and_style(site: Path, _: Path) -> None:
    (site / "index.html").write_text(" " * 10_000 + MARK)
    (site / "catalogue.js").write_text("my script")


def index_through_a_link(site: Path, other: Path) -> None:
    (site / "index.html").symlink_to(other)


def dangling_link(site: Path, other: Path) -> None:
    (site / "index.html").symlink_to(other.with_name("none"))


def folder_through_a_link(site: Path, other: Path) -> None:
    (site / "products").symlink_to(other.parent)


def style_through_a_link(site: Path, other: Path) -> None:
    (site / "catalogue.css").symlink_to(other)


def page_is_a_directory(site: Path, _: Path) -> None:
    (site / "index.html").mkdir()


def folder_is_a_file(site: Path, _: Path) -> None:
    (site / "entities").write_text("my entities")


def index_is_a_pipe(site: Path, _: Path) -> None:
    os.mkfifo(site / "index.html")


@pytest.mark.parametrize(
    "make",
    [foreign_index, foreign_page, foreign_style, foreign_index_and_style, index_through_a_link, dangling_link,
     folder_through_a_link, style_through_a_link, page_is_a_directory, folder_is_a_file, index_is_a_pipe],
)  # fmt: skip
def test_a_file_of_others_is_neither_overwritten_nor_reached_through_a_link(
    make: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    site, other = tmp_path / "site", tmp_path / "other" / "p.html"
    site.mkdir()
    other.parent.mkdir()
    other.write_text(PAGE)
    make(site, other)
    before = tree(tmp_path)
    with pytest.raises(SettingError, match=r"--to: .*; nothing was written: give an empty directory"):
        write_site(SITE, site)
    assert tree(tmp_path) == before
