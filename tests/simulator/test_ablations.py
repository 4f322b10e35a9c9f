"""Every protection is missed: its recorded history is wrong without it, and right with it."""

import pytest

from tests.simulator.ablations import PAGE, TABLE, in_page, recorded
from tests.simulator.run import simulate

FOUND = recorded()
NOT_NOTICED = {
    "reloaded entries take the row as it stands",
    "the wait after a start",
    "evidence in every slot",
    "evidence of the version",
    "closing W after the evidence",
    "`!own key` as evidence of nothing there",
    "settling",
    "settling repeats the change, not its roots",
    "settling knows former keys",
    "columns are checked again, up",
    "previous keys in the write",
    "pending keys kept by the second write",
    "the condition on the batch's start",
    "what is superseded touches",
    "after a refusal all columns count",
    "a delete marker keeps previous keys",
    "the lease check in the task",
    "only what matters fans out",
}
"""Protections that no history of the first hundreds of seeds has missed yet: rare worlds, to be hunted with more seeds."""


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
