"""The name that a person meant, where there is none of the written one."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is nearest to `name`; None where none is near. `cutoff`: 1 for equal names only, 0 for any."""
    return next(iter(get_close_matches(name, list(known), 1, cutoff)), None)
