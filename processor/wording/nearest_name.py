"""The name that a person meant, where there is none of the written one. Pure."""

from collections.abc import Collection, Iterable

LEAST_LIKENESS = 0.6
"""From this likeness on, of 1, a name is near. difflib's own value for close matches."""


def nearest(name: str, known: Iterable[str], cutoff: float = LEAST_LIKENESS) -> str | None:
    """The known name that is nearest to `name`; None where none is near. `cutoff`: 1 for equal names only, 0 for any."""
    return next(iter(_close_matches(name, known, 1, cutoff)), None)


def nearest_of(name: str, known: Iterable[str], most: int) -> list[str]:
    """At most so many known names that are like `name` at all, the nearest first."""
    return _close_matches(name, known, most, LEAST_LIKENESS / 2)


def nearest_topic(name: str, names: Collection[str]) -> str | None:
    """The topic that is nearest to `name`; None where none is near. Topics whose last part, behind the last dot, is the same come
    first: a prefix of topics is often wrong as a whole."""
    likeness = {
        other: (_last(other) == _last(name), _likeness(name, other)) for other in sorted(names) if other != name
    }
    near = [other for other, (same_last, share) in likeness.items() if same_last or share >= LEAST_LIKENESS]
    return max(near, key=lambda other: likeness[other], default=None)


def _last(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _likeness(one: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one.lower(), other.lower()).ratio()


def _close_matches(name: str, known: Iterable[str], most: int, cutoff: float) -> list[str]:
    from difflib import get_close_matches  # of no use where all names are right

    return get_close_matches(name, list(known), most, cutoff)
