"""Colours of the standard output: on a terminal only, and not where NO_COLOR is set (no-color.org)."""

import os
import sys

_CODES = {"red": "31", "green": "32", "bold": "1"}


def coloured(text: str, colour: str) -> str:
    """The text in a colour (red, green, bold). Without a terminal, or with another name, the text itself."""
    if colour not in _CODES or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{_CODES[colour]}m{text}\033[0m"
