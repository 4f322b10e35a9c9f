"""Assembling one document: each read, and the rows that the step takes from the answers."""

from typing import Any

from processor.engine.plan.planning import plan_alone
from processor.engine.plan.step import Lookup
from processor.engine.protocol.assemble import assemble
from processor.language.definitions.load import load
from processor.language.product.document import Match
from statestore.store import Item, Page, Query
from tests.unit.engine.protocol.dialogue import dialogue
from tests.unit.engine.protocol.example import PLAN, key, row_item

PROFILE, ORDERS, TEAMS = (PLAN.products[name] for name in ("profile", "orders", "teams"))
ADA = row_item("user", 1, name="ada", bio="")
NOBODY = row_item("user", 1, name=None, bio="")
STARS_AND_PULLS = Lookup(Query("GSI_1", "ada"))


def ids(match: Match | None) -> Any:
    """A document's rows by join, as nested (id, rows below)."""
    assert match is not None
    return {join: [(row.columns["id"], ids(row)) for row in rows] for join, rows in match.found.items()}


def page(*items: Item) -> Page:
    return Page(list(items), None)


def test_a_root_without_a_row_has_no_document() -> None:
    assert dialogue(assemble(PLAN, PROFILE, "1"), [(key("user", 1), None)]) is None


def test_a_deleted_root_has_no_document() -> None:
    marker = {"PK": "TABLE#user", "SK": "1", "_f": 1, "_v": "x", "_deleted": True}
    assert dialogue(assemble(PLAN, PROFILE, "1"), [(key("user", 1), marker)]) is None


def test_two_joins_that_share_a_slot_ask_the_same_lookup() -> None:
    """The runner sends equal lookups once. Each join takes the rows of its own entity."""
    both = page(row_item("star", 5, who="ada", repo=None), row_item("pull", 6, author="ada"))
    top = dialogue(
        assemble(PLAN, PROFILE, "1"),
        [(key("user", 1), ADA)],
        [(STARS_AND_PULLS, both), (STARS_AND_PULLS, both)],
    )
    assert ids(top) == {"stars": [(5, {"repo": []})], "pulls": [(6, {})]}


def test_rows_of_another_entity_are_dropped() -> None:
    """Star 5 also has a column `author`, the join column of pulls."""
    both = page(row_item("star", 5, who="ada", repo=None, author="ada"))
    top = dialogue(
        assemble(PLAN, PROFILE, "1"),
        [(key("user", 1), ADA)],
        [(STARS_AND_PULLS, both), (STARS_AND_PULLS, both)],
    )
    assert ids(top) == {"stars": [(5, {"repo": []})], "pulls": []}


def test_rows_whose_columns_left_the_key_are_dropped() -> None:
    """The index still shows star 6 and the deleted star 7 under `ada`."""
    marker = {"PK": "TABLE#star", "SK": "7", "_f": 1, "_v": "x", "_deleted": True, "GSI_1": "ada"}
    late = page(row_item("star", 5, who="ada", repo=None), row_item("star", 6, who="bob", repo=2), marker)
    top = dialogue(
        assemble(PLAN, PROFILE, "1"),
        [(key("user", 1), ADA)],
        [(STARS_AND_PULLS, late), (STARS_AND_PULLS, late)],
    )
    assert ids(top) == {"stars": [(5, {"repo": []})], "pulls": []}


def test_a_null_key_asks_nothing() -> None:
    assert ids(dialogue(assemble(PLAN, PROFILE, "1"), [(key("user", 1), NOBODY)])) == {"stars": [], "pulls": []}


def test_the_joins_below_all_rows_of_a_level_are_asked_together() -> None:
    rows = page(*[row_item("order", n, user=1) for n in (3, 4)])

    def lines(order: int) -> Lookup:
        return Lookup(Query("GSI_2", str(order), "line"))

    top = dialogue(
        assemble(PLAN, ORDERS, "1"),
        [(key("user", 1), ADA)],
        [(Lookup(Query("GSI_2", "1", "order")), rows)],
        [(lines(3), page(row_item("line", 8, order=3))), (lines(4), page(row_item("line", 9, order=4)))],
    )
    assert ids(top) == {"orders": [(3, {"lines": [(8, {})]}), (4, {"lines": [(9, {})]})]}


def test_a_join_on_a_primary_key_reads_by_key() -> None:
    both = page(row_item("star", 5, who="ada", repo=2), row_item("star", 6, who="ada", repo=3))
    top = dialogue(
        assemble(PLAN, PROFILE, "1"),
        [(key("user", 1), ADA)],
        [(STARS_AND_PULLS, both), (STARS_AND_PULLS, both)],
        [(key("repo", 2), row_item("repo", 2, title="ice")), (key("repo", 3), None)],
    )
    assert ids(top) == {"stars": [(5, {"repo": [(2, {})]}), (6, {"repo": []})], "pulls": []}


def test_each_element_of_an_array_is_asked_once() -> None:
    top = dialogue(
        assemble(PLAN, TEAMS, "4"),
        [(key("team", 4), row_item("team", 4, members=[2, 1, 2, None]))],
        [(key("user", 2), row_item("user", 2, name="bob")), (key("user", 1), ADA)],
    )
    assert ids(top) == {"members": [(2, {}), (1, {})]}


def test_an_array_without_elements_asks_nothing() -> None:
    assert ids(dialogue(assemble(PLAN, TEAMS, "4"), [(key("team", 4), row_item("team", 4, members=None))])) == {
        "members": []
    }


def test_the_joins_below_two_joins_of_a_level_are_asked_together() -> None:
    plan = plan_alone(
        load(
            {
                "entities.yaml": """
                    user: {key: [id], columns: {id: int, name: string}}
                    star: {key: [id], columns: {id: int, who: string, repo: int}}
                    repo: {key: [id], columns: {id: int, title: string}}
                """,
                "p.yaml": """
                    product: p
                    root: user
                    embed:
                      given: {many: star, on: {who: name}, join: {repo: {one: repo, on: {id: repo}}}, value: repo.title}
                      first: {many: star, on: {id: id}, join: {repo: {one: repo, on: {id: repo}}}, value: repo.title}
                """,
            }
        ),
        20,
    )
    top = dialogue(
        assemble(plan, plan.products["p"], "1"),
        [(key("user", 1), ADA)],
        [
            (Lookup(Query("GSI_1", "ada", "star")), page(row_item("star", 5, who="ada", repo=2))),
            (key("star", 1), row_item("star", 1, who="bob", repo=3)),
        ],
        [(key("repo", 2), row_item("repo", 2, title="ice")), (key("repo", 3), row_item("repo", 3, title="sea"))],
    )
    assert ids(top) == {"given": [(5, {"repo": [(2, {})]})], "first": [(1, {"repo": [(3, {})]})]}
