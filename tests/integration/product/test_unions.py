"""PostgreSQL and the steps agree on one list of the rows of several joins."""

import pytest

from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.language.product.document_type import document_schema
from processor.language.product.product import Definitions
from processor.values import canonical_json
from tests.integration.product.conftest import Both, Rows

ENTITIES = """
user: {key: [id], columns: {id: int, name: string}}
follow: {key: [follower, followed], columns: {follower: int, followed: int}}
post: {key: [id], columns: {id: int, author: int, title: string, at: timestamp, score: "decimal(8,2)"}}
share: {key: [who, of], columns: {who: int, of: int, at: timestamp}}
note: {key: [word], columns: {word: string, who: int, at: timestamp, score: "decimal(10,4)"}}
"""
ROWS: Rows = {
    "user": [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}, {"id": 3, "name": None}],
    "follow": [{"follower": 1, "followed": 2}, {"follower": 1, "followed": 3}, {"follower": 2, "followed": 1}],
    "post": [
        {"id": 10, "author": 1, "title": "a", "at": "2026-02-03T00:00:00Z", "score": "1.5"},
        {"id": 11, "author": 1, "title": None, "at": "2026-02-01T00:00:00Z", "score": None},
        {"id": 12, "author": 2, "title": "c", "at": None, "score": "3"},
        {"id": 13, "author": 3, "title": "a", "at": "2026-02-03T00:00:00Z", "score": "1.50"},
    ],
    "share": [
        {"who": 1, "of": 12, "at": "2026-02-02T00:00:00Z"},
        {"who": 2, "of": 10, "at": "2026-02-04T00:00:00Z"},
        {"who": 2, "of": 99, "at": "2026-02-03T00:00:00Z"},
    ],
    "note": [
        {"word": "x", "who": 1, "at": "2026-02-03T00:00:00Z", "score": "1.5000"},
        {"word": "b", "who": 1, "at": "2026-02-03T00:00:00Z", "score": "0.1"},
    ],
}  # fmt: skip
THREE = """
      post: {many: post, on: {author: id}, fields: {kind: "'post'", text: title, at: at, score: score}}
      share:
        many: share
        on: {who: id}
        where: of < 50
        join: {post: {one: post, on: {id: of}}}
        fields: {kind: "'share'", text: post.title, at: at, score: "null"}
      note: {many: note, on: {who: id}, fields: {kind: "'note'", text: word, at: at, score: score}}
"""
FOLLOWED = """
join:
  following: {many: follow, on: {follower: id}}
"""
THROUGH = """
      post: {many: post, on: {author: following.followed}, fields: {kind: "'post'", text: title, by: parent.followed}}
      share:
        many: share
        through: {many: follow, on: {follower: id}}
        on: {who: followed}
        fields: {kind: "'share'", text: "of::text", by: who}
"""


def product(parts: str, more: str = "", level: str = "") -> Definitions:
    text = f"product: p\nroot: user\nfields: [id]\n{level}\nembed:\n  feed:\n    union:\n{parts}\n" + "".join(
        f"    {line}\n" for line in more.split("; ") if line
    )
    found = load({"entities.yaml": ENTITIES, "p.yaml": text})
    (one,) = found.products.values()
    again = load({"entities.yaml": ENTITIES, "p.yaml": canonical_json.dumps(describe_product(one))})
    assert again.products["p"] == one
    document_schema(one, found.entities)
    return found


@pytest.mark.parametrize(
    "more",
    [
        "",
        "order_by: [-at]",
        "order_by: [-at]; limit: 3; total: true",
        "order_by: [-kind, text]",
        "distinct: true",
        "key: text",
    ],
)
def test_the_rows_of_several_joins_are_one_list(both: Both, more: str) -> None:
    found = both(product(THREE, more), ROWS)
    feed = found['{"id":1}']["feed"]
    if not more:
        assert [(one["kind"], one["text"]) for one in feed] == [
            ("post", "a"), ("post", None), ("share", "c"), ("note", "b"), ("note", "x")
        ]  # fmt: skip
    if more.startswith("order_by: [-at]; limit"):
        assert ([one["kind"] for one in feed], found['{"id":1}']["feed_total"]) == (["post", "note", "note"], 5)


def test_rows_of_parts_with_other_keys_do_not_get_lost_in_a_tie(both: Both) -> None:
    found = both(product(THREE, "order_by: [at]"), ROWS)
    tied = [one["text"] for one in found['{"id":1}']["feed"] if one["at"] == "2026-02-03T00:00:00Z"]
    assert tied == ["a", "b", "x"]


@pytest.mark.parametrize("more", ["", "order_by: [-at]; limit: 2"])
def test_a_part_may_join_the_rows_of_another_join(both: Both, more: str) -> None:
    found = both(product(THROUGH, more, FOLLOWED), ROWS)
    if not more:
        assert [(one["kind"], one["text"], one["by"]) for one in found['{"id":1}']["feed"]] == [
            ("post", "c", 2), ("post", "a", 3), ("share", "10", 2), ("share", "99", 2)
        ]  # fmt: skip
