"""Finding the roots of a changed row: each read on the way up, and the fan-outs that find the rest."""

from typing import Any

import pytest

from processor.engine.plan.step import Lookup, Touch
from processor.engine.protocol.find_roots import ROOM, ROWS_EXPECTED, ShownRows, find_roots, resume
from processor.engine.protocol.pending import FanOut, FoundRoots, ResumedFanOut
from statestore.items import JoinKey, Row
from statestore.keys import Key
from statestore.store import Item, Page, Query
from tests.unit.engine.protocol.dialogue import dialogue
from tests.unit.engine.protocol.example import PLAN, V, key, row_item

STARS_OF_REPO_9 = Query("GSI_2", "9", "star")
STARS_NODE, REPO_NODE, PULLS_NODE = map(PLAN.products["profile"].paths().index, ("stars", "stars.repo", "pulls"))


def touch(
    entity: str,
    number: int,
    *changed: str,
    slots: dict[int, str] | None = None,
    former: frozenset[JoinKey] = frozenset(),
) -> Touch:
    """A touched row; without `changed` all of its columns count as changed."""
    row = Row(key=key(entity, number), version=V[2], columns={}, more={}, slots=slots or {}, pending=())
    return Touch(entity, row, former, frozenset(changed) or None, "applied")


def found(*roots: tuple[str, str], fan_outs: tuple[FanOut, ...] = ()) -> FoundRoots:
    return FoundRoots(frozenset(roots), fan_outs)


def asking_users(name: str, after: Key | None = None) -> Lookup:
    return Lookup(Query("GSI_1", name, "user"), paged=True, after=after)


def page(*items: Item, after: Key | None = None) -> Page:
    return Page(list(items), after)


def user(number: int, name: Any) -> Item:
    return row_item("user", number, name=name)


def test_products_that_do_not_read_the_changed_columns_ask_nothing() -> None:
    assert dialogue(find_roots(touch("repo", 9, "forks"), PLAN)) == found()


def test_a_change_of_the_root_itself_asks_nothing() -> None:
    assert dialogue(find_roots(touch("team", 4, "members"), PLAN)) == found(("teams", "4"))


def test_a_row_that_joins_by_the_key_of_the_root_asks_nothing() -> None:
    moved = touch("order", 3, "user", slots={2: "1"}, former=frozenset({(2, "2")}))
    assert dialogue(find_roots(moved, PLAN)) == found(("orders", "1"), ("orders", "2"))


def test_the_way_up_of_two_levels_reads_the_row_between_by_key() -> None:
    roots = dialogue(
        find_roots(touch("line", 8, "order", slots={2: "3"}), PLAN),
        [(key("order", 3), row_item("order", 3, user=1))],
    )
    assert roots == found(("orders", "1"))


def test_a_row_between_without_a_key_ends_the_way_up() -> None:
    between = [(key("order", 3), row_item("order", 3, user=None))]
    assert dialogue(find_roots(touch("line", 8, "order", slots={2: "3"}), PLAN), between) == found()


def test_a_delete_marker_that_an_index_still_shows_under_a_key_is_no_row_above() -> None:
    moved = touch("pull", 4, "author", slots={1: "ada"})
    marker = {**row_item("user", 7), "_deleted": True}
    answer = [(asking_users("ada"), page(marker, user(8, "ada")))]
    assert dialogue(find_roots(moved, PLAN), answer) == found(("profile", "8"))


def test_a_row_between_that_is_gone_ends_the_way_up() -> None:
    assert dialogue(find_roots(touch("line", 8, slots={2: "3"}), PLAN), [(key("order", 3), None)]) == found()


def test_the_way_up_through_a_slot_asks_one_page_for_each_key_that_the_row_has_or_had() -> None:
    moved = touch("star", 5, "who", slots={1: "bob", 2: "9"}, former=frozenset({(1, "ada")}))
    roots = dialogue(
        find_roots(moved, PLAN),
        [(asking_users("ada"), page(user(1, "ada"))), (asking_users("bob"), page(user(2, "bob"), user(3, "bob")))],
    )
    assert roots == found(("profile", "1"), ("profile", "2"), ("profile", "3"))


def test_rows_above_whose_columns_left_the_key_are_dropped() -> None:
    late = page(user(1, "ada"), user(2, "bob"), row_item("star", 3, name="ada"))
    roots = dialogue(find_roots(touch("star", 5, slots={1: "ada"}), PLAN), [(asking_users("ada"), late)])
    assert roots == found(("profile", "1"))


def test_a_row_without_a_key_asks_nothing() -> None:
    assert dialogue(find_roots(touch("star", 5, slots={1: "!TABLE#star!5"}), PLAN)) == found()


def test_a_fan_out_finds_the_roots_beyond_the_first_page() -> None:
    last = Key("TABLE#user", "2")
    roots = dialogue(
        find_roots(touch("pull", 6, "title", slots={1: "ada"}), PLAN),
        [(asking_users("ada"), page(user(1, "ada"), user(2, "ada"), after=last))],
    )
    rest = FanOut("profile", PULLS_NODE, "ada", last)
    assert roots == found(("profile", "1"), ("profile", "2"), fan_outs=(rest,))


def test_all_keys_of_a_level_are_asked_together() -> None:
    """Repo 9 has two stars, of two users. The step asks for both users in one turn."""
    stars = page(row_item("star", 5, who="ada", repo=9), row_item("star", 6, who="bob", repo=9))
    roots = dialogue(
        find_roots(touch("repo", 9, "title"), PLAN),
        [(Lookup(STARS_OF_REPO_9, paged=True), stars)],
        [(asking_users("ada"), page(user(1, "ada"))), (asking_users("bob"), page(user(2, "bob")))],
    )
    assert roots == found(("profile", "1"), ("profile", "2"))


@pytest.mark.parametrize("after", [Key("TABLE#star", "6"), None], ids=["more pages follow", "the last page"])
def test_a_resumed_fan_out_asks_its_next_page(after: Key | None) -> None:
    fan_out = FanOut("profile", REPO_NODE, "9", Key("TABLE#star", "5"))
    second = Lookup(STARS_OF_REPO_9, paged=True, after=Key("TABLE#star", "5"))
    resumed = dialogue(
        resume([fan_out], PLAN),
        [(second, page(row_item("star", 6, who="bob", repo=9), after=after))],
        [(asking_users("bob"), page(user(2, "bob")))],
    )
    assert resumed == [ResumedFanOut(fan_out, after, found(("profile", "2")))]


def test_a_fan_out_on_its_way_up_may_begin_another() -> None:
    fan_out = FanOut("profile", REPO_NODE, "9", None)
    last = Key("TABLE#user", "2")
    resumed = dialogue(
        resume([fan_out], PLAN),
        [(Lookup(STARS_OF_REPO_9, paged=True), page(row_item("star", 6, who="bob", repo=9)))],
        [(asking_users("bob"), page(user(2, "bob"), after=last))],
    )
    rest = FanOut("profile", STARS_NODE, "bob", last)
    assert resumed == [ResumedFanOut(fan_out, None, found(("profile", "2"), fan_outs=(rest,)))]


def test_the_way_up_from_an_element_of_an_array_asks_the_edges_of_the_key() -> None:
    """User 1 is a root of two products, and a member of team 4."""
    edges = Lookup("EDGE#team#members[]=1", paged=True)
    roots = dialogue(
        find_roots(touch("user", 1, "name", slots={1: "ada"}), PLAN),
        [(edges, page(row_item("team", 4, members=[1, 2])))],
    )
    assert roots == found(("profile", "1"), ("teams", "4"))


ALL_OF_ADA, ALL_OF_BOB = Query("GSI_1", "ada"), Query("GSI_1", "bob")


def test_behind_the_first_level_one_query_shows_the_root_and_the_rows_that_its_document_shows() -> None:
    shown, ada = ShownRows(), user(1, "ada")
    stars = page(row_item("star", 5, who="ada", repo=9))
    answer = page(row_item("pull", 6, author="ada"), row_item("star", 5, who="ada", repo=9), ada)
    roots = dialogue(
        find_roots(touch("repo", 9, "title"), PLAN, shown),
        [(Lookup(STARS_OF_REPO_9, paged=True), stars)],
        [(Lookup(ALL_OF_ADA), answer)],
        [],
    )
    assert roots == found(("profile", "1"))
    assert (shown.rows, shown.pages) == ({key("user", 1): (ada, ALL_OF_ADA)}, {ALL_OF_ADA: answer})
    assert shown.room == ROOM - 3
    assert shown.part([key("user", 2)]) == ShownRows(0)
    shown.forget(key("user", 1))
    assert (shown.rows, shown.pages) == ({}, {})


def test_without_room_the_way_up_asks_for_the_roots_alone() -> None:
    """A task hands over a bounded number of rows. Room for one answer: the step asks for the user of the other star alone."""
    shown = ShownRows(room=ROWS_EXPECTED - 1)
    stars = page(row_item("star", 5, who="ada", repo=9), row_item("star", 6, who="bob", repo=9))
    many = page(user(1, "ada"), *(row_item("star", n, who="ada") for n in range(ROWS_EXPECTED)))
    roots = dialogue(
        find_roots(touch("repo", 9, "title"), PLAN, shown),
        [(Lookup(STARS_OF_REPO_9, paged=True), stars)],
        [(Lookup(ALL_OF_ADA), many)],
        [(asking_users("bob"), page(user(2, "bob")))],
    )
    assert roots == found(("profile", "1"), ("profile", "2"))
    assert shown.pages == {ALL_OF_ADA: many}


def test_a_key_of_very_many_roots_is_asked_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("processor.engine.protocol.find_roots.PAGE", 1)
    shown, second = ShownRows(), key("user", 2)
    stars = page(row_item("star", 5, who="ada", repo=9))
    roots = dialogue(
        find_roots(touch("repo", 9, "title"), PLAN, shown),
        [(Lookup(STARS_OF_REPO_9, paged=True), stars)],
        [(Lookup(ALL_OF_ADA), page(user(1, "ada"), user(2, "ada")))],
        [(asking_users("ada"), page(user(1, "ada"), after=second))],
    )
    assert roots == found(("profile", "1"), fan_outs=(FanOut("profile", STARS_NODE, "ada", second),))
    assert shown.pages == {}


def test_a_touched_row_asks_for_its_roots_alone() -> None:
    """An index may not show the row yet: the publish task asks later for the rows of the document."""
    shown = ShownRows()
    asked = [(asking_users("ada"), page(user(1, "ada")))]
    assert dialogue(find_roots(touch("star", 5, slots={1: "ada"}), PLAN, shown), asked) == found(("profile", "1"))
    assert shown.pages == {}
