"""Text of others on a terminal: what a terminal would obey, or would not show, appears as its code.

Topics, dead letters, documents and the registry hold text of other people. A terminal obeys some characters in it: they move the
cursor, hide text, or turn the direction of writing. The code, as in `\\u001b`, takes their place. JSON has the
same form of a character, so JSON keeps its value.
"""

import re
from collections.abc import Iterable

_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, marks and overrides of the direction, separators of lines and paragraphs, halves of surrogate pairs."""


def visible_line(text: str) -> str:
    """The text in one line, without characters that a terminal obeys."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible(text: str) -> str:
    """The same with the line ends of the text. Text of others must go through `visible_line` first if it may not begin a line."""
    return visible_lines(text.split("\n"))


def visible_lines(lines: Iterable[str]) -> str:
    """The lines as one text, each without characters that a terminal obeys."""
    return "\n".join(map(visible_line, lines))
