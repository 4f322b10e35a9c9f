"""The protections of what the indexes show of a row: the version of its last change, and its end (rules 3, 5d and 6)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.simulator.protection import Protection, protection
from tests.simulator.without import indexed_columns
from tests.simulator.worlds import scripted


def version_protections() -> Iterator[Protection]:
    """The version of the last change of what the indexes show, where tasks read rows before they write them."""
    reads: dict[str, Any] = {"reads_first": True, "lag": "long"}
    yield protection(
        "an update that no index shows keeps their version",
        "a change that stays open, because no index will show it",
        indexed_columns.version_of_the_row,
        scripted("a star changes, then its note", **reads, settle_first_chance=0),
    )
    yield protection(
        "a change that the indexes show has a version of its own there",
        "an index that shows the row, but an older one",
        indexed_columns.version_stays,
        scripted("a star changes", **reads),
    )
    yield protection(
        "evidence is a version, not the same columns",
        "a row that comes back to what a late index still shows",
        indexed_columns.evidence_by_content,
        scripted("a user takes its name back", lag="long", settle_first_chance=0.9),
    )
    yield protection(
        "a refused write looks again at what the indexes show",
        "a row that another attempt wrote between the read and the write",
        indexed_columns.decided_before_a_refusal,
        scripted(
            "a user has another name for a moment",
            reads_first=True,
            batch_records=2,
            max_faults=3,
            fault_chance=0.5,
            fault_target="write Key(pk='TABLE#user'",
            fault_weights={"task lost": 1},
            checkpoint_loss_chance=1.0,
            zombie_chance=1.0,
            zombie_turn_chance=0.3,
        ),
    )
    unavailable = {"shape": "pair", "reads_first": True, "unavailable_chance": 0.5, "events": 14}
    dated = protection(
        "an update that leaves a value out dates it in the indexes",
        "a dead letter that is newer than the value",
        indexed_columns.values_without_dates,
        unavailable,
    )
    yield replace(dated, kind="replays")
    replayed = protection(
        "a replay has a version of its own in the indexes",
        "an index that shows the row, but an older one",
        indexed_columns.replay_keeps_version,
        {"shape": "pair", "lag": "long"},
    )
    yield replace(replayed, kind="replays")
    yield protection(
        "the marker of a truncate has its version in the indexes",
        "an index that still shows the row",
        indexed_columns.truncate_keeps_version,
        {"shape": "pair", "truncate_chance": 0.3, "events": 14, "max_faults": 0, "zombie_chance": 0, "lag": "long"},
    )


def delete_protections() -> Iterator[Protection]:
    """Deleted rows that leave the indexes."""
    deleted = "a star is deleted, then its user changes"
    yield protection(
        "a deleted row stays in the indexes while it is open",
        "a late index that shows the row for the first time after its delete",
        indexed_columns.left_while_open,
        scripted(deleted, lag="long"),
    )
    yield protection(
        "a deleted row is open until every index has dropped it",
        "a late index that still shows the row",
        indexed_columns.gone_at_once,
        scripted(deleted, lag="long"),
    )
