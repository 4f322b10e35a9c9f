"""An operator erases rows at any moment: every history ends as if the source had never sent their records."""

from typing import Any

import pytest

from tests.simulator.erased_rows import OVERRIDES, ErasedLettersSimulation, ErasingSimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate

SEEDS = share(30)
HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


def run(seed: int, overrides: dict[str, Any], *, of: type[Simulation] = ErasingSimulation, **more: Any) -> Simulation:
    return simulate(seed, simulation_class=of, overrides={**OVERRIDES, **overrides}, **more)


@pytest.mark.parametrize("overrides", [{}, HARD, {"shape": "lists"}], ids=["plain", "hard", "edges"])
def test_every_history_ends_as_if_the_source_had_not_sent_the_erased_records(overrides: dict[str, object]) -> None:
    runs = [run(seed, overrides) for seed in range(max(1, SEEDS // 3))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["erasures ended"] for run in runs) >= at_least(SEEDS / 6)
    assert sum(run.world.faults["crash after"] for run in runs) >= at_least(SEEDS / 40)


@pytest.mark.parametrize("overrides", [{}, HARD, {"shape": "lists"}], ids=["plain", "hard", "edges"])
def test_no_replay_of_a_dead_letter_brings_an_erased_row_back_or_keeps_its_keys(overrides: dict[str, object]) -> None:
    runs = [run(seed, overrides, of=ErasedLettersSimulation) for seed in range(max(1, SEEDS // 6))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["erasures ended"] for run in runs) >= at_least(SEEDS / 12)
    assert sum(run.facts["replays"] for run in runs) >= at_least(SEEDS / 12)
