"""A column of decimals whose text may have two meanings: every history ends with the rows of one form."""

from typing import Any

import pytest

from tests.simulator.seeds import at_least, share
from tests.simulator.settled_forms import OVERRIDES, SettledFormSimulation
from tests.simulator.simulate import simulate
from tests.simulator.worlds import CONSISTENT, CRASHES

SEEDS = share(18)
HARD = {**CRASHES, "shape": "prices", "zombie_chance": 1.0, "checkpoint_loss_chance": 1.0}


@pytest.mark.parametrize("overrides", [{}, HARD, CONSISTENT], ids=["plain", "hard", "consistent"])
def test_every_history_ends_as_if_all_records_were_read_by_one_form(overrides: dict[str, Any]) -> None:
    runs = [
        simulate(seed, simulation_class=SettledFormSimulation, overrides={**overrides, **OVERRIDES})
        for seed in range(max(1, SEEDS // 3))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["replays"] for run in runs) >= at_least(SEEDS / 24)
