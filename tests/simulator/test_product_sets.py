"""Random sets of 1 to 40 products over three roots, which operators edit while the job runs: every history ends right."""

import pytest

from tests.simulator.product_sets import ProductSetSimulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate

SEEDS = share(100)
HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 5, "checkpoint_loss_chance": 1.0, "lag": "long"}


@pytest.mark.parametrize("overrides", [{}, HARD], ids=["plain", "hard"])
def test_every_set_of_products_ends_with_its_documents(overrides: dict[str, object]) -> None:
    runs = [
        simulate(seed, simulation_class=ProductSetSimulation, overrides={"shape": "edits", **overrides})
        for seed in range(max(1, SEEDS // 2))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["edits"] for run in runs) >= at_least(SEEDS / 2)
    assert sum(run.facts["two groups"] for run in runs) >= at_least(SEEDS / 25)
