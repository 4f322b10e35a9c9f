"""Every protection is missed: its recorded history is wrong without it, and right with it."""

import pytest

from tests.simulator.ablations import PAGE, in_page, recorded
from tests.simulator.protections import TABLE

FOUND = recorded()


@pytest.mark.parametrize("name", list(TABLE))
def test_a_history_ends_wrong_without_the_protection_and_right_with_it(name: str) -> None:
    found = FOUND[name]
    missed = TABLE[name].missed(found["seed"], found["boost"], found["keep"])
    assert missed, f"look for a new one: `python -m tests.simulator.ablations find {name!r}`"


def test_nothing_is_recorded_of_what_is_no_protection() -> None:
    assert FOUND.keys() <= TABLE.keys()


def test_the_table_in_the_docs_is_what_was_recorded() -> None:
    page = PAGE.read_text()
    assert in_page(page) == page, "run `python -m tests.simulator.ablations table`"
