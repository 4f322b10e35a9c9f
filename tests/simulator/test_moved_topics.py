"""An operator moves an entity to another topic, and back, ends moves early, makes epochs begin again, and erases rows, at any
moment: every history ends as if the source had written all records to one topic, without those of the erased rows."""

from typing import Any

import pytest

from tests.simulator.moved_topics import MOVES, MovingSimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate

SEEDS = share(30)
HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


def run(seed: int, overrides: dict[str, Any], **more: Any) -> Simulation:
    return simulate(seed, simulation_class=MovingSimulation, overrides={**MOVES, **overrides}, **more)


@pytest.mark.parametrize("overrides", [{}, HARD, {"shape": "lists"}], ids=["plain", "hard", "edges"])
def test_every_history_with_moves_rebuilds_and_erasures_ends_right(overrides: dict[str, object]) -> None:
    runs = [run(seed, overrides) for seed in range(max(1, SEEDS // 3))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    for fact in ("moves", "rebuilds", "erasures ended"):
        assert sum(run.facts[fact] for run in runs) >= at_least(SEEDS / 12)
    assert sum(run.facts["moves ended early"] for run in runs) >= at_least(SEEDS / 24)
