"""Every protection is missed: its recorded history is wrong without it, and right with it."""

import pytest

from tests.simulator.ablations import PAGE, TABLE, in_page, recorded
from tests.simulator.run import simulate

FOUND = recorded()
NOT_NOTICED: set[str] = set()
"""Protections that no history has missed yet; docs/correctness.md says why each is kept."""


@pytest.mark.parametrize("name", list(FOUND))
def test_a_history_ends_wrong_without_the_protection_and_right_with_it(name: str) -> None:
    found = FOUND[name]
    asked = {"boost": found["boost"], "keep": found["keep"]}
    assert simulate(found["seed"], **asked, without=TABLE[name].without).verdict is not None
    assert simulate(found["seed"], **asked).verdict is None


def test_every_protection_has_its_history_or_is_listed_as_not_noticed_yet() -> None:
    assert FOUND.keys() | NOT_NOTICED == TABLE.keys()
    assert not FOUND.keys() & NOT_NOTICED


def test_the_table_in_the_docs_is_what_was_recorded() -> None:
    page = PAGE.read_text()
    assert in_page(page) == page, "run `python -m tests.simulator.ablations table`"
