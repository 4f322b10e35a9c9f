"""The source empties tables while the job runs: every history ends with the documents of the rows that came after."""

from typing import Any

import pytest

from tests.simulator.registry_edits import EditSimulation
from tests.simulator.replayed_dead_letters import ReplaySimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate

SEEDS = share(20)
TRUNCATES = {"truncate_chance": 0.2}
HARD = {"zombie_chance": 1.0, "max_faults": 5, "fault_chance": 0.05, "checkpoint_loss_chance": 1.0, "fan_out_page": 1}
KINDS: dict[str, tuple[type[Simulation], dict[str, Any]]] = {
    "plain": (Simulation, {}),
    "hard": (Simulation, HARD),
    "edges": (Simulation, {"shape": "lists"}),
    "replays": (ReplaySimulation, {}),
    "edits": (EditSimulation, {"shape": "edits"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_history_ends_with_the_documents_of_the_rows_after_its_truncates(kind: str) -> None:
    simulation_class, overrides = KINDS[kind]
    runs = [
        simulate(seed, simulation_class=simulation_class, overrides={**TRUNCATES, **overrides}) for seed in range(SEEDS)
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.total_tally()["deleted"] for run in runs) >= at_least(SEEDS / 4)
