"""An operator replays dead letters at any moment: every history ends as if they had been good from the start."""

from typing import Any

import pytest

import processor.steps.replay as step
from tests.simulator.replayed_dead_letters import ReplaySimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.without.edges import only_new_edges
from tests.simulator.without.switch import Switch, always, replacing
from tests.simulator.worlds import ZOMBIES, scripted

SEEDS = share(12)
UNAVAILABLE = {"unavailable_chance": 0.3}
HARD = {"unavailable_chance": 0.3, "zombie_chance": 1.0, "many_moves": True, "max_faults": 4}
EDGES = scripted("a star comes back", {**ZOMBIES, "shape": "strong"}, settle_first_chance=0.2)


@pytest.mark.parametrize(
    "overrides", [{}, UNAVAILABLE, HARD, {"shape": "lists"}], ids=["plain", "unavailable values", "hard", "edges"]
)
def test_every_history_ends_as_if_its_dead_letters_had_been_good(overrides: dict[str, object]) -> None:
    runs = [
        simulate(seed, simulation_class=ReplaySimulation, overrides=overrides) for seed in range(max(1, SEEDS // 4))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["replays"] for run in runs) >= at_least(SEEDS / 8)
    assert sum(run.world.faults["crash after"] for run in runs) >= at_least(SEEDS / 80)


NO_FILLS = replacing((step, "filled_image", always(None)))
NO_FORMER_KEYS = replacing(
    (step, "open_change", lambda make: lambda entity, row, _: make(entity, row, frozenset())),
)


@pytest.mark.parametrize(
    ("seed", "overrides", "switch"),
    [(1, HARD | {"max_faults": 2}, NO_FILLS), (453, HARD, NO_FORMER_KEYS), (2273, EDGES, only_new_edges)],
    ids=[
        "an older dead letter fills columns",
        "a replay opens the former keys",
        "a replay puts every edge, not only the new ones",
    ],
)
def test_a_history_ends_wrong_without_the_protection(seed: int, overrides: dict[str, object], switch: Switch) -> None:
    def run(**more: Any) -> Simulation:
        return simulate(seed, simulation_class=ReplaySimulation, overrides=overrides, **more)

    assert run().problem is None
    assert run(switch=switch).problem is not None
