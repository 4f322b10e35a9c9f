"""Copies all pages, and the files that they link to, into one folder, with the tree of the repository.

`make docs` builds the site from this folder, so each link leads to the same file there.

A folder has no page in the site: a link to a folder leads to its README.md, or becomes text where it has none.
"""

import re
import shutil
import sys
from functools import partial
from pathlib import Path

from tests.acceptance.pages import PAGES, ROOT, links

FOLDER_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#:]+)\)")


def stage(folder: Path) -> None:
    """Fills the folder; removes what it held before."""
    shutil.rmtree(folder, ignore_errors=True)
    for page in PAGES:
        for path, _ in links(page):
            linked = (page.parent / path).resolve()
            if linked.is_file() and linked not in PAGES:
                _place(linked, folder).write_bytes(linked.read_bytes())
        text = FOLDER_LINK.sub(partial(_to_file, page=page), page.read_text(encoding="utf-8"))
        _place(page, folder).write_text(text, encoding="utf-8")


def _place(file: Path, folder: Path) -> Path:
    place = folder / file.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _to_file(link: re.Match[str], page: Path) -> str:
    linked = page.parent / link[2]
    if not linked.is_dir():
        return link[0]
    return f"[{link[1]}]({link[2]}/README.md)" if (linked / "README.md").exists() else link[1]


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
