"""Text for people that many rooms write: durations, lists cut short, the nearest name, tables, text of others. Pure.

Topics, dead letters, documents and the registry hold text of other people. A terminal obeys some characters in it: they move the
cursor, hide text, or turn the direction of writing. `visible_line` writes the code, as in `\\u001b`, in their place. JSON has the
same form of a character, so JSON keeps its value.
"""

import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest

MINUTE, HOUR, DAY, YEAR = 60, 3_600, 86_400, 31_557_600
UNITS = ((YEAR, "years"), (DAY, "days"), (HOUR, "h"), (MINUTE, "min"))


def duration_text(seconds: float) -> str:
    """A duration in its largest unit, with the next one below it where that is not 0: `0.3 s`, `42 s`, `2 min 5 s`, `3 h`,
    `1 day 4 h`, `11 years`. Years alone have no second unit. A negative duration is `0 s`."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole >= YEAR:
        return _counted(whole // YEAR, "years")
    sizes = [*(size for size, _ in UNITS), 1]
    names = [*(name for _, name in UNITS), "s"]
    first = next(i for i, size in enumerate(sizes) if whole >= size)
    rest = whole % sizes[first] // sizes[first + 1]
    text = _counted(whole // sizes[first], names[first])
    return f"{text} {_counted(rest, names[first + 1])}" if rest else text


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name.removesuffix('s') if count == 1 and name in ('days', 'years') else name}"


def first_of(words: Sequence[str], most: int) -> str:
    """The first words, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def shortened(text: str, most: int) -> str:
    """The text, or its beginning where it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


LEAST_LIKENESS = 0.6
"""From this likeness on, of 1, a name is near. difflib's own value for close matches."""


def nearest(name: str, known: Iterable[str], cutoff: float = LEAST_LIKENESS) -> str | None:
    """The known name that is nearest to `name`; None where none is near. `cutoff`: 1 for equal names only, 0 for any."""
    return next(iter(_close_matches(name, known, 1, cutoff)), None)


def nearest_of(name: str, known: Iterable[str], most: int) -> list[str]:
    """At most this many known names that are like `name` at all, the nearest first."""
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
