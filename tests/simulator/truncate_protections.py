"""The protections of truncates: the source empties a table, and the job deletes the rows that are older."""

from collections.abc import Iterator
from dataclasses import replace

from tests.simulator.protection import Protection, protection
from tests.simulator.without import truncates as s
from tests.simulator.worlds import scripted

TRUNCATES = {"shape": "pair", "truncate_chance": 0.3, "events": 14}
CALM = {**TRUNCATES, "max_faults": 0, "zombie_chance": 0}
PAGES = {**TRUNCATES, "fan_out_page": 1, "batch_records": 2}
AT_A_PAGE = {
    **PAGES,
    "max_faults": 2,
    "fault_chance": 0.3,
    "fault_target": "read TABLE#",
    "fault_weights": {"crash before": 1},
    "zombie_chance": 0,
    "checkpoint_loss_chance": 0,
}
"""A crash before a page of the walk."""
AFTER_MARKERS = {**AT_A_PAGE, "fault_target": "write Key(pk='OPEN#"}
"""A crash between the markers of a page and its open changes."""
AFTER_A_MARKER = {
    **AT_A_PAGE,
    "max_faults": 1,
    "fault_chance": 0.5,
    "fault_target": "write Key(pk='TABLE#star', sk='1'",
    "fault_weights": {"crash after": 1},
    "settle_first_chance": 0.7,
    "batch_records": 1,
}
"""A crash after the marker of star 1."""
WOKEN = {
    **PAGES,
    "max_faults": 3,
    "fault_chance": 0.4,
    "fault_target": "write Key(pk='TABLE#",
    "fault_weights": {"task lost": 1},
    "zombie_chance": 1,
    "zombie_turn_chance": 0.1,
    "task_retries": 3,
}
"""A task of the walk is given up, and wakes."""


def truncate_protections() -> Iterator[Protection]:
    """Truncates (rules 2, 3, 6)."""
    yield protection(
        "a truncate keeps the rows that came after it in its batch",
        "rows that the source has",
        s.newer_rows_deleted,
        {**CALM, "batch_records": 8},
    )
    yield protection(
        "a truncate deletes the rows that came before it in its batch",
        "rows that the source emptied",
        s.rows_of_its_batch_kept,
        {**CALM, "batch_records": 8},
    )
    yield protection(
        "a truncate is durable before its batch commits", "a crash before the walk", s.walk_not_recorded, AT_A_PAGE
    )
    yield protection(
        "a start goes on with the walk of a truncate",
        "a crash in the walk",
        s.walk_not_reloaded,
        AT_A_PAGE,
    )
    yield protection(
        "the marker of a truncate has its version",
        "a crash between the markers of a page and its documents",
        s.marker_without_version,
        AFTER_MARKERS,
    )
    yield protection(
        "the walk of a truncate touches its markers again",
        "a crash between the markers of a page and its documents",
        s.markers_not_touched_again,
        AFTER_MARKERS,
    )
    yield protection(
        "a write keeps the former keys of a marker that a walk left",
        "a new row over a marker with unpublished keys",
        s.writes_look_at_their_batch_only,
        scripted("a star comes back after a truncate", AFTER_A_MARKER),
    )
    yield protection(
        "a truncate writes a marker under the version seen",
        "a walk wakes after a newer change",
        s.marker_overwrites,
        WOKEN,
    )
    yield protection(
        "rows that a truncate deletes are open",
        "an index that is late",
        s.deleted_rows_not_open,
        {**CALM, "lag": "long"},
    )
    yield protection(
        "a second truncate begins the walk again",
        "rows on pages that the walk has passed",
        s.second_truncate_in_the_middle,
        {**PAGES, "max_faults": 0},
    )
    yield protection(
        "a second truncate keeps the first one in mind",
        "markers of the first one, left by a crash",
        s.first_truncate_forgotten,
        scripted("a table is emptied twice", AFTER_A_MARKER),
    )
    yield replace(
        protection(
            "a dead letter before a truncate brings no row back",
            "an old change that is replayed",
            s.older_letters_come_back,
            {**CALM, "unavailable_chance": 0},
        ),
        kind="replays",
    )
