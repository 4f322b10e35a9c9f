"""Settling an open change: the question to each slot that nothing showed, the answers that are evidence, and the row."""

import pytest

from processor.engine.plan.step import Lookup, Touch
from processor.engine.protocol.segments import OpenChange, SettleOutcome
from processor.engine.protocol.settle import SettledChange, settle
from statestore.items import JoinKey, Row
from statestore.store import Done, Equals, Item, Page, Query, Write
from tests.unit.engine.protocol.dialogue import dialogue
from tests.unit.engine.protocol.example import V, key, row_item

STAR = key("star", 5)
CHANGE = OpenChange("star", STAR, V[2], ((1, "ada"), (2, "9")), frozenset({(1, "bob")}))
ITEM = row_item("star", 5, version=V[2], GSI_1="ada", GSI_2="9", who="ada", repo=9)
OLDER = {**ITEM, "_v": V[1]}
NEWER = {**ITEM, "_v": V[3]}
COLUMNS = {"id": 5, "who": "ada", "repo": 9}
SLOTS = (1, 2)
"""Of the entity."""


def slot(name: str, value: str) -> Lookup:
    return Lookup(Query(name, value, row=STAR), overlay=False)


def page(*items: Item) -> Page:
    return Page(list(items), None)


AGAIN = CHANGE._replace(again=True)
BOTH = [(slot("GSI_1", "ada"), page(ITEM)), (slot("GSI_2", "9"), page(ITEM))]


def closing(change: OpenChange = CHANGE) -> SettledChange:
    """The result for a change that every slot shows, and that needs nothing else."""
    return SettledChange(outcome=SettleOutcome(change, V[2], change.slots, True), touch=None)


def repeating(change: OpenChange, *, shown: bool) -> SettledChange:
    """The result for a row that is as the change left it, whose roots the settle part finds again."""
    row = Row(key=STAR, version=V[2], columns=COLUMNS, more={}, slots={1: "ada", 2: "9"}, pending=())
    return SettledChange(
        outcome=SettleOutcome(change, V[2], ((1, "ada"), (2, "9")), shown),
        touch=Touch("star", row, frozenset({(1, "bob")}), None, "replayed"),
    )


def test_a_change_that_every_slot_shows_needs_no_row_and_no_roots() -> None:
    assert dialogue(settle(CHANGE, SLOTS), BOTH) == closing()


def test_only_the_slots_that_no_answer_showed_are_asked() -> None:
    change = CHANGE._replace(seen=frozenset({(1, "ada")}))
    assert dialogue(settle(change, SLOTS), BOTH[1:]) == closing(change)


@pytest.mark.parametrize(
    ("second", "shown"),
    [((), False), ((OLDER,), False), ((NEWER,), True)],
    ids=["no row", "an older version", "a newer version"],
)
def test_every_slot_must_show_the_row_at_its_version_or_newer(second: tuple[Item, ...], shown: bool) -> None:
    asked = [BOTH[0], (slot("GSI_2", "9"), page(*second))]
    if shown:
        assert dialogue(settle(CHANGE, SLOTS), asked) == closing()
    else:
        assert dialogue(settle(CHANGE, SLOTS), asked, [(STAR, ITEM)]) == repeating(CHANGE, shown=False)


def test_a_change_out_of_sight_finds_its_roots_again_also_with_evidence() -> None:
    assert dialogue(settle(AGAIN, SLOTS), BOTH, [(STAR, ITEM)]) == repeating(AGAIN, shown=True)


def test_a_change_that_every_answer_showed_is_read_if_it_must_find_its_roots_again() -> None:
    change = AGAIN._replace(seen=frozenset(AGAIN.slots))
    assert dialogue(settle(change, SLOTS), [(STAR, ITEM)]) == repeating(change, shown=True)


def test_a_row_that_is_gone_counts_as_shown_and_touches_every_key_that_it_had() -> None:
    gone = Row(key=STAR, version=V[2], columns=None, more={}, slots={}, pending=())
    nothing = [(lookup, page()) for lookup, _ in BOTH]
    assert dialogue(settle(CHANGE, SLOTS), nothing, [(STAR, None)]) == SettledChange(
        outcome=SettleOutcome(CHANGE, V[2], ((1, "ada"), (2, "9")), True),
        touch=Touch("star", gone, frozenset({(1, "ada"), (1, "bob"), (2, "9")}), None, "replayed"),
    )


def test_a_row_without_a_key_is_found_under_its_own_no_key() -> None:
    """A slot without a key holds `!`, the partition and the sort key, because absence is no evidence."""
    no_key = "!TABLE#star!5"
    item = row_item("star", 5, version=V[2], GSI_1=no_key, GSI_2="9", who=None, repo=9)
    change = AGAIN._replace(slots=((1, no_key), (2, "9")))
    asked = [(slot("GSI_1", no_key), page(item)), (slot("GSI_2", "9"), page(item))]
    result = dialogue(settle(change, SLOTS), asked, [(STAR, item)])
    assert result.outcome == SettleOutcome(change, V[2], ((1, no_key), (2, "9")), True)
    assert result.touch is not None
    assert result.touch.former_keys == {(1, "bob")}


def test_a_deleted_row_that_left_the_indexes_is_shown_where_no_index_has_it_any_more() -> None:
    change = OpenChange("star", STAR, V[2], (), frozenset({(1, "ada"), (2, "9"), ("repo.ids", "9")}))
    marker = row_item("star", 5, version=V[2])
    assert dialogue(settle(change, SLOTS), [(lookup, page()) for lookup, _ in BOTH]) == SettledChange(
        outcome=SettleOutcome(change, V[2], (), True), touch=None
    )
    again = [BOTH[0], (slot("GSI_2", "9"), page(NEWER))]  # the row has come back under its key
    assert dialogue(settle(change, SLOTS), [(again[0][0], page()), again[1]]).outcome.shown
    late = [(again[0][0], page()), (again[1][0], page(OLDER))]
    left = dialogue(settle(change, SLOTS), late, [(STAR, {**marker, "_deleted": True})]).outcome
    assert not left.shown
    assert left.left == change


def test_a_change_takes_over_the_version_and_keys_of_a_row_that_changed_meanwhile() -> None:
    item = row_item("star", 5, version=V[3], GSI_1="cyd", GSI_2="9", who="cyd", repo=9)
    asked = [(slot("GSI_1", "ada"), page()), (slot("GSI_2", "9"), page(item))]
    result = dialogue(settle(CHANGE, SLOTS), asked, [(STAR, item)], [(slot("GSI_1", "cyd"), page())])
    assert result.outcome == SettleOutcome(CHANGE, V[3], ((1, "cyd"), (2, "9")), False)
    assert result.touch is not None
    assert result.touch.former_keys == {(1, "ada"), (1, "bob")}


def test_a_row_that_moved_on_is_shown_by_its_new_key() -> None:
    item = row_item("star", 5, version=V[3], GSI_1="cyd", GSI_2="9", who="cyd", repo=9)
    asked = [(slot("GSI_1", "ada"), page()), (slot("GSI_2", "9"), page(item))]
    assert dialogue(settle(CHANGE, SLOTS), asked, [(STAR, item)], [(slot("GSI_1", "cyd"), page(item))]) == closing()
    older = {**item, "_v": V[1]}
    left = dialogue(settle(CHANGE, SLOTS), asked, [(STAR, item)], [(slot("GSI_1", "cyd"), page(older))])
    assert not left.outcome.shown


def test_a_slot_under_whose_present_key_nothing_shows_the_row_is_asked_once() -> None:
    item = row_item("star", 5, version=V[3], GSI_1="cyd", GSI_2="9", who="cyd", repo=9)
    asked = [(slot("GSI_1", "ada"), page()), (slot("GSI_2", "9"), page())]
    assert not dialogue(settle(CHANGE, SLOTS), asked, [(STAR, item)]).outcome.shown


def test_a_row_that_moved_on_in_one_of_two_slots_without_evidence_stays_open() -> None:
    """The index of the other slot has not shown the change under the key that the row still has."""
    item = row_item("star", 5, version=V[3], GSI_1="cyd", GSI_2="9", who="cyd", repo=9)
    asked = [(lookup, page()) for lookup, _ in BOTH]
    left = dialogue(settle(CHANGE, SLOTS), asked, [(STAR, item)]).outcome
    assert not left.shown
    assert left.left == OpenChange("star", STAR, V[3], ((1, "cyd"), (2, "9")), frozenset({(1, "bob"), (1, "ada")}))


def test_a_row_that_moved_on_finds_its_roots_again_where_the_change_asks_for_it() -> None:
    item = row_item("star", 5, version=V[3], GSI_1="cyd", GSI_2="9", who="cyd", repo=9)
    asked = [(slot("GSI_1", "ada"), page()), (slot("GSI_2", "9"), page(item))]
    result = dialogue(settle(AGAIN, SLOTS), asked, [(STAR, item)])
    assert result.touch is not None
    assert result.touch.former_keys == {(1, "ada"), (1, "bob")}


def test_a_slot_that_the_entity_has_given_up_is_not_asked() -> None:
    assert dialogue(settle(CHANGE, (1,)), BOTH[:1]) == closing()


def test_a_change_of_an_entity_that_has_given_up_all_its_slots_closes() -> None:
    """The write of such a row removes the version that the indexes showed, but not what the slots hold."""
    change = AGAIN._replace(slots=(), former=frozenset(CHANGE.slots))
    settled = dialogue(settle(change, ()), [(STAR, ITEM)])
    assert settled.outcome == SettleOutcome(change, V[2], (), True)
    assert settled.outcome.left is None
    assert settled.touch is not None


LEFT = row_item("star", 5, version=V[3], _deleted=True)
"""A delete marker that has left the indexes."""
NO_KEY = "!TABLE#star!5"
UNPROVEN = ((1, NO_KEY), (2, NO_KEY))


def test_a_marker_that_left_the_indexes_before_they_showed_the_change_comes_back_there() -> None:
    """A task that outlived its run wrote the row, so the delete did not know of this change."""
    nothing = [(lookup, page()) for lookup, _ in BOTH]
    back = Write(STAR, {"GSI_1": NO_KEY, "GSI_2": NO_KEY, "_indexed_v": V[3]}, when=Equals("_v", V[3]))
    asked = [(slot("GSI_1", NO_KEY), page()), (slot("GSI_2", NO_KEY), page())]
    left = dialogue(settle(CHANGE, SLOTS), nothing, [(STAR, LEFT)], [(back, Done(None))], asked)
    assert left.outcome == SettleOutcome(CHANGE, V[3], UNPROVEN, False)
    assert left.touch is not None
    assert left.touch.former_keys == {(1, "ada"), (1, "bob"), (2, "9")}
    shown = [(lookup, page({**LEFT, "_indexed_v": V[3]})) for lookup, _ in asked]
    assert dialogue(settle(CHANGE, SLOTS), nothing, [(STAR, LEFT)], [(back, Done(None))], shown) == closing()


def test_a_marker_comes_back_into_those_indexes_that_its_entity_still_has() -> None:
    nothing = [(slot("GSI_2", "9"), page())]
    back = Write(STAR, {"GSI_2": NO_KEY, "_indexed_v": V[3]}, when=Equals("_v", V[3]))
    shown = [(slot("GSI_2", NO_KEY), page({**LEFT, "_indexed_v": V[3]}))]
    assert dialogue(settle(CHANGE, (2,)), nothing, [(STAR, LEFT)], [(back, Done(None))], shown) == closing()


def test_a_marker_that_left_the_indexes_stays_out_where_they_showed_the_change() -> None:
    assert dialogue(settle(AGAIN, SLOTS), BOTH, [(STAR, LEFT)]).outcome == SettleOutcome(AGAIN, V[3], (), True)


def test_a_touch_names_no_edge_that_the_row_still_has_and_no_key_of_an_empty_slot() -> None:
    fields = "repo.ids"
    item = row_item("star", 5, version=V[2], GSI_1="ada", GSI_2="9", _edges=f'[["{fields}","4"]]')
    former: set[JoinKey] = {(fields, "3"), (fields, "4"), (1, NO_KEY), (2, "8")}
    change = AGAIN._replace(former=frozenset(former), seen=frozenset(AGAIN.slots))
    touch = dialogue(settle(change, SLOTS), [(STAR, item)]).touch
    assert touch is not None
    assert touch.former_keys == {(fields, "3"), (2, "8")}
