"""Joins by edges: list joins next to late indexes, and strong joins while no index answers."""

import pytest

from tests.simulator.actor import TableClient
from tests.simulator.seeds import at_least, share
from tests.simulator.simulate import simulate
from tests.simulator.without.switch import replacing

SEEDS = range(min(100, share(10)))


def refuse_queries(_: object) -> object:
    def query(*request: object) -> list[object]:
        raise AssertionError(f"a strong join asked an index: {request}")

    return query


@pytest.mark.parametrize("overrides", [{}, {"fan_out_page": 1, "many_moves": True, "events": 25}])
def test_list_joins_end_right(overrides: dict[str, object]) -> None:
    runs = {seed: simulate(seed, overrides={"shape": "lists", **overrides}) for seed in SEEDS}
    assert {seed: run.problem for seed, run in runs.items() if run.problem} == {}
    assert sum(run.total_tally()["fan-out pages"] for run in runs.values()) >= at_least(len(SEEDS) / 2)


@pytest.mark.parametrize(
    "overrides",
    [
        {"lag": "none", "fan_out_page": 1_000},
        {"lag": "none", "many_moves": True, "events": 14, "max_faults": 5, "fault_chance": 0.05, "fan_out_page": 1_000},
        {"lag": "none", "many_moves": True, "events": 25, "max_faults": 5, "fault_chance": 0.05, "fan_out_page": 1},
    ],
)
def test_strong_joins_end_right_and_never_go_back_without_an_index(overrides: dict[str, object]) -> None:
    no_index = replacing((TableClient, "query", refuse_queries))
    runs = {seed: simulate(seed, overrides={"shape": "strong", **overrides}, switch=no_index) for seed in SEEDS}
    assert {seed: run.problem for seed, run in runs.items() if run.problem} == {}
    assert sum(run.tally["corrections"] for run in runs.values()) == 0
