"""For every protection a recorded history ends wrong without it. `make test` runs these histories.

    python -m tests.simulator.ablations find [NAME ...] [--seeds 20000]   searches for such histories, shrinks and records them
    python -m tests.simulator.ablations table                             writes the table of `protections.md`

`ablations.json` records for each protection the seed, the conditions that override the seed's, the events that the run keeps, and
the problem at the end.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.simulator.chosen_moments import ChosenReplays
from tests.simulator.clocked_products import ClockedSimulation
from tests.simulator.erased_rows import ErasedLettersSimulation, ErasingSimulation
from tests.simulator.failing_products import FailingProductSimulation, UnreadyProductSimulation
from tests.simulator.gated_products import GatedSimulation
from tests.simulator.large_documents import LargeDocumentSimulation
from tests.simulator.live_replays import LiveReplaySimulation
from tests.simulator.lost_writes import LostWritesSimulation
from tests.simulator.mixed import MixedEditSimulation, MixedSimulation
from tests.simulator.moved_topics import MovingSimulation
from tests.simulator.protection import Protection
from tests.simulator.protections import PROTECTIONS
from tests.simulator.registry_edits import EditSimulation
from tests.simulator.repeated_transactions import RepeatedSimulation
from tests.simulator.replayed_dead_letters import ReplaySimulation
from tests.simulator.routed_messages import RoutedSimulation
from tests.simulator.run import Simulation
from tests.simulator.scripted_edits import ScriptedEditSimulation
from tests.simulator.settled_forms import SettledFormSimulation
from tests.simulator.several_rows import SeveralRowsSimulation
from tests.simulator.shared_topic import SharedTopicSimulation
from tests.simulator.shrink import shrink
from tests.simulator.simulate import simulate
from tests.simulator.source_repairs import SourceRepairSimulation
from tests.simulator.source_topics import SourceSimulation
from tests.simulator.source_transactions import TransactionSimulation
from tests.simulator.stray_changes import StraySimulation
from tests.simulator.without.switch import Switch, combine

KINDS: Mapping[str, type[Simulation]] = {
    "changes": Simulation,
    "clock": ClockedSimulation,
    "replays": ReplaySimulation,
    "chosen replays": ChosenReplays,
    "erasures": ErasingSimulation,
    "edits": EditSimulation,
    "scripted edits": ScriptedEditSimulation,
    "large documents": LargeDocumentSimulation,
    "live replays": LiveReplaySimulation,
    "source repairs": SourceRepairSimulation,
    "settled forms": SettledFormSimulation,
    "lost writes": LostWritesSimulation,
    "erased letters": ErasedLettersSimulation,
    "moves": MovingSimulation,
    "strays": StraySimulation,
    "several rows": SeveralRowsSimulation,
    "shared topic": SharedTopicSimulation,
    "routed messages": RoutedSimulation,
    "failing products": FailingProductSimulation,
    "unready products": UnreadyProductSimulation,
    "gates": GatedSimulation,
    "source transactions": TransactionSimulation,
    "repeated transactions": RepeatedSimulation,
    "topics": SourceSimulation,
    "mixed": MixedSimulation,
    "mixed edits": MixedEditSimulation,
    "drawn edits": MixedEditSimulation,
    "counted edits": MixedEditSimulation,
}
RECORDED = Path(__file__).with_name("ablations.json")
PAGE = Path(__file__).with_name("protections.md")
BEGIN, END = "<!-- ablations -->\n", "<!-- end of ablations -->"


def problem_without(
    protection: Protection, seed: int, overrides: Mapping[str, Any], keep: Sequence[int] | None = None
) -> str | None:
    """The problem of a run without a protection. None if that run ends right, or if the run with the protection ends wrong."""
    # several tasks in each round, which more protections need, and writes without a read before, which crashes make
    # refused, and weak reads that are never old
    overrides = {"small_round": 0, "reads_first": False, "packs": False, "weak_seconds": 0, **overrides}
    others = (PROTECTIONS[protection.also_without].switch,) if protection.also_without else ()

    def run(*off: Switch) -> Simulation:
        kind = KINDS[protection.kind]
        return simulate(seed, overrides=overrides, keep=keep, switch=combine(*off), simulation_class=kind)

    without = run(*others, protection.switch)
    if without.problem is None and not protection.saves_requests:
        return None
    complete = [run(*off) for off in {(), others}]
    if any(other.problem for other in complete):
        return None
    if protection.saves_requests:
        more, fewer = without.world.requests, complete[0].world.requests
        return f"{more} requests, {fewer} with it" if more > fewer and without.problem is None else None
    return without.problem


def find_history(name: str, seeds: int) -> dict[str, Any] | None:
    """The first seed that ends wrong without the protection and right with it, shrunk. None if no seed does."""
    protection = PROTECTIONS[name]
    overrides = protection.overrides
    seed = next((n for n in range(seeds) if problem_without(protection, n, overrides) is not None), None)
    if seed is None:
        return None
    smaller, keep = shrink(seed, overrides, lambda o, k: problem_without(protection, seed, o, k) is not None)
    return {
        "seed": seed,
        "overrides": smaller,
        "keep": keep,
        "problem": problem_without(protection, seed, smaller, keep),
    }


def read_recorded() -> dict[str, dict[str, Any]]:
    """The recorded history of each protection, by its name."""
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def table() -> str:
    """The table of `protections.md`."""
    lines = ["| protection | against | seeds until a wrong end | events of the smallest history |", "|---|---|---|---|"]
    recorded = read_recorded()
    for protection in PROTECTIONS.values():
        history = recorded[protection.name]
        seeds = f"{history['seed'] + 1:,}{'*' if protection.overrides else ''}"
        also = f" (also without *{protection.also_without}*)" if protection.also_without else ""
        lines.append(f"| {protection.name}{also} | {protection.against} | {seeds} | {len(history['keep'])} |")
    return "\n".join(lines) + "\n"


def replace_table(page: str) -> str:
    """The page with the present table."""
    head, rest = page.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END, 1)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("find", "table"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=20_000)
    options = parser.parse_args()
    if options.verb == "table":
        PAGE.write_text(replace_table(PAGE.read_text()))
        return 0
    recorded = read_recorded()
    for name in options.names or PROTECTIONS:
        found = find_history(name, options.seeds)
        result = f"seed {found['seed']}, {len(found['keep'])} events: {found['problem']}" if found else "NOT FOUND"
        print(f"{name:48} {result[:150]}", flush=True)
        recorded.pop(name, None)
        if found:
            recorded[name] = found
        text = ",\n".join(f" {json.dumps(n)}: {json.dumps(recorded[n])}" for n in PROTECTIONS if n in recorded)
        RECORDED.write_text("{\n" + text + "\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
