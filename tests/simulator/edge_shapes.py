"""Definitions and rows of the shapes with joins by edges.

lists    three products over three tables: list joins in both directions, two levels deep, and a strong join. The elements are
         primary keys, or other columns in slots.
strong   the products of `stars` with only strong joins, so without slots
"""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

LISTS = {
    "entities.yaml": json.dumps(
        {
            "team": {
                "key": ["id"],
                "shards": 2,
                "columns": {"id": "int", "ids": "int[]", "people": "json[]", "motto": "string"},
            },
            "user": {"key": ["id"], "columns": {"id": "int", "login": "string", "name": "string"}},
            "badge": {"key": ["id"], "columns": {"id": "int", "user": "int", "text": "string"}},
        }
    ),
    "teams.yaml": json.dumps(
        {
            "product": "teams",
            "root": "team",
            "fields": ["id"],
            "embed": {
                "members": {
                    "many": "user",
                    "on": {"id": "ids[]"},
                    "fields": ["id", "name"],
                    "embed": {"badges": {"many": "badge", "on": {"user": "id"}, "strong": True, "value": "text"}},
                },
                "people": {"many": "user", "on": {"login": "people[].login"}, "fields": ["login", "id"]},
            },
        }
    ),
    "users.yaml": json.dumps(
        {
            "product": "users",
            "root": "user",
            "fields": ["id"],
            "embed": {
                "teams": {"many": "team", "on": {"ids[]": "id"}, "value": "id"},
                "named": {"many": "team", "on": {"people[].login": "login"}, "value": "id"},
            },
        }
    ),
    "badges.yaml": json.dumps(
        {
            "product": "badges",
            "root": "badge",
            "fields": ["text"],
            "embed": {
                "user": {
                    "one": "user",
                    "on": {"id": "user"},
                    "fields": ["name"],
                    "embed": {"teams": {"many": "team", "on": {"ids[]": "id"}, "value": "id"}},
                }
            },
        }
    ),
}


def _some(r: Random, values: tuple[Any, ...]) -> list[Any] | None:
    return None if r.random() < 0.1 else [r.choice(values) for _ in range(r.randrange(4))]


LIST_ROWS: Mapping[str, Callable[[Random], dict[str, Any]]] = {
    "team": lambda r: {
        "id": r.randrange(2),
        "ids": _some(r, (0, 1, 2, None)),
        "people": _some(r, ({"login": "a"}, {"login": "b"}, {"login": None}, 3)),
        "motto": r.choice("01"),
    },
    "user": lambda r: {"id": r.randrange(3), "login": r.choice(("a", "b", None)), "name": r.choice("01")},
    "badge": lambda r: {"id": r.randrange(2), "user": r.choice((0, 1, 2, None)), "text": r.choice("01")},
}


def strong(files: Mapping[str, str]) -> dict[str, str]:
    """The same definitions with only strong joins."""
    return {
        name: text if name == "entities.yaml" else json.dumps(_strong(json.loads(text))) for name, text in files.items()
    }


def _strong(level: dict[str, Any]) -> dict[str, Any]:
    joins = {name: _strong(join) | {"strong": True} for name, join in level.get("embed", {}).items()}
    return level | {"embed": joins} if joins else level
