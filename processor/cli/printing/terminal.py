"""What a terminal shows: colours (not where NO_COLOR is set: no-color.org), a document, and how far long work is: on a terminal
by a bar for each phase, in one line; elsewhere by a line every 10 s, without a bar.

Promises: a phase ends with its last state, on a line of its own. A stream that is no terminal gets no control character.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import TextIO

from processor.text import visible, visible_line
from processor.values import canonical_json

_CODES = {"red": "31", "green": "32", "bold": "1"}


def warn(*lines: str) -> None:
    """Prints lines to standard error: what a person must know, but no program that reads the result."""
    for line in lines:
        print(visible_line(line), file=sys.stderr)


def coloured(text: str, colour: str) -> str:
    """The text in a colour (red, green, bold). Without a terminal, or with another name, the text itself."""
    if colour not in _CODES or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{_CODES[colour]}m{text}\033[0m"


LINE_SECONDS = 10.0
MOST_CELLS = 40
"""The longest bar, in characters."""


class ProgressBar:
    """Writes to a stream. `clock`: seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = monotonic) -> None:
        self._stream, self._clock, self._terminal = stream, clock, stream.isatty()
        self._phase, self._began, self._written, self._line = "", 0.0, 0.0, ""

    def show(self, phase: str, done: int, total: int | None, *, about: bool = False, note: str = "") -> None:
        """Shows how many items of a phase are done. `total`: None where unknown; `about`: an estimate; `note`: more text."""
        now = self._clock()
        if phase != self._phase:
            self.close()
            self._phase, self._began, self._written = phase, now, now
        known = total if total and done <= total else 0  # an estimate may be too low
        text = _figures(done, known, "about " if about else "", now - self._began) + note
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            cells = min(MOST_CELLS, width - len(f"{phase} [] {text}"))
            bar = f"[{'#' * (cells * done // known):-<{cells}}] " if known and cells > 0 else ""
            self._line = f"{phase} {bar}{text}"[:width]
            self._write(f"\r{self._line:<{width}}")
        else:
            self._line = f"{phase}: {text}"
            if now - self._written >= LINE_SECONDS:
                self.close()
                self._written = now

    def close(self) -> None:
        """Ends the line of a phase, so that other lines begin below it."""
        if self._line:
            self._write("\n" if self._terminal else f"{self._line}\n")
            self._line = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _figures(done: int, total: int, about: str, seconds: float) -> str:
    """Items, their share, how many a second, and the time that is left by this rate. `total`: 0 where it is unknown."""
    rate = done / seconds if seconds else 0.0
    parts = [f"{done:,} of {about}{total:,} items, {100 * done // total} %" if total else f"{done:,} items"]
    parts += [f"{rate:,.0f}/s"] if rate else []
    parts += [f"{timedelta(seconds=round((total - done) / rate))} left"] if rate and total else []
    return ", ".join(parts)


def document_text(value: bytes, options: argparse.Namespace) -> str:
    """The document of an encoded value, for this terminal or this file."""
    if options.pretty or sys.stdout.isatty():
        return visible(canonical_json.dumps_indented(canonical_json.loads(value)))
    return visible_line(value.decode())
