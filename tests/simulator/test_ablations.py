"""For every protection its recorded history ends wrong without it, and right with it."""

import pytest

from tests.simulator.ablations import PAGE, problem_without, read_recorded, replace_table
from tests.simulator.protections import PROTECTIONS

RECORDED = read_recorded()


@pytest.mark.parametrize("name", list(PROTECTIONS))
def test_a_history_ends_wrong_without_the_protection_and_right_with_it(name: str) -> None:
    history = RECORDED[name]
    assert problem_without(PROTECTIONS[name], history["seed"], history["overrides"], history["keep"]), (
        f"search for a new history: `python -m tests.simulator.ablations find {name!r}`"
    )


def test_every_recorded_history_belongs_to_a_protection() -> None:
    assert RECORDED.keys() <= PROTECTIONS.keys()


def test_the_page_shows_the_recorded_histories() -> None:
    page = PAGE.read_text()
    assert replace_table(page) == page, "run `python -m tests.simulator.ablations table`"
