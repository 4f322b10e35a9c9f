"""The tree of a root entity: which joins of its products are one node, and who reads what there."""

import json
from typing import Any

from processor.engine.plan.plan import RootTree, merge, shared_tree_lines
from processor.engine.plan.planning import plan_alone
from processor.language.definitions.load import load
from processor.tools.inspect.explain import explain, explanation_lines

ENTITIES = """
user: {key: [id], columns: {id: int, name: string, bio: string, ids: "int[]"}}
star: {key: [id], columns: {id: int, name: string, repo: int, at: int, note: string}}
repo: {key: [id], columns: {id: int, about: string}}
fork: {key: [id], columns: {id: int, name: string}}
"""
STARS = {"many": "star", "on": {"name": "name"}, "fields": ["id"]}
REPO = {"one": "repo", "on": {"id": "repo"}, "fields": ["about"]}


def tree_of(*embeds: dict[str, Any], fields: tuple[str, ...] = ("id", "name")) -> RootTree:
    """The tree of users with one product for each of these embeds: p0, p1, .."""
    products = {
        f"p{n}.json": json.dumps({"product": f"p{n}", "root": "user", "fields": list(fields), "embed": embed})
        for n, embed in enumerate(embeds)
    }
    return plan_alone(load({"entities.yaml": ENTITIES, **products}), slots=20).trees["user"]


def shown(tree: RootTree) -> list[tuple[str, int | None, list[str]]]:
    """Each node: its entity, the node above, and its products."""
    return [(node.join.join.entity, node.join.parent, sorted(node.users)) for node in tree.nodes]


def test_equal_joins_of_several_products_are_one_node() -> None:
    tree = tree_of({"stars": {**STARS, "embed": {"repo": REPO}}}, {"likes": {**STARS, "embed": {"of": REPO}}})
    assert shown(tree) == [("star", None, ["p0", "p1"]), ("repo", 0, ["p0", "p1"])]
    assert tree.top == (0,)
    assert tree.nodes[0].join.below == (1,)


def test_where_order_and_limit_belong_to_the_product_and_part_no_node() -> None:
    tree = tree_of({"stars": {**STARS, "where": "at > 3", "order_by": ["-at"], "limit": 2}}, {"stars": STARS})
    assert shown(tree) == [("star", None, ["p0", "p1"])]


def test_joins_over_other_columns_or_below_another_node_are_nodes_of_their_own() -> None:
    by_note = {**STARS, "on": {"note": "name"}}
    tree = tree_of({"stars": {**STARS, "embed": {"repo": REPO}}}, {"noted": {**by_note, "embed": {"repo": REPO}}})
    assert shown(tree) == [("star", None, ["p0"]), ("repo", 0, ["p0"]), ("star", None, ["p1"]), ("repo", 2, ["p1"])]
    assert tree.top == (0, 2)


def test_two_joins_of_one_product_over_the_same_columns_are_one_node() -> None:
    tree = tree_of({"old": {**STARS, "where": "at < 3"}, "new": {**STARS, "where": "at > 2", "embed": {"repo": REPO}}})
    assert [node.users for node in tree.nodes] == [{"p0": (0, 1)}, {"p0": (2,)}]
    assert tree.shape["p0"] == (("old", 0, ()), ("new", 0, (("repo", 1, ()),)))


def test_a_strong_join_and_one_by_an_index_are_two_nodes() -> None:
    tree = tree_of({"stars": STARS}, {"stars": {**STARS, "strong": True}})
    assert shown(tree) == [("star", None, ["p0"]), ("star", None, ["p1"])]


def test_joins_by_the_elements_of_an_array_are_one_node() -> None:
    friends = {"many": "user", "on": {"id": "ids[]"}, "fields": ["id"]}
    tree = tree_of({"friends": friends}, {"others": {**friends, "fields": ["name"]}}, fields=("id",))
    assert shown(tree) == [("user", None, ["p0", "p1"])]


def test_a_query_of_siblings_serves_the_product_that_would_ask_for_one_entity() -> None:
    """Stars and forks of a user share a slot's key, so a product with both asks one query for both."""
    forks = {"many": "fork", "on": {"name": "name"}, "fields": ["id"]}
    for embeds in (
        [{"stars": STARS, "forks": forks}, {"stars": STARS}],
        [{"stars": STARS}, {"stars": STARS, "forks": forks}],
    ):
        tree = tree_of(*embeds)
        assert sorted(shown(tree))[1] == ("star", None, ["p0", "p1"])
        downs = {node.join.join.entity: node.join.down for node in tree.nodes}
        assert downs["star"] == downs["fork"]
        assert not downs["star"].pinned  # type: ignore[union-attr]


def test_a_node_knows_which_products_read_a_changed_column() -> None:
    tree = tree_of(
        {"stars": STARS}, {"stars": {**STARS, "fields": ["id", "note"]}}, {"stars": {**STARS, "where": "at > 3"}}
    )
    assert tree.reading(0, frozenset({"note"})) == ["p1"]
    assert tree.reading(0, frozenset({"at"})) == ["p2"]
    assert tree.reading(0, frozenset({"name", "note"})) == ["p0", "p1", "p2"]
    assert tree.reading(0, frozenset({"repo"})) == []
    assert tree.reading(0, None) == ["p0", "p1", "p2"]
    assert tree.reading(None, frozenset({"bio"})) == []


def test_an_entity_has_its_places_in_every_tree() -> None:
    texts = {
        "entities.yaml": ENTITIES,
        "p.json": json.dumps({"product": "p", "root": "user", "fields": ["id"], "embed": {"stars": STARS}}),
        "q.json": json.dumps({"product": "q", "root": "star", "fields": ["id"]}),
    }
    plan = plan_alone(load(texts), slots=20)
    assert plan.places == {"user": (("user", None),), "star": (("user", 0), ("star", None))}
    assert merge([plan.products["p"]]) == plan.trees["user"]
    assert plan.without(["p"]).places == {"star": (("star", None),)}


def test_a_tree_is_shown_with_the_products_at_each_join() -> None:
    tree = tree_of(*[{"stars": STARS}] * 4, {"stars": {**STARS, "embed": {"repo": REPO}}})
    assert list(shared_tree_lines([tree])) == [
        "user: p0, p1, p2 and 2 more",
        "  star on name = user.name: all",
        "    repo on id = star.repo: p4",
    ]
    assert list(shared_tree_lines([tree_of({"stars": STARS})])) == []


def test_explain_names_the_other_products_of_each_join() -> None:
    texts = {
        f"{name}.json": json.dumps({"product": name, "root": "user", "fields": ["id"], "embed": embed})
        for name, embed in {"p": {"stars": STARS}, "q": {"likes": {**STARS, "embed": {"repo": REPO}}}}.items()
    }
    plan = plan_alone(load({"entities.yaml": ENTITIES, **texts}), slots=20)
    lines = list(explanation_lines(explain(plan, plan.products["q"])))
    assert [line.strip() for line in lines if "read once" in line] == ["read once with p"]
