"""Topics that take only small messages for some time: every history ends as if they had taken all of them."""

import pytest

from tests.simulator.large_documents import LargeDocumentSimulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate

SEEDS = share(400)
HARD = {"shape": "stars", "zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


@pytest.mark.parametrize("overrides", [{}, HARD], ids=["plain", "hard"])
def test_every_history_ends_right_and_no_document_stays_old_in_silence(overrides: dict[str, object]) -> None:
    runs = [simulate(seed, simulation_class=LargeDocumentSimulation, overrides=overrides) for seed in range(SEEDS)]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.total_tally()["unfit"] > 0 for run in runs) >= at_least(SEEDS / 8)
    assert sum(run.facts["unfit at the end"] for run in runs) >= at_least(SEEDS / 8)
