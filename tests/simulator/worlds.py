"""Conditions that make one situation frequent, for `overrides` of a run (`tests.simulator.conditions`)."""

from collections.abc import Mapping
from random import Random
from typing import Any

QUIET = {
    "shape": "pair",
    "partitions": 1,
    "lag": "none",
    "replicas": 1,
    "tick_chance": 0.1,
    "batch_records": 1,
    "slice_records": 100,
    "reads_first": False,
    "packs": False,
    "lanes": 1,
    "max_faults": 0,
    "zombie_chance": 0,
    "task_retries": 0,
    "checkpoint_loss_chance": 0,
    "interleaving_chance": 0,
    "settle_first_chance": 0.95,
    "source_order": True,
    "max_clock_skew": 0,
    "fan_out_page": 1_000,
    "index_page": 0,
    "unprocessed_chance": 0,
}
"""For a history written by hand: only the situations happen that a test adds."""

AFTER_WRITE = {
    "max_faults": 2,
    "fault_chance": 0.6,
    "fault_target": "write Key(pk='TABLE#star'",
    "fault_weights": {"crash after": 1},
}
RESPLIT = {**AFTER_WRITE, "checkpoint_loss_chance": 1.0, "batch_records": 2}
MANY_MOVES = {"many_moves": True, "events": 14, "max_faults": 5, "fault_chance": 0.05}
CRASHES = {**MANY_MOVES, "fault_weights": {"crash before": 1, "crash after": 1}, "batch_records": 4}
BROKER = {
    "max_faults": 3,
    "fault_chance": 0.05,
    "fault_weights": {"acknowledgement lost": 1, "not delivered": 1, "delivered late": 1},
}
ZOMBIES = {
    **MANY_MOVES,
    "zombie_chance": 1.0,
    "zombie_turn_chance": 0.6,
    "fault_weights": {"task lost": 3, "crash before": 1, "crash after": 1},
}
RETRIED = {**ZOMBIES, "task_retries": 3, "fault_weights": {"task lost": 1}}
CRASHED_REPLAYS = {**CRASHES, "max_faults": 8, "shape": "pair"}
CALM = {"lag": "none", "max_faults": 0}
CONSISTENT = {"consistent": True, "lag": "none"}


AIMS = (
    *("write Key(pk='LEDGER", "write Key(pk='OPEN", "commit") * 4,
    *("write Key(pk='TABLE", "write Key(pk='EDGE", "write Key(pk='RUNS", "checkpoint", "delete"),
)
"""How the names of durable requests begin: crashes before them lose most."""


def wide(seed: int) -> dict[str, Any]:
    """The conditions of a seed under which rare histories are frequent: few rows, lags of single rows, and crashes between two
    durable requests."""
    rng = Random(f"{seed} wide")
    drawn: dict[str, Any] = {
        "shape": rng.choice(("tiny", "tiny", "tiny", "tiny", "pair", "pair", "stars", "github", "lists", "strong")),
        "many_moves": rng.random() < 0.7,
        "late_events": False,
        "lag": rng.choice(("rows", "rows", "rows", "rows", "none", "short", "long")),
        "late_share": rng.choice((0.1, 0.3, 0.7)),
        "same_key_chance": rng.choice((0, 0.5, 0.8)),
        "events": rng.randint(4, rng.choice((8, 20, 40))),
        "batch_records": rng.choice((1, 3, 8, 20)),
        "max_faults": rng.choice((0, 0, 1, 3)),
        "aims": tuple((rng.choice(AIMS), rng.randint(1, 12)) for _ in range(rng.choice((0, 3, 6, 12)))),
        "checkpoint_loss_chance": rng.choice((0, 0, 0.5)),
        "reads_first": rng.choice((None, None, False, True)),
    }
    return drawn | (CONSISTENT if rng.random() < 0.35 else {})


def short_lived(seed: int) -> dict[str, Any]:
    """The conditions of a seed with few rows, which the source often deletes at once, over topics that get partitions. Each write
    of a row reaches an index after a time of its own, and the source pauses between the writes."""
    rng = Random(seed)
    events = rng.choice((8, 12, 16))
    drawn: dict[str, Any] = {
        "shape": "few",
        "events": events,
        "many_moves": True,
        "lag": "rows",
        "late": (2, 3, 5, 8, 12),
        "late_share": 0.9,
        "lag_change_chance": 1.0,
        "delete_chance": 0.5,
        "same_key_chance": 0.6,
        "pauses": (0, 5, 10, 20, 30),
        "changes": tuple(sorted((rng.randint(3, events - 1), "grow") for _ in range(3))),
        "batch_records": 20,
        "source_order": False,
        "settle_first_chance": rng.choice((0, 0.5, 0.95)),
        "tick_chance": rng.choice((0, 0.05)),
        "small_round": 100,
        "weak_seconds": 0,
        "broken_chance": 0,
        "unavailable_chance": 0,
    }
    return QUIET | drawn


def chosen(seed: int) -> dict[str, Any]:
    """The conditions of a seed whose turns choose their moments. Each write of a star reaches an index after its own time."""
    rng = Random(f"{seed} chosen")
    drawn: dict[str, Any] = {
        "shape": "few",
        "events": 0,
        "turns": 25,
        "lag": "rows",
        "late": (3, 5, 8, 12, 20),
        "late_share": rng.choice((0.5, 0.7)),
        "late_target": "TABLE#star",
        "lag_change_chance": 1.0,
        "replicas": rng.choice((1, 1, 2)),
        "batch_records": 100,
        "source_order": False,
        "tick_chance": 0,
        "small_round": 100,
        "weak_seconds": 0,
        "late_events": False,
    }
    return QUIET | drawn


def chosen_replays(seed: int) -> dict[str, Any]:
    """The same, where most replays die before they write a row, and go on later."""
    drawn: dict[str, Any] = {
        "fault_chance": 0.7,
        "fault_target": "write Key(pk='TABLE#star'",
        "fault_weights": {"crash before": 1},
        "zombie_chance": 1.0,
        "zombie_turn_chance": 0,
    }
    return chosen(seed) | drawn


def scripted(script: str, conditions: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A history written by hand under quiet conditions, except those that the caller sets."""
    return {**QUIET, "script": script, **(conditions or {}), **more}
