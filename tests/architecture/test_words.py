"""Words that the project does not use, because readers stumble over them. `make check` runs this file too."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.acceptance.pages import anchors
from tests.architecture.files import ROOT, repository_files

BANNED = (
    *("albeit", "anew", "aught", "beats", "beside", "besides", "blow", "doubt", "doubted", "hence", "herein", "lest"),
    *("likewise", "mend", "mended", "mends", "nought", "owed", "owes", "spelt", "stands", "stood", "struck"),
    *("therein", "thereof", "tidy", "told", "whereby", "whichever", "whoever"),
)
CURE = "write in plain words, with a named actor and a verb in the present (CONTRIBUTING.md)"
OUTSIDE = re.compile(r"\b(DESIGN|FORMATS|FACTS|STYLE)\.md\b|\bshared/")
"""Documents and folders that are not in the repository."""
PAGE = re.compile(r"\bdocs/([a-z-]+\.md)(?:#([a-z0-9-]+))?")
"""A page that a message, a docstring or a file for operators names, perhaps with a heading."""
RENAMED = re.compile(r"\b(?:(?:write|publish|settle|replay|walk|resume|run)_part|PartResult|PARTS)\b")
"""Names of a second meaning: a part is a program outside of the job. The halves of a round are its stages."""
PARAPHRASES = re.compile(
    r"\b(?:by which|goes on (?:by|with|where|at)|so many|for so long|no sign of life|cannot be had)\b"
)
"""Riddles of small words. The technical word is easier: join key, continues, N, heartbeat."""
UNKNOWN = re.compile(r"\bnobody (?:knows|needs|said|shows)\b|\bas (?:[\w.`'-]+ ){1,5}has it\b")
"""In product code: an unknown value, an unused item, and "as in JSON" or "as stored" are shorter, and usual."""
SETTLED = ("CHANGELOG.md", "registry/", "tests/simulator/", "tests/data/", "tests/mutation/survivors.md")
"""Texts that stay: of releases, in the database's catalogue, of recorded histories, and of runs."""
TEXTS = {".py", ".md", ".toml", ".yaml", ".yml"}
WORD = re.compile(rf"(?<![a-z])({'|'.join(BANNED)})(?![a-z])")


def test_no_file_uses_a_banned_word() -> None:
    assert _places(WORD, str.lower) == [], CURE


def test_no_file_refers_to_a_document_outside_the_repository() -> None:
    assert _places(OUTSIDE) == []


def test_each_page_and_heading_that_a_file_names_exists() -> None:
    named = {found for path, text in _texts().items() if path.suffix != ".md" for found in PAGE.findall(text)}
    known = {page.name: anchors(page) for page in (ROOT / "docs").glob("*.md")}
    assert [name for name in sorted(named) if name[0] not in known or (name[1] and name[1] not in known[name[0]])] == []


def test_a_word_of_the_glossary_has_no_second_meaning() -> None:
    assert _places(RENAMED) == [], "see the glossary of docs/architecture.md"


def test_no_file_paraphrases_a_technical_word() -> None:
    assert [place for place in _places(PARAPHRASES, str.lower) if not place.startswith(SETTLED)] == []


def test_product_code_says_unknown_where_a_value_is_unknown() -> None:
    found = [place for place in _places(UNKNOWN, str.lower) if place.startswith(("processor/", "statestore/"))]
    assert found == [], "say that the thing is unknown, unused, or as in the other place"


def _places(pattern: re.Pattern[str], change: Callable[[str], str] = str) -> list[str]:
    """Where the repository's texts have the pattern, and which words. This file names the words, so it is left out."""
    found = []
    for path, written in _texts().items():
        text = change(written)  # five times as fast as a pattern that ignores case
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line}: {match[0]}")
    return found


@cache
def _texts() -> dict[Path, str]:
    return {
        path: path.read_text(encoding="utf-8")
        for path in sorted(repository_files())
        if path != Path(__file__) and (path.suffix in TEXTS or path.name == "Makefile")
    }
