"""A product that fails for a while: every history ends as if it had not, and the other products never notice."""

import os

import pytest

from processor.model.owed import Owed
from tests.simulator.run import Simulation, simulate
from tests.simulator.stopping import Stopping
from tests.simulator.without.publisher import any_attempt
from tests.simulator.without.switch import Switch, always, replacing

SEEDS = int(os.environ.get("STATESTORE_SEEDS", "10000")) // 15
HARD = {"shape": "stars", "zombie": 1.0, "hot": True, "faults": 4}


@pytest.mark.parametrize("boost", [{}, {"shape": "stars"}, HARD], ids=["plain", "two products", "hard"])
def test_every_history_ends_as_if_no_product_had_failed(boost: dict[str, object]) -> None:
    runs = [simulate(seed, kind=Stopping, boost=boost) for seed in range(SEEDS // 3)]
    assert {run.seed: run.verdict for run in runs if run.verdict} == {}
    assert sum(run.done()["owed"] > 0 for run in runs) > SEEDS // 12
    assert sum(run.facts["stopped at the end"] for run in runs) > SEEDS // 30


@pytest.mark.parametrize(
    ("seed", "without"),
    [
        (1, replacing((Owed, "asked", always([])))),
        (99, replacing((Owed, "reloaded", lambda reload: lambda self, items: _kept(self, reload(self, items))))),
        (83, any_attempt),
    ],
    ids=["debts are durable", "debts of this run are its own", "a refused transaction acknowledges nothing"],
)
def test_a_history_ends_wrong_without_the_protection(seed: int, without: Switch) -> None:
    def run(**more: Switch) -> Simulation:
        return simulate(seed, kind=Stopping, **more)

    assert run().verdict is None
    assert run(without=without).verdict is not None


def _kept(owed: Owed, gone: object) -> object:
    owed.kept.update(root for roots in owed.waiting.values() for root in roots)
    return gone
