"""The result of a comparison with the source, as lines and as JSON."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from processor.text import visible_line
from processor.tools.source.comparison import ComparedEntity, RowDifference, SourceDifference
from processor.values import canonical_json

WORDS: Final[dict[RowDifference, str]] = {
    "missing": "missing here",
    "orphaned": "orphaned here (gone there)",
    "different": "different",
    "erased": "erased here, and still there",
}


def source_lines(found: ComparedEntity, shown: int) -> Iterator[str]:
    """The result of an entity. `shown`: the most keys of each kind."""
    counts = ", ".join(f"{len(found.of(kind)):,} {words}" for kind, words in WORDS.items() if found.of(kind))
    table = found.table
    yield visible_line(
        f"{table.name} ({table.table}): {found.rows:,} rows there, {found.stored:,} here: {counts or 'no difference'}"
    )
    for kind, words in WORDS.items():
        for one in islice(found.of(kind), shown):
            columns = f": {', '.join(one.columns)}" if one.columns else ""
            yield visible_line(f"  {words} {canonical_json.dumps(dict(one.key))}{columns}")
    if found.moving:
        yield visible_line(
            f"  {len(found.moving):,} rows changed at every look: compare again; the first {found.moving[0]}"
        )
    for name in table.gone:
        text = (
            f"  the table has no column {name}, so documents show null or an old value: correct `columns` of the entity"
        )
        yield visible_line(text)
    if table.left_out:
        reasons = ", ".join(f"{name} ({why})" for name, why in table.left_out.items())
        yield visible_line(f"  not compared: {reasons}")


def source_json(found: ComparedEntity, shown: int) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "table": str(found.table.table),
        "rows": found.rows,
        "stored": found.stored,
        "counts": {kind: len(found.of(kind)) for kind in WORDS},
        "sample": [_difference_json(one) for kind in WORDS for one in islice(found.of(kind), shown)],
        "moving": len(found.moving),
        "missing_columns": list(found.table.gone),
        "not_compared": dict(found.table.left_out),
    }


def _difference_json(one: SourceDifference) -> dict[str, Any]:
    return {"kind": one.kind, "key": dict(one.key), "columns": list(one.columns)}


def is_equal(found: Sequence[ComparedEntity]) -> bool:
    """Whether no entity has a difference, or a column that its table lacks: a row that an operator erased is none."""
    return all(not one.moving and not one.table.gone and len(one.differences) == len(one.of("erased")) for one in found)
