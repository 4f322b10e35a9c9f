"""Over a store whose indexes are never late, every history ends right without open changes: with crashes, replays and zombies.

Only replays and erasures open changes there, because no batch repeats them. `consistent_protections.py` has what this mode needs.
"""

from collections import Counter
from typing import Any

import pytest

from processor.engine.plan.plan import Plan
from tests.simulator.column_edits import ColumnSimulation
from tests.simulator.erased_rows import OVERRIDES as ERASURES
from tests.simulator.erased_rows import ErasingSimulation
from tests.simulator.failing_products import FailingProductSimulation
from tests.simulator.large_documents import LargeDocumentSimulation
from tests.simulator.registry_edits import EditSimulation
from tests.simulator.replayed_dead_letters import ReplaySimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.several_rows import OVERRIDES as SEVERAL
from tests.simulator.several_rows import SeveralRowsSimulation
from tests.simulator.simulate import simulate
from tests.simulator.spark import Broadcast, Session
from tests.simulator.stray_changes import OVERRIDES as STRAYS
from tests.simulator.stray_changes import StraySimulation
from tests.simulator.without.switch import replacing
from tests.simulator.worlds import CONSISTENT

SEEDS = share(40)
HARD = {
    "zombie_chance": 1.0,
    "zombie_turn_chance": 0.6,
    "many_moves": True,
    "max_faults": 5,
    "fault_chance": 0.05,
    "checkpoint_loss_chance": 1.0,
}
EDITS = {"shape": "edits"}
KINDS: dict[str, tuple[type[Simulation], dict[str, Any]]] = {
    "plain": (Simulation, {}),
    "truncates": (Simulation, {"truncate_chance": 0.2, "fan_out_page": 1}),
    "lists": (Simulation, {"shape": "lists"}),
    "strong joins": (Simulation, {"shape": "strong"}),
    "fan-outs": (Simulation, {"shape": "github", "events": 30, "fan_out_page": 1}),
    "any product": (Simulation, {}),
    "replays": (ReplaySimulation, {"unavailable_chance": 0.3}),
    "replays and truncates": (ReplaySimulation, {"truncate_chance": 0.2}),
    "erasures": (ErasingSimulation, ERASURES),
    "failing products": (FailingProductSimulation, {}),
    "large documents": (LargeDocumentSimulation, {}),
    "strays": (StraySimulation, STRAYS),
    "several rows": (SeveralRowsSimulation, SEVERAL),
    "edits": (EditSimulation, EDITS),
    "edits and truncates": (EditSimulation, {**EDITS, "truncate_chance": 0.2}),
    "dropped columns": (ColumnSimulation, EDITS),
}
SETTLED = {"replays", "replays and truncates", "erasures", "several rows"}


def runs_of(kind: str, seeds: int, conditions: dict[str, Any]) -> list[Simulation]:
    simulation_class, overrides = KINDS[kind]

    def run(seed: int) -> Simulation:
        shape = {"shape": f"any {seed}"} if kind == "any product" else {}
        given = {**overrides, **shape, **conditions, **CONSISTENT}
        return simulate(seed, simulation_class=simulation_class, overrides=given)

    return [run(seed) for seed in range(seeds)]


@pytest.mark.parametrize("conditions", [{}, HARD], ids=["drawn", "hard"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_history_ends_right(kind: str, conditions: dict[str, Any]) -> None:
    runs = runs_of(kind, SEEDS, conditions)
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    settled = sum(run.total_tally()["settled"] for run in runs)
    assert (settled > 0) == (kind in SETTLED)
    faults = sum((run.world.faults for run in runs), start=Counter[str]())
    assert faults["zombie job"] + faults["zombie task"] >= at_least(SEEDS if conditions else SEEDS / 30)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - SETTLED))
def test_no_round_broadcasts_an_overlay(kind: str) -> None:
    def broadcast(_: Session, value: object) -> Broadcast:
        assert isinstance(value, Plan), "a round broadcast an overlay"
        return Broadcast(value)

    with replacing((Session, "broadcast", lambda _: broadcast))():
        runs = runs_of(kind, 5, HARD)
    assert sum(run.total_tally()["published"] for run in runs) > 0
