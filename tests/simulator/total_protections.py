"""The protections of totals (docs/correctness.md, "Totals")."""

from collections.abc import Iterator
from dataclasses import replace

from tests.simulator.mixed import OVERRIDES as MIXED
from tests.simulator.protection import Protection, protection
from tests.simulator.without import totals
from tests.simulator.worlds import AFTER_WRITE, scripted, wide


def total_protections() -> Iterator[Protection]:
    """Totals, and the walks that count rows."""
    counted = {"shape": "counted"}
    yield protection(
        "totals change in the transaction of their row",
        "a crash between both",
        totals.apart,
        scripted("a star moves", {**AFTER_WRITE, **counted}),
    )
    yield protection(
        "a refused write adds nothing to totals",
        "a change that is replayed",
        totals.refused_adds,
        scripted("a star moves", {**AFTER_WRITE, **counted}, weak_seconds=60),
    )
    yield protection(
        "a write takes back what its row has added to totals",
        "a row that changes",
        totals.new_only,
        scripted("a star changes", counted),
    )
    yield protection(
        "a row knows the key of the totals that have it",
        "a row that moves",
        totals.under_new_key,
        scripted("a star moves", counted),
    )
    yield replace(
        protection(
            "a fill counts the rows from before",
            "a product that counts stored rows",
            totals.fill_leaves_rows,
            {**wide(0), **MIXED, "shape": "drawn counted 18"},
        ),
        kind="counted edits",
    )
