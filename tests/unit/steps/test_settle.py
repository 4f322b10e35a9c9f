"""Settling an open change: the read of the row, the question to each slot, and the answers that are evidence."""

import pytest

from processor.plan.step import Lookup
from processor.plan.touch import Touch
from processor.progress.open_changes import OpenChange, SettleOutcome
from processor.steps.settle import Evidence, SettledChange, settle
from statestore.items import Row
from statestore.store import Item, Page, Query
from tests.unit.steps.dialogue import dialogue
from tests.unit.steps.example import V, key, row_item

STAR = key("star", 5)
CHANGE = OpenChange("star", STAR, V[2], ((1, "ada"), (2, "9")), frozenset({(1, "bob")}))
ITEM = row_item("star", 5, version=V[2], GSI_1="ada", GSI_2="9", who="ada", repo=9)
OLDER = {**ITEM, "_v": V[1]}
NEWER = {**ITEM, "_v": V[3]}
OTHER = row_item("star", 6, version=V[3], GSI_1="ada", GSI_2="9")
COLUMNS = {"id": 5, "who": "ada", "repo": 9}


def slot(name: str, value: str) -> Lookup:
    return Lookup(Query(name, value, row=STAR), overlay=False)


def page(*items: Item) -> Page:
    return Page(list(items), None)


def settled(*, shown: bool) -> SettledChange:
    """The result for a row that is as the change left it."""
    row = Row(key=STAR, version=V[2], columns=COLUMNS, more={}, slots={1: "ada", 2: "9"}, pending=())
    return SettledChange(
        outcome=SettleOutcome(CHANGE, V[2], ((1, "ada"), (2, "9")), shown),
        touch=Touch("star", row, frozenset({(1, "bob")}), None, "replayed"),
    )


def test_a_row_that_every_slot_shows_is_shown() -> None:
    result = dialogue(
        settle(CHANGE, Evidence()),
        [(STAR, ITEM)],
        [(slot("GSI_1", "ada"), page(OTHER, ITEM)), (slot("GSI_2", "9"), page(ITEM))],
    )
    assert result == settled(shown=True)


@pytest.mark.parametrize(
    ("second", "shown"),
    [((), False), ((OTHER,), False), ((OLDER,), False), ((NEWER,), True)],
    ids=["no row", "another row", "an older version", "a newer version"],
)
def test_every_slot_must_show_the_row_at_its_version_or_newer(second: tuple[Item, ...], shown: bool) -> None:
    result = dialogue(
        settle(CHANGE, Evidence()),
        [(STAR, ITEM)],
        [(slot("GSI_1", "ada"), page(ITEM)), (slot("GSI_2", "9"), page(*second))],
    )
    assert result == settled(shown=shown)


def test_a_row_that_is_gone_counts_as_shown_and_touches_every_key_that_it_had() -> None:
    gone = Row(key=STAR, version=V[2], columns=None, more={}, slots={}, pending=())
    assert dialogue(settle(CHANGE, Evidence()), [(STAR, None)]) == SettledChange(
        outcome=SettleOutcome(CHANGE, V[2], ((1, "ada"), (2, "9")), True),
        touch=Touch("star", gone, frozenset({(1, "ada"), (1, "bob"), (2, "9")}), None, "replayed"),
    )


def test_a_row_without_a_key_is_found_under_its_own_no_key() -> None:
    """A slot without a key holds `!`, the partition and the sort key, because absence is no evidence."""
    no_key = "!TABLE#star!5"
    item = row_item("star", 5, version=V[2], GSI_1=no_key, GSI_2="9", who=None, repo=9)
    change = CHANGE._replace(slots=((1, no_key), (2, "9")))
    result = dialogue(
        settle(change, Evidence()),
        [(STAR, item)],
        [(slot("GSI_1", no_key), page(item)), (slot("GSI_2", "9"), page(item))],
    )
    assert result.outcome == SettleOutcome(change, V[2], ((1, no_key), (2, "9")), True)
    assert result.touch.former_keys == {(1, "bob")}


def test_a_row_that_changed_meanwhile_is_asked_under_its_present_keys() -> None:
    item = row_item("star", 5, version=V[3], GSI_1="cyd", GSI_2="9", who="cyd", repo=9)
    result = dialogue(
        settle(CHANGE, Evidence()),
        [(STAR, item)],
        [(slot("GSI_1", "cyd"), page(item)), (slot("GSI_2", "9"), page(item))],
    )
    assert result.outcome == SettleOutcome(CHANGE, V[3], ((1, "cyd"), (2, "9")), True)
    assert result.touch.former_keys == {(1, "ada"), (1, "bob")}


def test_changes_of_one_key_share_an_answer_and_ask_again_only_for_a_row_that_it_did_not_show() -> None:
    evidence = Evidence()
    dialogue(
        settle(CHANGE, evidence),
        [(STAR, ITEM)],
        [(slot("GSI_1", "ada"), page(ITEM)), (slot("GSI_2", "9"), page(OLDER))],
    )
    result = dialogue(settle(CHANGE, evidence), [(STAR, ITEM)], [(slot("GSI_2", "9"), page(ITEM))])
    assert result == settled(shown=True)
