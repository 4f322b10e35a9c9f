"""Protections, each with a switch that takes it away: for every one there is a history that ends wrong without it.

    python -m tests.simulator.ablations find [NAME ...] [--seeds 20000]   looks for such histories, shrinks and records them
    python -m tests.simulator.ablations table                             puts the table into docs/correctness.md

The switches replace functions of the product for the time of one run, in tests only. What was found stands in
`ablations.json`: the seed, the world's boosts, the events kept, and how many seeds it took.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from tests.simulator import switches
from tests.simulator.run import simulate
from tests.simulator.shrink import shrink

RECORDED = Path(__file__).with_name("ablations.json")
PAGE = Path(__file__).parents[2] / "docs" / "correctness.md"
BEGIN, END = "<!-- ablations -->\n", "<!-- end of ablations -->"

HOT = {"hot": True, "events": 14, "faults": 5, "fault": 0.05}
CRASHES = {**HOT, "kinds": {"crash before": 1, "crash after": 1}, "batch": 4}
RESPLIT = {**CRASHES, "lost_checkpoint": 1.0, "pieces": 2}
LATE = {"lag": "long", "events": 14, "tick": 0.5}
BROKER = {"faults": 3, "fault": 0.05, "kinds": {"acknowledgement lost": 1, "not delivered": 1, "delivered late": 1}}
ZOMBIES = {**HOT, "zombie": 1.0, "acts": 0.6, "kinds": {"task lost": 3, "crash before": 1, "crash after": 1}}
RETRIED = {**ZOMBIES, "retries": 3, "kinds": {"task lost": 1}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """A protection. `without`: takes it away. `against`: what it protects from. `boost`: the worlds in which it shows."""

    name: str
    against: str
    without: Callable[[], AbstractContextManager[None]]
    boost: Mapping[str, Any] = field(default_factory=dict)


def _table() -> Iterator[Ablation]:
    s = switches

    def one(name: str, against: str, without: Any, boost: Mapping[str, Any] | None = None) -> Ablation:
        return Ablation(name=name, against=against, without=without, boost=boost or {})

    # open changes (rule 5)
    yield one("the overlay", "an index that lacks a row, or shows it too old", s.no_overlay)
    yield one("the overlay of earlier batches", "lag longer than a batch", s.own_batch_only)
    yield one("the overlay in other tasks of the round", "a row that another task wrote just now", s.own_task_only)
    yield one("the overlay on the way down", "documents that go back", s.no_overlay_down)
    yield one("the overlay on the way up", "roots that are found late", s.no_overlay_up, {"lag": "short", "faults": 0})
    yield one("former keys in the overlay", "a late index that shows a row under its old key", s.former_forgotten)
    yield one(
        "refused writes open a change too",
        "the write of a crashed attempt, still hidden",
        s.refused_not_opened,
        {**CRASHES, "lag": "long"},
    )
    yield one(
        "a newer change takes over the older one's keys",
        "a row that moves again while it is open",
        s.newest_entry_only,
        LATE,
    )
    yield one("reload at a start", "a crash that takes the driver's memory", s.no_reload, {**LATE, "faults": 3})
    yield one(
        "reloaded entries take the row as it stands",
        "an entry that is older than its row",
        s.reload_as_written,
        {**LATE, **CRASHES},
    )
    yield one(
        "the wait after a start",
        "documents that go back after a crash",
        s.no_wait,
        {"lag": "short", "faults": 3, "fault": 0.05, "zombie": 0},
    )
    yield one("evidence", "lag longer than S + W", s.no_evidence, LATE)
    yield one(
        "evidence in every slot", "an index of the way up that is later than the one down", s.evidence_in_one_slot, LATE
    )
    yield one(
        "evidence of the version", "an index that shows the row, but an older one", s.evidence_of_any_version, LATE
    )
    yield one(
        "closing W after the evidence", "replicas that differ", s.closed_at_once, {**LATE, "replicas": 2, "lag": "mid"}
    )
    yield one("`!own key` as evidence of nothing there", "a row that left an index late", s.no_own_key, LATE)
    yield one("settling", "a root that a late index hid", s.no_settling, LATE)
    yield one(
        "settling repeats the change, not its roots",
        "a root that a late index hid",
        s.roots_settled,
        {**LATE, "faults": 0, "interleaved": 0},
    )
    yield one(
        "settling knows former keys",
        "the root below an old key, hidden by a late index",
        s.settled_without_former,
        LATE,
    )
    yield one("columns are checked again, down", "a late index that shows a row under its old key", s.no_recheck_down)
    yield one(
        "columns are checked again, up",
        "a late index that shows a parent under its old key",
        s.no_recheck_up,
        {"lag": "short"},
    )
    # what a crash swallowed (rules 3, 4)
    yield one("the old parent", "a row that moves", s.old_parent_forgotten, {"lag": "none", "faults": 0})
    yield one(
        "previous keys in the write", "a crash that takes the answer which named them", s.no_previous_keys, CRASHES
    )
    yield one("pending keys kept by the second write", "another batch split after a crash", s.pending_dropped, RESPLIT)
    yield one(
        "the condition on the batch's start", "another batch split after a crash", s.own_version_as_start, RESPLIT
    )
    yield one("a replay touches", "a crash between write and publish", s.replay_touches_nothing, CRASHES)
    yield one("what is superseded touches", "another batch split after a crash", s.superseded_touches_nothing, RESPLIT)
    yield one("after a refusal all columns count", "a crash between write and publish", s.filter_after_merge, RESPLIT)
    yield one(
        "dedupe keeps the last", "several changes of a row in a batch", s.dedupe_first, {"lag": "none", "faults": 0}
    )
    yield one("unavailable values are filled", "TOAST", s.toast_not_filled, {"unsent": 0.5, "batch": 8})
    # deletes (rule 6)
    yield one("a delete marker keeps previous keys", "a crash after a delete", s.marker_without_previous, CRASHES)
    yield one(
        "a delete touches like a change",
        "a deleted row that stays in documents",
        s.delete_touches_nothing,
        {"lag": "none", "faults": 0},
    )
    yield one(
        "re-creation removes the TTL",
        "a living row that expires",
        s.ttl_kept,
        {"two_parts": True, "events": 20, "faults": 0},
    )
    # the publisher (rule 7)
    yield one(
        "suppression against acknowledged entries only", "a message that never arrived", s.suppress_anything, BROKER
    )
    yield one("the attempt in the mark", "a retried task's commit taken for the lost one's", s.any_attempt, RETRIED)
    yield one("the condition on the sequence", "two publishers of a root", s.reserve_anyway, ZOMBIES)
    yield one("the fence", "a zombie that publishes", s.no_fence, {**ZOMBIES, "publish_slots": 1})
    yield one("the lease check in the task", "a zombie that takes the slot back", s.no_lease_check, ZOMBIES)
    yield one(
        "acknowledgement before the round ends", "a batch that ends with messages under way", s.flush_unheard, BROKER
    )
    # the batch
    yield one("only what matters fans out", "work for nothing (no wrong document)", s.no_filter)
    yield one("dead letters", "records that vanish", s.no_dead_letters, {"broken": 0.3})


TABLE = {ablation.name: ablation for ablation in _table()}


def find(name: str, seeds: int) -> dict[str, Any] | None:
    """The first seed that is wrong without the protection, shrunk to what is right with it."""
    ablation = TABLE[name]
    for seed in range(seeds):
        if simulate(seed, boost=ablation.boost, without=ablation.without).verdict is not None:
            boost, keep = shrink(seed, ablation.boost, ablation.without, sound=True)
            verdict = simulate(seed, boost=boost, keep=keep, without=ablation.without).verdict
            return {"seed": seed, "boost": boost, "keep": keep, "verdict": verdict}
    return None


def _find(task: tuple[str, int]) -> tuple[str, dict[str, Any] | None]:
    return task[0], find(*task)


def recorded() -> dict[str, dict[str, Any]]:
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def table() -> str:
    """The ablations as docs/correctness.md shows them."""
    lines = ["| protection | against | seeds until red | smallest history |", "|---|---|---|---|"]
    known = recorded()
    for ablation in TABLE.values():
        found = known.get(ablation.name)
        cells = ["not noticed yet", ""]
        if found is not None:
            n = found["seed"] + 1
            cells = [f"{n:,}" + (" (boosted)" if ablation.boost else ""), f"{len(found['keep'])} events"]
        lines.append(f"| {ablation.name} | {ablation.against} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def in_page(page: str) -> str:
    head, rest = page.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END, 1)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("find", "table"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=20_000)
    options = parser.parse_args()
    if options.verb == "table":
        PAGE.write_text(in_page(PAGE.read_text()))
        return 0
    known = recorded()
    with Pool(2) as pool:
        for name, found in pool.imap_unordered(_find, [(n, options.seeds) for n in options.names or TABLE]):
            said = (
                f"red at {found['seed']}, {len(found['keep'])} events: {found['verdict']}" if found else "NOT NOTICED"
            )
            print(f"{name:48} {said[:150]}", flush=True)
            if found:
                known[name] = found
            else:
                known.pop(name, None)
            RECORDED.write_text(json.dumps({n: known[n] for n in TABLE if n in known}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
