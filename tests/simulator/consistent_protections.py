"""The protections of a job over a store whose indexes are never late. There are no open changes there, but those of replays and
erasures, so other protections do their work alone."""

from collections.abc import Iterator
from dataclasses import replace

from tests.simulator.erased_rows import OVERRIDES as ERASURES
from tests.simulator.protection import Protection, protection
from tests.simulator.without import fan_out, open_changes, store, truncates, writes
from tests.simulator.worlds import AFTER_WRITE, CONSISTENT, CRASHES, ZOMBIES, scripted

CRASHED = {
    "max_faults": 1,
    "fault_chance": 0.5,
    "fault_target": "write Key(pk='LEDGER#user#0', sk='z'",
    "fault_weights": {"crash before": 1},
}
"""A crash of the driver before it reserves the message of the last user."""


def consistent_protections() -> Iterator[Protection]:
    """What a consistent store promises, and what the job needs there in place of open changes."""
    yield protection(
        "a store with late indexes does not call itself consistent",
        "an index that lacks a row",
        store.late_and_consistent,
        scripted("a star appears", lag="short"),
    )
    yield replace(
        protection(
            "the fence of a consistent store",
            "a zombie that writes an erased row",
            store.no_write_fence,
            {**ZOMBIES, **ERASURES, **CONSISTENT},
        ),
        kind="erasures",
    )
    yield replace(
        protection(
            "the fence keeps the marks of too large documents, in a consistent store",
            "a zombie that reserves over the mark",
            store.no_write_fence,
            {**ZOMBIES, "checkpoint_loss_chance": 1.0, **CONSISTENT},
        ),
        kind="large documents",
    )
    yield replace(
        protection(
            "the open change of an erasure is durable, in a consistent store",
            "a crash between the marker and its documents",
            open_changes.only_in_memory,
            {**CRASHES, **ERASURES, **CONSISTENT},
        ),
        kind="erasures",
    )
    yield protection(
        "a replayed change finds roots, in a consistent store",
        "a crash between write and publish",
        writes.replayed_finds_no_roots,
        {**CRASHES, **CONSISTENT},
    )
    yield protection(
        "a write keeps the previous keys, in a consistent store",
        "a crash that loses the answer with these keys",
        writes.no_previous_keys,
        scripted("a star moves", AFTER_WRITE, **CONSISTENT),
    )
    yield protection(
        "the way up hands over nothing, in a consistent store",
        "a row that another task wrote since",
        open_changes.consistent_stores_hand_over,
        {**CONSISTENT, "shape": "github", "many_moves": True, "batch_records": 8, "max_faults": 0},
    )
    yield protection(
        "fan-outs are durable, in a consistent store",
        "a crash that takes the driver's memory",
        fan_out.in_memory,
        scripted("a star of five users", CRASHED, fan_out_page=1, **CONSISTENT),
    )
    yield protection(
        "the walk of a truncate touches its markers again, in a consistent store",
        "a crash between the markers of a page and its documents",
        truncates.markers_not_touched_again,
        {
            **CONSISTENT,
            "shape": "pair",
            "truncate_chance": 0.3,
            "events": 14,
            "fan_out_page": 1,
            "fault_chance": 0.3,
            "fault_target": "write Key(pk='TABLE#",
            "fault_weights": {"crash after": 1},
        },
    )
