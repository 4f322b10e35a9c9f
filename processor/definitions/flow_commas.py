"""Finds values of flow style that a comma cuts: `{due: fee - coalesce(discount, 0)}` has the keys `due` and `0)`. Pure.

YAML reads the comma as the end of the value, although a bracket is open. The author meant one value, so the readers go on with it
whole, and its cure is quotes.
"""

from collections.abc import Iterable

_MOST_PARTS = 20


def whole_value(first: str, following: Iterable[str | None]) -> tuple[str, int] | None:
    """The value that begins with `first`, and how many of the following parts belong to it. `following`: the texts after it, None
    for a part that is no plain text. None where `first` opens no bracket, or no part closes it."""
    if _opened(first) <= 0:
        return None
    text = first
    for count, part in enumerate(following, start=1):
        if part is None or count > _MOST_PARTS:
            return None
        text += f", {part}"
        if _opened(text) <= 0:
            return text, count
    return None


def _opened(text: str) -> int:
    return text.count("(") - text.count(")")
