"""The running job replays dead letters that an operator asks for, while batches go on. Every history ends as if they had been
good from the start, and no letter counts as applied before its documents are published."""

from typing import Any

import pytest

from tests.simulator.live_replays import LiveErasedLetters, LiveReplaySimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.without import live_replays as without
from tests.simulator.without.switch import Switch
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
        (LiveErasedLetters, ERASED),
        (LiveErasedLetters, HARD | ERASED),
    ],
    ids=["plain", "hard", "edges", "consistent", "erasures", "hard erasures"],
)
def test_every_history_ends_as_if_its_dead_letters_had_been_good(
    of: type[Simulation], overrides: dict[str, Any]
) -> None:
    runs = [simulate(seed, simulation_class=of, overrides=overrides) for seed in range(max(1, SEEDS // 6))]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["replays"] for run in runs) >= at_least(SEEDS / 12)


@pytest.mark.parametrize(
    ("seed", "overrides", "switch", "problem"),
    [
        (33, {}, without.unsettled, "counts as applied"),
        (72, HARD, without.unsettled, "counts as applied"),
        (894, {"fan_out_page": 1}, without.unpublished, "counts as applied"),
        (3, {}, without.taken_again, "is applied, and the table says superseded"),
        (1928, {}, without.entry_after_write, "wrong at the end"),
    ],
    ids=[
        "an outcome waits until the change is settled",
        "an outcome waits until the change is settled, after crashes",
        "an outcome waits for the fan-outs that settling began",
        "a run takes the outcome of an ended replay from the table",
        "the change is durable before the write",
    ],
)
def test_a_history_ends_wrong_without_the_protection(
    seed: int, overrides: dict[str, Any], switch: Switch, problem: str
) -> None:
    def run(**more: Any) -> str | None:
        return simulate(seed, simulation_class=LiveReplaySimulation, overrides=overrides, **more).problem

    assert run() is None
    assert problem in (run(switch=switch) or "")
