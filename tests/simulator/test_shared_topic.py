"""A topic that several entities share, each with its table: every history ends as if each table had a topic of its own."""

import pytest

from tests.simulator.seeds import at_least, share
from tests.simulator.shared_topic import OVERRIDES, SharedTopicSimulation
from tests.simulator.simulate import simulate

SEEDS = share(24)
HARD = {"unavailable_chance": 0.3, "zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


@pytest.mark.parametrize("overrides", [{}, HARD, {"shape": "lists"}], ids=["plain", "hard", "edges"])
def test_every_history_ends_as_if_each_table_had_a_topic_of_its_own(overrides: dict[str, object]) -> None:
    seeds = range(max(1, SEEDS // 3))
    runs = [simulate(n, simulation_class=SharedTopicSimulation, overrides={**OVERRIDES, **overrides}) for n in seeds]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["tombstones"] for run in runs) >= at_least(SEEDS / 24)
