"""The plan and its diff as Markdown, for a comment of a pull request."""

import re
from collections.abc import Iterator, Sequence

from processor.cli.printing.diff_text import (
    SHOWN_GROUPS,
    example,
    group_text,
    headline,
    join_lines,
    messages_line,
    note_lines,
    size_lines,
)
from processor.text import visible_line
from processor.tools.inspect.diff import DiffReport, ProductDiff
from processor.tools.inspect.prices import Prices


def markdown_lines(plan: Sequence[str], report: DiffReport | None, prices: Prices) -> Iterator[str]:
    """The Markdown. `plan`: the lines of the plan, its summary first."""
    yield from ("## statestore plan", "", "```text", *plan, "```")
    for diff in report.products if report else ():
        yield from ("", f"### `{diff.product}`", "", _text(headline(diff)))
        if diff.groups and not diff.new:
            yield from _table(diff)
        yield ""
        yield from (f"- {_text(line)}" for line in (*size_lines(diff), messages_line(diff, prices), *join_lines(diff)))
    if report and not report.products:
        yield from ("", "No product changes, so no document differs.")
    for line in note_lines(report) if report else ():
        yield from ("", _text(line))


def _table(diff: ProductDiff) -> Iterator[str]:
    yield from ("", "| documents | what differs | example |", "|---:|---|---|")
    for group in diff.groups[:SHOWN_GROUPS]:
        yield f"| {group.documents:,} | {_text(group_text(group))} | {_text(example(group))} |"
    if more := len(diff.groups[SHOWN_GROUPS:]):
        yield f"| | and {more} more groups | |"


def _text(text: str) -> str:
    """Text of others in Markdown: no character of it has a meaning there."""
    return re.sub(r"([\\`*_{}\[\]<>()#|~!@&])", r"\\\1", visible_line(text))
