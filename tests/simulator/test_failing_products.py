"""A product that fails for some time: every history ends as if no product had failed."""

from typing import Any

import pytest

from processor.progress.backlog import Backlog
from tests.simulator.failing_products import FailingProductSimulation, UnreadyProductSimulation
from tests.simulator.run import Simulation
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.without.publisher import any_attempt
from tests.simulator.without.switch import Switch, always, replacing

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
    assert sum(run.facts["unready"] > 0 for run in runs) >= at_least(SEEDS / 12)
    assert sum(run.total_tally()["backlog"] > 0 for run in runs) >= at_least(SEEDS / 15)


def test_such_a_history_ends_wrong_without_the_backlog() -> None:
    assert simulate(10, simulation_class=UnreadyProductSimulation).problem is None
    lost = replacing((Backlog, "add", always([])))
    assert simulate(10, simulation_class=UnreadyProductSimulation, switch=lost).problem is not None


@pytest.mark.parametrize(
    ("seed", "switch"),
    [
        (1, replacing((Backlog, "add", always([])))),
        (
            89,
            replacing((Backlog, "reload", lambda reload: lambda self, items: _take_as_own(self, reload(self, items)))),
        ),
        (3, any_attempt),
    ],
    ids=["the backlog is durable", "a run keeps its own backlog", "a refused transaction acknowledges nothing"],
)
def test_a_history_ends_wrong_without_the_protection(seed: int, switch: Switch) -> None:
    def run(**more: Any) -> Simulation:
        return simulate(seed, simulation_class=FailingProductSimulation, **more)

    assert run().problem is None
    assert run(switch=switch).problem is not None


def _take_as_own(backlog: Backlog, obsolete: object) -> object:
    backlog.own.update(root for roots in backlog.waiting.values() for root in roots)
    return obsolete
