"""A page of the dead letter topic, and the text that names its place in an address. Pure."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from processor.serve.problem import LookUpProblem
from processor.topics.letter_fates import LetterFate

MOST_TEXT: Final = 8_000
_PLACE: Final = re.compile(r"(\d{1,6})-(\d{1,19})", re.ASCII)


class LetterPage(NamedTuple):
    """The letters among some messages of the topic, in the order of their positions. `messages`: that the topic has at most;
    `earlier`: the place of the page of the messages before these, empty where there are none."""

    letters: list[LetterFate]
    messages: int
    earlier: str = ""


def place_text(offsets: Mapping[int, int]) -> str:
    """The place before these offsets, by partition."""
    return ".".join(f"{partition}-{offset}" for partition, offset in sorted(offsets.items()))


def read_place(text: str) -> dict[int, int]:
    """The offsets of a place; none of the empty text, which names the end of the topic. Raises LookUpProblem."""
    places = [_PLACE.fullmatch(part) for part in text.split(".")] if text else []
    if len(text) > MOST_TEXT or not all(places):
        raise LookUpProblem(400, f"`before` must be a place that a page gave, such as 0-2000.1-1990, not {text[:40]!r}")
    return {int(one[1]): int(one[2]) for one in places if one}
