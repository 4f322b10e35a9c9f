"""An operator replays dead letters at any moment: every history ends as if they had been good from the start."""

import pytest

from tests.simulator.replayed_dead_letters import ReplaySimulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate

SEEDS = share(12)
UNAVAILABLE = {"unavailable_chance": 0.3}
HARD = {"unavailable_chance": 0.3, "zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


@pytest.mark.parametrize(
    "overrides", [{}, UNAVAILABLE, HARD, {"shape": "lists"}], ids=["plain", "unavailable values", "hard", "edges"]
)
def test_every_history_ends_as_if_its_dead_letters_had_been_good(overrides: dict[str, object]) -> None:
    runs = [
        simulate(seed, simulation_class=ReplaySimulation, overrides=overrides) for seed in range(max(1, SEEDS // 4))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["replays"] for run in runs) >= at_least(SEEDS / 8)
    assert sum(run.world.faults["crash after"] for run in runs) >= at_least(SEEDS / 80)
