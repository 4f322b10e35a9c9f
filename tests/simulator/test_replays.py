"""Dead letters that are replayed at any moment: every history ends as if they had been good from the first."""

import os

import pytest

import processor.steps.replay as step
from tests.simulator.mending import Mending
from tests.simulator.protections import ZOMBIES
from tests.simulator.run import Simulation, simulate
from tests.simulator.without.edges import only_the_difference
from tests.simulator.without.switch import Switch, always, replacing
from tests.simulator.worlds import story

SEEDS = int(os.environ.get("STATESTORE_SEEDS", "10000")) // 12
LEFT_OUT = {"unsent": 0.3}
HARD = {"unsent": 0.3, "zombie": 1.0, "hot": True, "faults": 4}
EDGES = story("a star comes back", {**ZOMBIES, "shape": "strong"}, pause=0.2)


@pytest.mark.parametrize("boost", [{}, LEFT_OUT, HARD, {"shape": "lists"}], ids=["plain", "left out", "hard", "edges"])
def test_every_history_ends_as_if_its_dead_letters_had_been_good(boost: dict[str, object]) -> None:
    runs = [simulate(seed, kind=Mending, boost=boost) for seed in range(SEEDS // 4)]
    assert {run.seed: run.verdict for run in runs if run.verdict} == {}
    assert sum(run.facts["mended"] for run in runs) > SEEDS // 8
    assert sum(run.world.faults["crash after"] for run in runs) > SEEDS // 80


NO_FILLS = replacing((step, "filled_image", always(None)))
NO_FORMER_KEYS = replacing(
    (step, "entry_of", lambda make: lambda entity, row, _: make(entity, row, frozenset())),
)


@pytest.mark.parametrize(
    ("seed", "boost", "without"),
    [(1, HARD | {"faults": 2}, NO_FILLS), (285, HARD, NO_FORMER_KEYS), (3693, EDGES, only_the_difference)],
    ids=["an older dead letter fills", "keys are open before the write", "every edge is put, not only the new ones"],
)
def test_a_history_ends_wrong_without_the_protection(seed: int, boost: dict[str, object], without: Switch) -> None:
    def run(**more: Switch) -> Simulation:
        return simulate(seed, kind=Mending, boost=boost, **more)

    assert run().verdict is None
    assert run(without=without).verdict is not None
