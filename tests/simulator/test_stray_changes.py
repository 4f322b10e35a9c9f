"""A producer sends changes of one row to two partitions: one of them counts, and the other's changes are dead letters."""

from typing import Any

import pytest

from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.stray_changes import OVERRIDES, StraySimulation

SEEDS = share(20)
HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


def run(seed: int, **more: Any) -> Simulation:
    overrides = {**OVERRIDES, **more.pop("overrides", {})}
    return simulate(seed, simulation_class=StraySimulation, overrides=overrides, **more)


@pytest.mark.parametrize("overrides", [{}, HARD], ids=["plain", "hard"])
def test_every_row_takes_the_changes_of_one_partition_and_no_other_is_lost(overrides: dict[str, object]) -> None:
    runs = [run(seed, overrides=overrides) for seed in range(max(1, SEEDS // 2))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["strays"] for run in runs) >= at_least(SEEDS / 4)
