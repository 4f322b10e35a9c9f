"""Tables as text: the one place that aligns columns."""

import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

NARROWEST = 20
"""Characters that a wrapped column keeps at least."""


def table_lines(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """The lines of a table with aligned columns. A cell may have several lines. `right`: the columns aligned to the right."""
    widths = column_widths(rows)
    for row in rows:
        for texts in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            cells = (
                t.rjust(w) if n in right else t.ljust(w) for n, (t, w) in enumerate(zip(texts, widths, strict=True))
            )
            yield "  ".join(cells).rstrip()


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The characters of the longest line in each column."""
    return [max(len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]


def fitted(rows: Sequence[Sequence[str]], indent: int = 0) -> list[list[str]]:
    """The rows with their last column wrapped so that the table fits the terminal. `indent`: of the table. Without a terminal
    the rows stay as they are."""
    if not rows or not sys.stdout.isatty():
        return [list(row) for row in rows]
    return fitted_to(shutil.get_terminal_size().columns - indent, rows, column=len(rows[0]) - 1)


def fitted_to(width: int, rows: Sequence[Sequence[str]], column: int) -> list[list[str]]:
    """The rows with one column wrapped so that a line of the table has at most `width` characters."""
    others = sum(each + 2 for number, each in enumerate(column_widths(rows)) if number != column)
    room = max(NARROWEST, width - others)
    return [[_wrapped(cell, room) if number == column else cell for number, cell in enumerate(row)] for row in rows]


def wrapped_lines(text: str, width: int, indent: str = "", further: str = "  ") -> list[str]:
    """The text as lines of at most `width` characters. `indent`: of each line; `further`: what later lines are indented more."""
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + further, break_on_hyphens=False)


def _wrapped(cell: str, room: int) -> str:
    return "\n".join("\n".join(textwrap.wrap(line, room)) for line in cell.split("\n"))
