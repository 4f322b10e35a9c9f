"""Words that the project does not use, because readers stumble over them. `make check` runs this file too."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.files import ROOT, repository_files

BANNED = (
    *("albeit", "anew", "aught", "beats", "beside", "besides", "blow", "doubt", "doubted", "hence", "herein", "lest"),
    *("likewise", "mend", "mended", "mends", "nought", "owed", "owes", "spelt", "stands", "stood", "struck"),
    *("therein", "thereof", "tidy", "told", "whereby", "whichever", "whoever"),
)
CURE = "write in plain words, with a named actor and a verb in the present (CONTRIBUTING.md)"
OUTSIDE = re.compile(r"\b(DESIGN|FORMATS|FACTS|STYLE)\.md\b|\bshared/")
"""Documents and folders that are not in the repository."""
TEXTS = {".py", ".md", ".toml", ".yaml", ".yml"}
WORD = re.compile(rf"(?<![a-z])({'|'.join(BANNED)})(?![a-z])", re.IGNORECASE)


def test_no_file_uses_a_banned_word() -> None:
    found = [f"{place}: {word}" for place, line in _lines() for word in WORD.findall(line)]
    assert found == [], CURE


def test_no_file_refers_to_a_document_outside_the_repository() -> None:
    assert [place for place, line in _lines() if OUTSIDE.search(line)] == []


def _lines() -> Iterator[tuple[str, str]]:
    """Each line of the repository's texts, with its place. This file names the words, so it is left out."""
    for path in sorted(repository_files()):
        if path != Path(__file__) and (path.suffix in TEXTS or path.name == "Makefile"):
            for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                yield f"{path.relative_to(ROOT)}:{n}", line
