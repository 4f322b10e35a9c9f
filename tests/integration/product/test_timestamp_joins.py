"""Timestamps join by the microsecond, whatever digits the rows have: by slots, edges, primary keys and elements of arrays."""

import json
from typing import Any

import pytest

from processor.language.definitions.load import load
from tests.integration.product.conftest import Both

ENTITIES = {
    "visit": {"key": ["id"], "columns": {"id": "int", "at": "timestamp", "seen": "timestamp[]"}},
    "hour": {"key": ["at"], "columns": {"at": "timestamp", "name": "string"}},
    "sale": {"key": ["id"], "columns": {"id": "int", "at": "timestamp"}},
}
ROUNDED = "2026-11-20T10:00:00.123457Z"
NANOSECONDS = "2026-11-20T10:00:00.1234567Z"
OTHER = "2026-11-20T10:00:00.1234574Z"
UP = "2026-11-20T10:00:00.9999996Z"
ROWS: dict[str, list[dict[str, Any]]] = {
    "visit": [
        {"id": 1, "at": NANOSECONDS, "seen": [OTHER, UP, None, "2026-11-20T09:00:00Z"]},
        {"id": 2, "at": ROUNDED, "seen": []},
        {"id": 3, "at": UP, "seen": None},
        {"id": 4, "at": None, "seen": [ROUNDED]},
        {"id": 5, "at": "2026-11-20T10:00:00.123456Z", "seen": ["2026-11-20T10:00:01Z"]},
    ],
    "hour": [{"at": ROUNDED, "name": "a"}, {"at": "2026-11-20T10:00:01Z", "name": "b"}],
    "sale": [
        {"id": n, "at": at} for n, at in enumerate([NANOSECONDS, ROUNDED, OTHER, UP, "2026-11-20T10:00:01Z", None])
    ],
}


@pytest.mark.parametrize("strong", [False, True])
def test_timestamps_join_by_the_microsecond(both: Both, strong: bool) -> None:
    product = {
        "product": "visits",
        "root": "visit",
        "fields": ["id"],
        "embed": {
            "hour": {"one": "hour", "on": {"at": "at"}, "value": "name", "strong": strong},
            "sales": {"many": "sale", "on": {"at": "at"}, "value": "id", "strong": strong},
            "hours": {"many": "hour", "on": {"at": "seen[]"}, "fields": ["name"]},
        },
    }
    found = both(load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)}), ROWS)
    assert [(d["id"], d["hour"], d["sales"]) for d in found.values()] == [
        (1, "a", [0, 1, 2]), (2, "a", [0, 1, 2]), (3, "b", [3, 4]), (4, None, []), (5, None, []),
    ]  # fmt: skip
    assert [each["name"] for each in found['{"id":1}']["hours"]] == ["a", "b", None, None]


def test_a_product_of_timestamp_keys_joins_by_the_microsecond(both: Both) -> None:
    product = {
        "product": "hours",
        "root": "hour",
        "fields": ["name"],
        "embed": {
            "sales": {"many": "sale", "on": {"at": "at"}, "value": "id"},
            "visits": {"many": "visit", "on": {"seen[]": "at"}, "value": "id"},
        },
    }
    found = both(load({"entities.yaml": json.dumps(ENTITIES), "p.json": json.dumps(product)}), ROWS)
    assert [(d["name"], d["sales"], d["visits"]) for d in found.values()] == [
        ("a", [0, 1, 2], [1, 4]),
        ("b", [3, 4], [1, 5]),
    ]
