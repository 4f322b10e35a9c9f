"""The definitions of the shapes `stars`, `pair`, `newest` and `counted` (`tests.simulator.shapes`)."""

import json

STARS = {
    "entities.yaml": json.dumps(
        {
            "user": {
                "truncate": "delete",
                "key": ["email"],
                "columns": {"email": "string", "id": "int", "username": "string", "bio": "string", "n": "int"},
            },
            "repo": {
                "truncate": "delete",
                "key": ["owner", "name"],
                "columns": {"owner": "string", "name": "string", "stars": "int", "about": "string", "n": "int"},
            },
            "star": {
                "truncate": "delete",
                "key": ["id"],
                "shards": 2,
                "columns": {
                    "id": "int",
                    "username": "string",
                    "repo_owner": "string",
                    "repo_name": "string",
                    "at": "int",
                    "note": "string",
                    "n": "int",
                },
            },
            "label": {
                "truncate": "delete",
                "key": ["id"],
                "columns": {"id": "int", "repo_owner": "string", "repo_name": "string", "text": "string", "n": "int"},
            },
        }
    ),
    "profile.yaml": json.dumps(
        {
            "product": "profile",
            "root": "user",
            "fields": ["email", "username", "n"],
            "embed": {
                "stars": {
                    "many": "star",
                    "on": {"username": "username"},
                    "order_by": ["-at"],
                    "fields": ["id", "at", "n"],
                    "embed": {
                        "repo": {
                            "one": "repo",
                            "on": {"owner": "repo_owner", "name": "repo_name"},
                            "fields": ["owner", "name", "about", "n"],
                        },
                        "labels": {
                            "many": "label",
                            "on": {"repo_owner": "repo_owner", "repo_name": "repo_name"},
                            "fields": ["id", "text", "n"],
                            "limit": 2,
                        },
                    },
                }
            },
        }
    ),
    "fans.yaml": json.dumps(
        {
            "product": "fans",
            "root": "repo",
            "fields": ["owner", "name", "n"],
            "embed": {
                "stars": {
                    "many": "star",
                    "on": {"repo_owner": "owner", "repo_name": "name"},
                    "fields": ["id", "n"],
                    "embed": {"user": {"one": "user", "on": {"username": "username"}, "fields": ["email", "n"]}},
                }
            },
        }
    ),
}


def _pair(**more: str) -> dict[str, str]:
    star = {"id": "int", "username": "string", "note": "string", "n": "int", **more}
    return {
        "entities.yaml": json.dumps(
            {
                "user": {
                    "key": ["email"],
                    "columns": {"email": "string", "username": "string", "bio": "string", "n": "int"},
                },
                "star": {"key": ["id"], "columns": star},
            }
        ),
        "profile.yaml": json.dumps(
            {
                "product": "profile",
                "root": "user",
                "fields": ["email", "username", "n"],
                "embed": {"stars": {"many": "star", "on": {"username": "username"}, "fields": ["id", "n", *more]}},
            }
        ),
    }


def _newest() -> dict[str, str]:
    """The newest stars of each user by an index with their order, the last one alone, and others by an order that has ties."""
    columns = {"id": "int", "username": "string", "at": "int", "good": "bool", "n": "int"}
    stars = {"on": {"username": "username"}, "fields": ["id", "at", "n"], "ordered": True}
    newest = {"many": "star", **stars, "order_by": ["-at"], "limit": 2, "where": "good"}
    return {
        "entities.yaml": json.dumps(
            {"user": json.loads(_pair()["entities.yaml"])["user"], "star": {"key": ["id"], "columns": columns}}
        ),
        "newest.yaml": json.dumps(
            {
                "product": "newest",
                "root": "user",
                "fields": ["email", "username", "n"],
                "embed": {"newest": newest, "last": {"one": "star", **stars, "order_by": ["-at"]}},
            }
        ),
        "oldest.yaml": json.dumps(
            {
                "product": "oldest",
                "root": "user",
                "fields": ["email", "n"],
                "embed": {"oldest": {"many": "star", **stars, "order_by": ["good", "at", "-n"], "limit": 3}},
            }
        ),
    }


def _counted() -> dict[str, str]:
    """The stars of each user by their totals: of all that count, and of some others with another condition."""
    stars = {"many": "star", "on": {"username": "username"}, "counted": True}
    fields = {"stars": "count(*)", "good": "bool_and(good)", "last": "sum(at) filter (where good)"}
    product = {"root": "user", "fields": {"email": "email", "stars": "count(stars)", "sum": "sum(stars.at)"}}
    return {
        "entities.yaml": NEWEST["entities.yaml"].replace('"key"', '"truncate": "delete", "key"'),
        "counted.yaml": json.dumps({"product": "counted", **product, "join": {"stars": stars}}),
        "others.yaml": json.dumps(
            {
                "product": "others",
                "root": "user",
                "fields": ["email", "username", "n"],
                "embed": {"stars": {**stars, "where": "at > 1", "fields": fields}},
            }
        ),
    }


PAIR = _pair()
NEWEST = _newest()
PRICES = _pair(price="decimal(12,2)")
TOTALS = {
    "entities.yaml": PAIR["entities.yaml"],
    "totals.yaml": json.dumps(
        {
            "product": "totals",
            "root": {"group": "star", "by": ["username"]},
            "fields": {"username": "username", "stars": "count(*)", "last": "max(n)"},
        }
    ),
}
COUNTED = _counted()
