"""The pages under docs/ say nothing that was not tried: their shell blocks are run in their order, their links followed."""

import re
from itertools import zip_longest
from pathlib import Path

import pytest

from processor.cases import run_case
from processor.definitions.cases import read_cases
from processor.definitions.load import load, read_directory
from processor.planning import plan_alone
from processor.settings import Settings
from tests.acceptance.pages import MAKE, blocks, make_checkout, run_block

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_shell_block_runs_and_prints_what_the_page_says(page: Path, tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path, ROOT)
    found = list(blocks(page.read_text(encoding="utf-8")))
    for block, after in zip_longest(found, found[1:]):
        if block.language == "sh" and not MAKE.fullmatch(block.text):
            run_block(page.name, block, after, checkout)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_test_of_the_page_about_tests_passes() -> None:
    definitions = load(read_directory(ROOT / "examples" / "github"))
    (block,) = (b for b in blocks((ROOT / "docs" / "tests.md").read_text(encoding="utf-8")) if b.language == "yaml")
    (case,) = read_cases({"tests/page.yaml": block.text}, definitions)
    assert run_case(case, plan_alone(definitions, slots=20), Settings()) == ()
