"""The size of the documentation: a newcomer must be able to find a thing, and a maintainer to keep it true."""

import re

from tests.architecture.files import ROOT

PAGES = sorted((ROOT / "docs").glob("*.md"))
MOST_PAGES = 20
MOST_WORDS = 47_000


def test_docs_has_a_bounded_number_of_pages() -> None:
    assert len(PAGES) <= MOST_PAGES, "add to a page that exists"


def test_the_pages_have_a_bounded_number_of_words() -> None:
    """With README and CONTRIBUTING. The bars of a table are no words."""
    texts = [page.read_text(encoding="utf-8") for page in (*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md")]
    words = sum(len(re.findall(r"[^\s|]+", text)) for text in texts)
    assert words <= MOST_WORDS, "cut what another page says too"
