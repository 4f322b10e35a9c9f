"""Products with a clock: every history ends right, at each moment at which the job rests."""

from typing import Any

import pytest

from tests.simulator.clocked_products import ClockedSetSimulation, ClockedSimulation
from tests.simulator.seeds import at_least, overrides_of, share
from tests.simulator.simulate import simulate
from tests.simulator.worlds import CONSISTENT, CRASHES

SEEDS = share(100)
HARD = {**CRASHES, "zombie_chance": 1.0, "checkpoint_loss_chance": 1.0, "max_clock_skew": 30}


@pytest.mark.rest
@pytest.mark.parametrize("overrides", [{}, HARD, CONSISTENT], ids=["plain", "hard", "consistent"])
def test_whatever_time_passes_every_document_is_right_again(overrides: dict[str, Any]) -> None:
    runs = [
        simulate(seed, simulation_class=ClockedSimulation, overrides={**overrides_of(seed, "clock"), **overrides})
        for seed in range(max(1, SEEDS // 3))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["passes"] for run in runs) >= at_least(SEEDS)


@pytest.mark.rest
def test_operators_give_clocks_and_take_them_and_every_history_ends_right() -> None:
    overrides = {"shape": "edits", "late_events": False}
    runs = [simulate(seed, simulation_class=ClockedSetSimulation, overrides=overrides) for seed in range(share(200))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
