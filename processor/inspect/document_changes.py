"""The differences between two documents of one root, and the groups that many roots' differences form.

Promises: values that are equal as JSON are no difference. A list of another length is one difference, and its elements are not
compared, because nobody knows which element is which. Does not: keep documents; a group keeps one example.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from processor.records import canonical_json
from processor.records.record import Value

DifferenceKind = Literal[
    "new document",
    "document gone",
    "cannot be published",
    "field added",
    "field removed",
    "another type",
    "null now",
    "null no more",
    "list longer",
    "list shorter",
    "another value",
]


_TYPES = {bool: "bool", str: "text", list: "list", dict: "object"}


class DocumentChange(NamedTuple):
    """One difference. `place`: the way to the value, `stars[].city`; empty for the whole document. `before`, `after`: the values;
    None also where there is none."""

    kind: DifferenceKind
    place: str
    before: Value = None
    after: Value = None


@dataclass(slots=True, kw_only=True)
class ChangeGroup:
    """The documents with one kind of difference at one place. `documents`: how many; `key`: of the message of the first of them,
    whose values `before` and `after` are."""

    kind: DifferenceKind
    place: str
    documents: int = 0
    key: str
    before: Value
    after: Value


@dataclass(slots=True)
class ChangeGroups:
    """The groups of differences, by kind and place. `differ`: how many documents differ at all."""

    differ: int = 0
    _groups: dict[tuple[DifferenceKind, str], ChangeGroup] = field(default_factory=dict)

    def add(self, key: str, changes: Iterator[DocumentChange]) -> None:
        """Counts a document with its differences: once in each group, however many places of a list differ."""
        first: dict[tuple[DifferenceKind, str], DocumentChange] = {}
        for change in changes:
            first.setdefault((change.kind, change.place), change)
        self.differ += bool(first)
        for where, change in first.items():
            group = self._groups.get(where)
            if group is None:
                group = ChangeGroup(**change._asdict(), key=key)
                self._groups[where] = group
            group.documents += 1

    def found(self) -> tuple[ChangeGroup, ...]:
        """The groups, the largest first."""
        return tuple(sorted(self._groups.values(), key=lambda group: -group.documents))


def document_changes(before: Value, after: Value) -> Iterator[DocumentChange]:
    """The differences between two documents, as values of JSON; None where there is no document."""
    if before is None or after is None:
        if before is not after:
            yield DocumentChange("new document" if before is None else "document gone", "", before, after)
        return
    yield from _changes("", before, after)


def _changes(place: str, one: Value, other: Value) -> Iterator[DocumentChange]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in {**one, **other}:
            at = f"{place}.{name}" if place else name
            if name not in one:
                yield DocumentChange("field added", at, None, other[name])
            elif name not in other:
                yield DocumentChange("field removed", at, one[name], None)
            else:
                yield from _changes(at, one[name], other[name])
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for pair in zip(one, other, strict=True):
            yield from _changes(f"{place}[]", *pair)
    elif not canonical_json.equal(one, other):
        yield DocumentChange(_kind(one, other), place, one, other)


def _kind(one: Value, other: Value) -> DifferenceKind:
    if other is None:
        return "null now"
    if one is None:
        return "null no more"
    if _type(one) != _type(other):
        return "another type"
    if isinstance(one, list) and isinstance(other, list):
        return "list longer" if len(other) > len(one) else "list shorter"
    return "another value"


def _type(value: Value) -> str:
    """The type of a value in JSON. A decimal and an int are numbers."""
    return _TYPES.get(type(value), "number")
