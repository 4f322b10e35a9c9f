"""An operator repairs rows from the source while records flow. Every history ends with the rows of the source."""

from typing import Any

import pytest

from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.source_repairs import SourceRepairSimulation

SEEDS = share(6)
PLAIN = {"unavailable_chance": 0.0}
HARD = PLAIN | {"zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


@pytest.mark.parametrize("overrides", [PLAIN, HARD, PLAIN | {"shape": "lists"}], ids=["plain", "hard", "edges"])
def test_every_history_ends_with_the_rows_of_the_source(overrides: dict[str, Any]) -> None:
    runs = [
        simulate(seed, simulation_class=SourceRepairSimulation, overrides=overrides)
        for seed in range(max(1, SEEDS // 3))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["replays"] for run in runs) >= at_least(SEEDS / 8)
