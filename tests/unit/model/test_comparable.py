"""What of a document compares with the answer of its product's SQL."""

from typing import Any

import pytest

from processor.definitions.load import load
from processor.model import canonical_json
from processor.model.comparable import comparable
from processor.model.json_schema import document_schema

ENTITIES = """
a: {key: [id], columns: {id: int, at: timestamp, text: string, doc: json}}
b: {key: [id], columns: {id: int, a: int, at: "timestamp[]"}}
"""
PRODUCT = """
product: p
root: a
embed: {all: {many: b, on: {a: id}}, some: {one: b, on: {a: id}, fields: {x: at}}}
"""
FINE, CUT = "2026-11-20T10:00:00.123456789Z", "2026-11-20T10:00:00.123457"


def told(**members: Any) -> Any:
    definitions = load({"entities.yaml": ENTITIES, "p.yaml": PRODUCT})
    return comparable(members, document_schema(definitions.products["p"], definitions.entities))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"id": 1, "nickname": "n"}, {"id": 1}),
        ({"at": FINE, "text": FINE, "doc": {"at": FINE}}, {"at": CUT, "text": FINE, "doc": {"at": FINE}}),
        ({"at": "2026-11-20T11:00:00.123456789+01:00"}, {"at": CUT}),
        ({"at": "2026-11-20T10:00:00X"}, {"at": "2026-11-20T10:00:00X"}),
        ({"all": [{"id": 1, "at": [FINE, None], "y": 2}, 3]}, {"all": [{"id": 1, "at": [CUT, None]}, 3]}),
        ({"some": {"x": None, "y": 2}}, {"some": {"x": None, "y": 2}}),
        ({"some": None, "all": "text"}, {"some": None, "all": "text"}),
    ],
)
def test_undeclared_members_of_whole_rows_and_what_postgres_does_not_keep_of_times_are_left_out(
    document: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert told(**document) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"id":100,"doc":{"b":1.50,"a":-0.0}}', '{"doc":{"a":0,"b":1.5},"id":1e2}'),
        ('{"id":123456789012345678901234567890123456789}', '{"id":123456789012345678901234567890123456789.0}'),
    ],
)
def test_equal_values_are_spelt_alike(one: str, other: str) -> None:
    spelt = [canonical_json.dumps(told(**canonical_json.loads(text))) for text in (one, other)]
    assert spelt[0] == spelt[1]


@pytest.mark.parametrize("values", [(True, 1), (False, 0), ("1", 1), (None, 0), ([], {}), (10**40, 10**40 + 1)])
def test_different_values_are_not(values: tuple[Any, Any]) -> None:
    spelt = [canonical_json.dumps(told(doc=value)) for value in values]
    assert spelt[0] != spelt[1]


def test_what_is_no_object_is_kept() -> None:
    assert comparable("text", {"type": "object", "properties": {}}) == "text"
