"""The running job replays dead letters that an operator asks for, while batches go on. Every history ends as if they had been
good from the start, and no letter counts as applied before its documents are published."""

from typing import Any

import pytest

from tests.simulator.live_replays import LiveErasedLetters, LiveReplaySimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.worlds import CONSISTENT

SEEDS = share(18)
HARD = {"unavailable_chance": 0.3, "zombie_chance": 1.0, "many_moves": True, "max_faults": 4}
ERASED = {"unavailable_chance": 0.0}


@pytest.mark.parametrize(
    ("of", "overrides"),
    [
        (LiveReplaySimulation, {}),
        (LiveReplaySimulation, HARD),
        (LiveReplaySimulation, {"shape": "lists"}),
        (LiveReplaySimulation, CONSISTENT),
        (LiveReplaySimulation, HARD | {"letters_away_chance": 0.5}),
        (LiveErasedLetters, ERASED),
        (LiveErasedLetters, HARD | ERASED),
    ],
    ids=["plain", "hard", "edges", "consistent", "letters away", "erasures", "hard erasures"],
)
def test_every_history_ends_as_if_its_dead_letters_had_been_good(
    of: type[Simulation], overrides: dict[str, Any]
) -> None:
    runs = [simulate(seed, simulation_class=of, overrides=overrides) for seed in range(max(1, SEEDS // 6))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["replays"] for run in runs) >= at_least(SEEDS / 12)
