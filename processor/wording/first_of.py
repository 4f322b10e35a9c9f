"""The first of many words, for a message that stays short."""

from collections.abc import Sequence


def first_of(words: Sequence[str], most: int) -> str:
    """The first words, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def shortened(text: str, most: int) -> str:
    """The text, or its beginning where it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
