"""The differences between two documents, and their groups."""

from decimal import Decimal
from typing import Any

import pytest

from processor.inspect.diff import ChangeGroups, document_changes


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({"a": 1}, {"a": Decimal("1.0")}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": True}, [("another type", "a")]),
        ({"a": 1}, {"a": "1"}, [("another type", "a")]),
        ({"a": 1}, {"a": 2}, [("another value", "a")]),
        ({"a": 1}, {"a": 1, "b": None}, [("field added", "b")]),
        ({"a": 1, "b": None}, {"a": 1}, [("field removed", "b")]),
        ({"a": {"b": 1}}, {"a": {"b": None}}, [("null now", "a.b")]),
        ({"a": {"b": None}}, {"a": {"b": 1}}, [("null no more", "a.b")]),
        ({"a": [1]}, {"a": [1, 2]}, [("list longer", "a")]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}]}, [("list shorter", "a")]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{}, {}]}, [("field removed", "a[].b"), ("field removed", "a[].b")]),
        ({"a": [1]}, {"a": {"b": 1}}, [("another type", "a")]),
        (None, {"a": 1}, [("new document", "")]),
        ({"a": 1}, None, [("document gone", "")]),
        (None, None, []),
        (5, "5", [("another type", "")]),
    ],
)
def test_each_difference_has_its_kind_and_its_place(before: Any, after: Any, changes: list[tuple[str, str]]) -> None:
    assert [(one.kind, one.place) for one in document_changes(before, after)] == changes


def test_a_group_counts_a_document_once_and_keeps_its_first_example() -> None:
    groups = ChangeGroups()
    groups.add("k1", document_changes({"a": [{"b": 1}, {"b": 2}], "c": 1}, {"a": [{"b": 3}, {"b": 4}], "c": 1}))
    groups.add("k2", document_changes({"a": [], "c": 1}, {"a": [], "c": 1}))
    groups.add("k3", document_changes({"a": [{"b": 1}], "c": 1}, {"a": [{"b": 5}], "c": None}))
    assert groups.differ == 2
    first, second = groups.found()
    assert (first.kind, first.place, first.documents, first.key) == ("another value", "a[].b", 2, "k1")
    assert (first.before, first.after) == (1, 3)
    assert (second.kind, second.place, second.documents, second.key) == ("null now", "c", 1, "k3")
