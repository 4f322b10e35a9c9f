"""The name that a person may have meant, among names that exist. Pure."""

from collections.abc import Collection
from difflib import SequenceMatcher

LEAST_LIKENESS = 0.6
"""From this likeness on, of 1, a name is near. difflib's own value for close matches."""


def nearest(name: str, names: Collection[str]) -> str | None:
    """The nearest name; None where none is near. Names whose last part, behind the last dot, is the same come first: a prefix of
    topics is often wrong as a whole."""
    likeness = {
        other: (_last(other) == _last(name), _likeness(name, other)) for other in sorted(names) if other != name
    }
    near = [other for other, (same_last, share) in likeness.items() if same_last or share >= LEAST_LIKENESS]
    return max(near, key=lambda other: likeness[other], default=None)


def _last(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.lower(), other.lower()).ratio()
