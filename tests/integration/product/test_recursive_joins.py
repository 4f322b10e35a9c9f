"""PostgreSQL and the steps agree on joins of any depth: trees, the way to the top, lists and groups of all levels."""

from textwrap import dedent
from typing import Any

import pytest

from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from processor.values import canonical_json
from tests.integration.product.conftest import Both, Rows

ENTITIES = """
category: {key: [id], columns: {id: int, parent_id: int, name: string, size: decimal, at: timestamp, owner: int}}
person: {key: [id], columns: {id: int, name: string}}
link: {key: [a, b], columns: {a: string, b: int, to_a: string, to_b: int}}
"""
ROWS: Rows = {
    "category": [
        {"id": 1, "parent_id": None, "name": "all", "size": "1.5", "at": "2026-01-01T00:00:00Z", "owner": 7},
        {"id": 2, "parent_id": 1, "name": "books", "size": "2", "at": "2026-01-03T00:00:00Z", "owner": 8},
        {"id": 3, "parent_id": 1, "name": "Arts", "size": None, "at": None, "owner": None},
        {"id": 4, "parent_id": 2, "name": "sf", "size": "4.25", "at": "2026-01-02T00:00:00Z", "owner": 7},
        {"id": 5, "parent_id": 4, "name": None, "size": "5", "at": "2026-01-02T00:00:00Z", "owner": 9},
        {"id": 6, "parent_id": 5, "name": "deep", "size": "6", "at": "2026-01-05T00:00:00Z", "owner": 8},
        {"id": 7, "parent_id": 7, "name": "own parent", "size": "7", "at": None, "owner": None},
        {"id": 8, "parent_id": 9, "name": "a", "size": "8", "at": None, "owner": 8},
        {"id": 9, "parent_id": 8, "name": "b", "size": "9", "at": None, "owner": 7},
        {"id": 10, "parent_id": 99, "name": "orphan", "size": "10", "at": None, "owner": None},
    ],
    "person": [{"id": 7, "name": "Ada"}, {"id": 8, "name": "Bob"}],
    "link": [
        {"a": "x", "b": 1, "to_a": "x", "to_b": 2},
        {"a": "x", "b": 2, "to_a": "y", "to_b": 1},
        {"a": "y", "b": 1, "to_a": "x", "to_b": 1},
        {"a": "y", "b": 2, "to_a": "x", "to_b": 2},
    ],
}  # fmt: skip


def product(text: str, root: str = "category") -> Definitions:
    found = load({"entities.yaml": ENTITIES, "p.yaml": f"product: p\nroot: {root}\n" + dedent(text)})
    (one,) = found.products.values()
    again = load({"entities.yaml": ENTITIES, "p.yaml": canonical_json.dumps(describe_product(one))})
    assert again.products["p"] == one
    return found


def shown(documents: dict[str, Any], key: int, member: str) -> Any:
    return documents[canonical_json.dumps({"id": key})][member]


def test_each_row_of_a_tree_shows_the_rows_below_it(both: Both) -> None:
    found = both(
        product("""
        fields: [id]
        embed:
          below: {many: category, on: {parent_id: id}, recursive: 8, order_by: [name], fields: {id: id, at: depth()}}
        """),
        ROWS,
    )
    assert shown(found, 2, "below") == [
        {"id": 4, "at": 1, "below": [{"id": 5, "at": 2, "below": [{"id": 6, "at": 3, "below": []}]}]}
    ]


def test_the_way_to_the_top_is_one_object_in_another(both: Both) -> None:
    found = both(
        product("embed: {up: {one: category, on: {id: parent_id}, recursive: 3, fields: [id, name]}}\nfields: [id]"),
        ROWS,
    )
    assert shown(found, 4, "up") == {"id": 2, "name": "books", "up": {"id": 1, "name": "all", "up": None}}
    assert shown(found, 6, "up") == {
        "id": 5,
        "name": None,
        "up": {"id": 4, "name": "sf", "up": {"id": 2, "name": "books"}},
    }


@pytest.mark.parametrize("key", [7, 8, 9])
def test_a_row_that_is_above_itself_is_left_out(both: Both, key: int) -> None:
    found = both(
        product("embed: {up: {one: category, on: {id: parent_id}, recursive: 5, fields: [id]}}\nfields: [id]"), ROWS
    )
    assert shown(found, key, "up") == (None if key == 7 else {"id": 17 - key, "up": None})


def test_a_breadcrumb_is_an_aggregate_over_the_rows_above(both: Both) -> None:
    found = both(
        product("""
        fields: {id: id, path: "coalesce(trail || ' > ', '') || name"}
        join:
          trail: {many: category, on: {id: parent_id}, recursive: 8, value: "string_agg(name, ' > ' order by depth() desc)"}
        """),
        ROWS,
    )
    assert shown(found, 4, "path") == "all > books > sf"
    assert shown(found, 1, "path") == "all"
    assert shown(found, 6, "path") == "all > books > sf > deep"


def test_aggregates_read_the_rows_of_all_levels(both: Both) -> None:
    found = both(
        product("""
        fields: {id: id, n: n, total: "size + coalesce(sum, 0)", last: last, sizes: sizes}
        join:
          n: {many: category, on: {parent_id: id}, recursive: 8, value: count(*)}
          sum: {many: category, on: {parent_id: id}, recursive: 8, where: name is not null, value: sum(size)}
          last: {many: category, on: {parent_id: id}, recursive: 4, order_by: [at], value: last(name)}
          sizes: {many: category, on: {parent_id: id}, recursive: 4, value: "array_agg(size * depth() order by parent.size)"}
        """),
        ROWS,
    )
    assert (shown(found, 1, "n"), shown(found, 6, "n"), shown(found, 8, "n")) == (5, 0, 1)
    assert shown(found, 2, "total") == pytest.approx(2 + 4.25)


def test_a_condition_ends_the_way_down(both: Both) -> None:
    found = both(
        product("""
        fields: [id]
        embed:
          below: {many: category, on: {parent_id: id}, recursive: 8, as_list: true, where: name <> 'books', value: id}
        """),
        ROWS,
    )
    assert (shown(found, 1, "below"), shown(found, 2, "below")) == ([3], [4])


@pytest.mark.parametrize(
    "more",
    [
        "",
        "order_by: [-size], limit: 2, total: true",
        "order_by: [-depth(), name]",
        "order_by: [owner.name], distinct: true",
        "key: owner.name",
        "strong: true",
        "order_by: [-at], where: size > parent.size",
    ],
)
def test_the_rows_of_all_levels_are_one_list(both: Both, more: str) -> None:
    found = both(
        product(f"""
        fields: [id]
        embed:
          below:
            {{many: category, on: {{parent_id: id}}, recursive: 8, as_list: true{", " + more if more else ""},
             join: {{owner: {{one: person, on: {{id: owner}}}}}},
             embed: {{people: {{many: person, on: {{id: owner}}, value: name}}}},
             fields: {{owner: owner.name, at: depth(), above: parent.name{"" if "distinct" in more else ", id: id"}}}}}
        """),
        ROWS,
    )
    if not more:
        assert [row["id"] for row in shown(found, 1, "below")] == [2, 3, 4, 5, 6]


def test_a_key_of_several_columns_leads_up(both: Both) -> None:
    both(
        product(
            """
            embed:
              next: {one: link, on: {a: to_a, b: to_b}, recursive: 6}
              all: {many: link, on: {a: to_a, b: to_b}, recursive: 6, as_list: true, fields: {a: a, b: b, d: depth()}}
              back: {many: link, on: {to_a: a, to_b: b}, recursive: 3, fields: [a, b]}
            """,
            root="link",
        ),
        ROWS,
    )


def test_a_recursive_join_below_another_join(both: Both) -> None:
    both(
        product(
            """
            fields: [id]
            embed:
              categories:
                many: category
                on: {owner: id}
                fields: {id: id, grand: up.up.name}
                join: {up: {one: category, on: {id: parent_id}, recursive: 2}}
                embed: {below: {many: category, on: {parent_id: id}, recursive: 3, fields: [id]}}
            """,
            root="person",
        ),
        ROWS,
    )
