"""PostgreSQL and the steps agree on lists of grandchildren, embeds below a joined row, and aggregates over several joins."""

from textwrap import dedent
from typing import Any

import pytest

from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from processor.values import canonical_json
from tests.integration.product.conftest import Both, Rows

ENTITIES = """
user: {key: [id], columns: {id: int, name: string, city: int}}
follow: {key: [follower, followed], columns: {follower: int, followed: int, since: timestamp, muted: bool}}
post: {key: [id], columns: {id: int, author: int, title: string, at: timestamp, score: decimal, w: float}}
tag: {key: [post, word], columns: {post: int, word: string, weight: int}}
city: {key: [id], columns: {id: int, name: string, country: string}}
country: {key: [code], columns: {code: string, name: string}}
"""
ROWS: Rows = {
    "user": [
        {"id": 1, "name": "Ada", "city": 7},
        {"id": 2, "name": "Bob", "city": 8},
        {"id": 3, "name": "Cem", "city": None},
        {"id": 4, "name": None, "city": 9},
    ],
    "follow": [
        {"follower": 1, "followed": 2, "since": "2026-01-01T00:00:00Z", "muted": False},
        {"follower": 1, "followed": 3, "since": "2026-01-03T00:00:00Z", "muted": None},
        {"follower": 1, "followed": 4, "since": "2026-01-02T00:00:00Z", "muted": True},
        {"follower": 2, "followed": 1, "since": "2026-01-02T00:00:00Z", "muted": None},
        {"follower": 3, "followed": 4, "since": None, "muted": None},
    ],
    "post": [
        {"id": 10, "author": 2, "title": "b", "at": "2026-02-01T00:00:00Z", "score": "1.50", "w": 0.1},
        {"id": 11, "author": 2, "title": None, "at": "2026-02-03T00:00:00.5Z", "score": None, "w": 0.2},
        {"id": 12, "author": 3, "title": "a", "at": "2026-02-02T00:00:00Z", "score": "2", "w": 0.3},
        {"id": 13, "author": 3, "title": "b", "at": None, "score": "2.00", "w": None},
        {"id": 14, "author": 4, "title": "d", "at": "2026-02-02T00:00:00Z", "score": "-1", "w": 1e20},
        {"id": 15, "author": 1, "title": "é", "at": "2026-02-09T00:00:00Z", "score": "7", "w": 4.5},
    ],
    "tag": [
        {"post": 10, "word": "x", "weight": 1},
        {"post": 10, "word": "y", "weight": None},
        {"post": 12, "word": "x", "weight": 5},
        {"post": 14, "word": "z", "weight": 2},
        {"post": 15, "word": "X", "weight": 9},
    ],
    "city": [{"id": 7, "name": "Rom", "country": "IT"}, {"id": 8, "name": "Ulm", "country": "XX"}],
    "country": [{"code": "IT", "name": "Italy"}],
}  # fmt: skip


def product(text: str) -> Definitions:
    found = load({"entities.yaml": ENTITIES, "p.yaml": "product: p\nroot: user\n" + dedent(text)})
    (one,) = found.products.values()
    again = load({"entities.yaml": ENTITIES, "p.yaml": canonical_json.dumps(describe_product(one))})
    assert again.products["p"] == one
    return found


TIMELINE = """
    fields: [id]
    embed:
      timeline:
        many: post
        through: {many: follow, on: {follower: id}, where: muted is not true}
        on: {author: followed}
        order_by: [-at]
        limit: 2
        total: true
        fields: {id: id, title: title, since: parent.since, reader: parent.parent.name}
"""
PRODUCTS = [
    TIMELINE,
    """
    fields: [id]
    join: {follows: {many: follow, on: {follower: id}, order_by: [-since]}}
    embed:
      before: {one: city, on: {id: city}, value: name}
      titles: {many: post, on: {author: follows.followed}, order_by: title, value: title}
      words: {many: tag, on: {post: titles.id}, fields: {word: word, title: parent.title, since: parent.parent.since}}
      latest: {one: post, on: {author: follows.followed}, order_by: [-at, id], fields: [id, at]}
      after: {many: follow, on: {followed: id}, value: follower}
    """,
    """
    fields: {id: id, country_name: country.name, code: home.country}
    join:
      home: {one: city, on: {id: city}}
      country: {one: country, on: {code: home.country}}
    embed:
      land: {one: country, on: {code: home.country}, fields: [name]}
      neighbours: {many: user, on: {city: home.id}, value: id}
      count: {many: user, on: {city: home.id}, value: count(*)}
    where: id > 0
    """,
    """
    fields: [id]
    embed:
      home: {one: city, on: {id: city}, fields: [name]}
      land: {one: country, on: {code: home.country}, required: true, value: name}
    """,
    """
    fields: [id]
    join:
      follows: {many: follow, on: {follower: id}}
      posts: {many: post, on: {author: follows.followed}, required: true, join: {tags: {many: tag, on: {post: id}}}}
    embed:
      stats: {many: post, on: {author: follows.followed}, fields: {n: count(*), best: max(score), all: sum(w)}}
    """,
    """
    join:
      follows:
        many: follow
        on: {follower: id}
        join:
          posts:
            many: post
            on: {author: followed}
            order_by: [-at]
            join:
              tags: {many: tag, on: {post: id}, value: weight * 2}
              weight: {many: tag, on: {post: id}, value: sum(weight)}
      posts: {many: post, on: {author: id}, value: score}
      posted: {many: post, on: {author: follows.followed}, value: count(*)}
    fields:
      id: id
      posts: count(follows.posts)
      tags: count(follows.posts.tags)
      weight: sum(follows.posts.weight)
      doubled: sum(follows.posts.tags)
      scored: sum(follows.posts.tags.weight * follows.posts.score)
      recent: max(follows.posts.at)
      recently: max(case when follows.posts.at > follows.since then follows.posts.title end)
      own: sum(posts)
      average: avg(posts)
      titles: array_agg(follows.posts.title)
      floats: sum(follows.posts.w)
      posted: posted + 1
    """,
    """
    fields: [id]
    join:
      home: {one: city, on: {id: city}, join: {land: {one: country, on: {code: country}}}}
      follows: {many: follow, on: {follower: id}, join: {posts: {many: post, on: {author: followed}}}}
    embed:
      mixed: {many: user, on: {city: home.id}, fields: {n: max(id), above: max(parent.parent.name), of: parent.parent.name}}
      pairs:
        many: post
        through: {many: follow, on: {followed: id}, through: {one: city, on: {id: city}}}
        on: {author: follower}
        value: title
    """.replace("on: {followed: id}, through: {one: city, on: {id: city}}", "on: {followed: id}"),
]  # fmt: skip


@pytest.mark.parametrize("text", PRODUCTS, ids=range(len(PRODUCTS)))
def test_the_steps_and_postgres_agree(both: Both, text: str) -> None:
    assert both(product(text), ROWS)


def test_a_timeline_is_one_list_of_the_posts_of_all_followed(both: Both) -> None:
    found = both(product(TIMELINE), ROWS)
    assert found['{"id":1}'] == {
        "id": 1,
        "timeline": [
            {"id": 11, "title": None, "since": "2026-01-01T00:00:00Z", "reader": "Ada"},
            {"id": 12, "title": "a", "since": "2026-01-03T00:00:00Z", "reader": "Ada"},
        ],
        "timeline_total": 4,
    }
    assert found['{"id":4}'] == {"id": 4, "timeline": [], "timeline_total": 0}


def test_a_through_of_a_through_reads_the_rows_of_both(both: Both) -> None:
    text = """
        fields: [id]
        embed:
          tags:
            many: tag
            through: {many: post, on: {author: followed}, through: {many: follow, on: {follower: id}}}
            on: {post: id}
            order_by: [word, -weight]
            fields: {word: word, title: parent.title, since: parent.parent.since, name: parent.parent.parent.name}
    """
    words: list[Any] = [one["word"] for one in both(product(text), ROWS)['{"id":1}']["tags"]]
    assert words == ["x", "x", "y", "z"]
