"""The protections of what operators do while the job runs: replays of dead letters, erasures, and moves to other topics."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.simulator.erased_rows import OVERRIDES as ERASURES
from tests.simulator.mixed import OVERRIDES as MIXED
from tests.simulator.moved_topics import MOVES
from tests.simulator.protection import Protection, protection
from tests.simulator.without import edges, live_replays
from tests.simulator.without import operators as s
from tests.simulator.worlds import AFTER_WRITE, ZOMBIES, chosen_replays, scripted

HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 4}
ONE_TASK = {"small_round": 100}
"""A round of little work is one task, as in production."""
ONE_WRITE = {
    "max_faults": 1,
    "fault_chance": 0.4,
    "fault_target": "write Key(pk='TABLE#",
    "zombie_turn_chance": 0.05,
    "slice_records": 1,
    "settle_first_chance": 0,
    "task_retries": 0,
}
"""The one fault is at the write of a row, and its task sleeps long."""
UNPUBLISHED = "a row that a replay wrote counts as unpublished"
UNAVAILABLE = {**HARD, "unavailable_chance": 0.3}


def operator_protections() -> Iterator[Protection]:
    """Each with the kind of its runs."""
    for kind, conditions, group in (
        ("replays", {}, _replays),
        ("live replays", {}, _live_replays),
        ("erasures", ERASURES, _erasures),
        ("mixed", MIXED, _erasures_of_cut_topics),
        ("moves", MOVES, _moves),
    ):
        for one in group():
            given: dict[str, Any] = {**conditions, **one.overrides}
            yield replace(one, overrides=given, kind=one.kind if one.kind != "changes" else kind)


def _replays() -> Iterator[Protection]:
    yield protection(
        "an older dead letter fills columns",
        "a column that stays unavailable",
        s.no_fills,
        {**UNAVAILABLE, "max_faults": 2},
    )
    yield protection(
        "a replay opens the former keys", "a row that moves by a replay", s.replay_without_former_keys, UNAVAILABLE
    )
    yield protection(
        "a replay puts every edge, not only the new ones",
        "a task that removes an edge of an older version late",
        edges.only_new_edges,
        scripted("a star comes back", {**ZOMBIES, "shape": "strong"}, settle_first_chance=0.2),
        UNPUBLISHED,
    )
    yield replace(
        protection(
            UNPUBLISHED,
            "a replay that writes its row after a later run closed its change",
            s.over_replays,
            chosen_replays(33),
        ),
        kind="chosen replays",
    )


def _live_replays() -> Iterator[Protection]:
    yield protection(
        "an outcome waits until the change is settled",
        "a letter that counts as applied too early",
        live_replays.unsettled,
    )
    yield protection(
        "an outcome waits for the fan-outs that settling began",
        "a letter that counts as applied too early",
        live_replays.unpublished,
        {"fan_out_page": 1, "reads_first": True},
    )
    yield protection(
        "the change of a replay is durable before the write",
        "a crash between write and publish",
        live_replays.entry_after_write,
        scripted("a star moves twice", {**AFTER_WRITE, **ONE_TASK}, max_faults=1, letters_away_chance=0.3),
        UNPUBLISHED,
    )


def _erasures() -> Iterator[Protection]:
    yield protection("a record from before an erasure does not count", "an erased row that comes back", s.no_list)
    yield protection(
        "the open change of an erasure keeps the former keys",
        "documents of earlier parents that show the row",
        s.erasure_without_former_keys,
    )
    yield protection(
        "the marker of an erasure keeps no former keys",
        "keys that outlive the row",
        s.marker_with_pending_keys,
        HARD,
    )
    yield protection(
        "an erasure keeps the sequences of tombstones",
        "a sequence that goes back",
        s.tombstones_not_kept,
        {"shape": "pair"},
    )
    yield replace(
        protection("an erasure empties the notes of replays", "keys that outlive the row", s.notes_not_erased),
        kind="erased letters",
    )


def _erasures_of_cut_topics() -> Iterator[Protection]:
    """Erasures of rows whose topic loses its last records later."""
    cut = {"shape": "pair", "changes": ((4, "cut"), (8, "cut")), "lag": "none", "max_faults": 0}
    yield protection(
        "an erasure learns where the broker has lost records",
        "a person who comes back, and counts as erased",
        s.noted_ends_only,
        cut,
    )


def _moves() -> Iterator[Protection]:
    yield protection(
        "an erasure covers offsets of the incarnations that it knows",
        "an erased row that comes back from the former topic",
        s.epochs_only,
    )
    yield protection("the job reads the former topic to its end", "records that nobody reads", s.not_to_the_end)
    yield protection(
        "the job waits for the first record of the next topic", "records of the former topic that follow", s.at_once
    )
    yield protection("the epochs rise with a move", "an offset that is smaller in the next topic", s.same_epoch)
    yield protection(
        "a topic that comes back goes on where the entity left it",
        "old records, read again",
        s.from_the_first,
        ONE_TASK,
    )
    yield protection(
        "a move that an operator ends leaves the former topic at its end",
        "old records, read again when the entity comes back",
        s.former_topic_not_left,
        {"shape": "pair", "events": 20},
    )
    yield protection(
        "an erasure looks at the row at its end",
        "a zombie that writes the row",
        s.not_looked_at_again,
        {**HARD, **ONE_TASK, **ONE_WRITE, "reads_first": True, "events": 8, "batch_records": 2, "tick_chance": 0.2},
    )
