"""Tables as text: the one place that aligns columns."""

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest


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
