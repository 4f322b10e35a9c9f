"""A product that fails for some time: every history ends as if no product had failed."""

import pytest

from tests.simulator.failing_products import FailingProductSimulation, UnreadyProductSimulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate

SEEDS = share(15)
HARD = {"shape": "stars", "zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


@pytest.mark.parametrize("overrides", [{}, {"shape": "stars"}, HARD], ids=["plain", "two products", "hard"])
def test_every_history_ends_as_if_no_product_had_failed(overrides: dict[str, object]) -> None:
    runs = [
        simulate(seed, simulation_class=FailingProductSimulation, overrides=overrides)
        for seed in range(max(1, SEEDS // 3))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.total_tally()["backlog"] > 0 for run in runs) >= at_least(SEEDS / 12)
    assert sum(run.facts["stopped at the end"] for run in runs) >= at_least(SEEDS / 30)


def test_every_history_ends_as_if_every_start_had_found_each_product_ready() -> None:
    runs = [simulate(seed, simulation_class=UnreadyProductSimulation) for seed in range(max(1, SEEDS // 3))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["unready"] > 0 for run in runs) >= at_least(SEEDS / 15)
    assert sum(run.total_tally()["backlog"] > 0 for run in runs) >= at_least(SEEDS / 15)
