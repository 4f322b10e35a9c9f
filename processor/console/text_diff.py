"""The difference of two JSON values as lines, for a page. Pure."""

from difflib import unified_diff
from typing import Any

from processor.records import canonical_json
from processor.wording.first_of import shortened

MOST_LINES = 600
"""Lines of a value that a page shows and compares; a longer one is cut."""
LONGEST_LINE = 2_000
"""Characters of a line."""
AROUND = 4
"""Equal lines that a page shows around a change."""


def value_lines(value: Any) -> list[str]:
    """A JSON value as lines, cut after MOST_LINES; no lines for None."""
    if value is None:
        return []
    lines = [shortened(line, LONGEST_LINE) for line in canonical_json.dumps_indented(value).split("\n")]
    more = [f"… and {len(lines) - MOST_LINES:,} more lines"] if len(lines) > MOST_LINES else []
    return [*lines[:MOST_LINES], *more]


def diff_rows(before: Any, after: Any) -> list[dict[str, str]]:
    """The lines that differ, with those around them: each with `sign` `+`, `-`, a space, or `@` between two places."""
    lines = list(unified_diff(value_lines(before), value_lines(after), n=AROUND, lineterm=""))[2:]
    if lines and lines[0].startswith(("@@ -1,", "@@ -0,")):
        del lines[0]  # nothing is left out before the first line
    return [{"sign": line[:1], "text": "…" if line.startswith("@@") else line[1:]} for line in lines]
