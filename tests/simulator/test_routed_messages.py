"""Products with headers and `partition_by`: every history ends with one document of each root, with its headers."""

import pytest

from tests.simulator.routed_messages import RoutedSimulation
from tests.simulator.seeds import Kind, at_least, overrides_of, share, simulation_of
from tests.simulator.simulate import simulate

SEEDS = share(64)
HARD = {"zombie_chance": 1.0, "many_moves": True, "max_faults": 4}


@pytest.mark.parametrize("shape", ["stars", *[pytest.param(one, marks=pytest.mark.rest) for one in ("any", "grouped")]])
def test_every_history_ends_with_one_document_of_each_root(shape: str) -> None:
    runs = [
        simulate(
            n,
            simulation_class=RoutedSimulation,
            overrides={"shape": shape if shape == "stars" else f"{shape} {n}", **(HARD if n % 2 else {})},
        )
        for n in range(max(1, SEEDS // 64 if shape == "stars" else SEEDS))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["moved documents"] for run in runs) >= at_least(SEEDS / 64)


@pytest.mark.rest
def test_every_history_with_edits_ends_with_one_document_of_each_key() -> None:
    kind: Kind = "routed edits"
    runs = [
        simulate(n, simulation_class=simulation_of(kind), overrides=overrides_of(n, kind)) for n in range(max(1, SEEDS))
    ]
    assert {run.seed: run.problem for run in runs if run.problem} == {}
    assert sum(run.facts["topics taken"] for run in runs) >= at_least(SEEDS / 8)
