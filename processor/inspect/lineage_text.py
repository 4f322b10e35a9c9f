"""The lineage of a document as text: a line for each row and join, indented as the product's tree."""

from collections.abc import Iterator, Mapping

from processor.inspect.lineage import AnsweredJoin, Lineage, SourceRow
from processor.inspect.stored_row import Origin
from processor.wording.first_of import first_of

REQUESTS, LEFT_OUT, LOST = 3, 20, 5
"""How many requests of a join, rows that it leaves out, and rows with lost values the text shows. JSON has all of them."""


def lineage_lines(found: Lineage, came: Mapping[Origin, str]) -> Iterator[str]:
    """The lines of a lineage, without the reason for a missing document. `came`: when records came, as far as somebody asked."""
    if found.root is not None:
        yield from _row_lines(found.root, came, "", f"; by {found.request}")


def lost_lines(found: Lineage) -> Iterator[str]:
    """The columns that the document shows as null because their entity did not store them."""
    lost = [f"{row.entity} {row.key}: {one}" for row in found.rows() for one in row.empty if one.lost]
    yield from lost[:LOST]
    if len(lost) > LOST:
        yield f"and {len(lost) - LOST} more lost values"


def _row_lines(row: SourceRow, came: Mapping[Origin, str], margin: str, request: str = "") -> Iterator[str]:
    time = f"; came {came[row.origin]}" if row.origin in came else ""
    yield f"{margin}{row.entity} {row.key}; {row.origin}{time}{request}"
    if row.left_out:
        yield f"{margin}  left out: {row.left_out}"
    if row.empty:
        yield f"{margin}  without a value: {', '.join(map(str, row.empty))}"
    for join in row.joins:
        yield from _join_lines(join, came, margin + "  ")


def _join_lines(join: AnsweredJoin, came: Mapping[Origin, str], margin: str) -> Iterator[str]:
    asked = f"by {first_of(join.requests, REQUESTS)}" if join.requests else "looks for nothing"
    note = f"; {join.note}" if join.note else ""
    yield f"{margin}{join.name}: {join.kind} {join.entity}, {asked}: {_count_text(join)}{note}"
    others = [row for row in join.rows if row.left_out]
    for row in [one for one in join.rows if not one.left_out] + others[:LEFT_OUT]:
        yield from _row_lines(row, came, margin + "  ")
    if len(others) > LEFT_OUT:
        yield f"{margin}  and {len(others) - LEFT_OUT} more rows that are left out"


def _count_text(join: AnsweredJoin) -> str:
    out = sum(bool(row.left_out) for row in join.rows)
    count = len(join.rows)
    rows = "no row" if not count else "1 row" if count == 1 else f"{count} rows"
    return f"{rows}, {out} left out" if out else rows
