"""The part of a document that compares with the answer of its product's SQL."""

from typing import Any

import pytest

from processor.definitions.load import load
from processor.inspect.verification import comparable
from processor.product.document_type import document_schema
from processor.records import canonical_json

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


def comparable_document(**members: Any) -> Any:
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
def test_comparable_leaves_out_undeclared_members_of_whole_rows_and_digits_of_times_that_postgres_drops(
    document: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert comparable_document(**document) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"id":100,"doc":{"b":1.50,"a":-0.0}}', '{"doc":{"a":0,"b":1.5},"id":1e2}'),
        ('{"id":123456789012345678901234567890123456789}', '{"id":123456789012345678901234567890123456789.0}'),
    ],
)
def test_equal_values_become_equal_texts(one: str, other: str) -> None:
    texts = [canonical_json.dumps(comparable_document(**canonical_json.loads(text))) for text in (one, other)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("values", [(True, 1), (False, 0), ("1", 1), (None, 0), ([], {}), (10**40, 10**40 + 1)])
def test_different_values_become_different_texts(values: tuple[Any, Any]) -> None:
    texts = [canonical_json.dumps(comparable_document(doc=value)) for value in values]
    assert texts[0] != texts[1]


def test_a_value_that_is_not_an_object_stays_unchanged() -> None:
    assert comparable("text", {"type": "object", "properties": {}}) == "text"
