"""Joins by edges: list joins beside indexes that lie, and strong joins where no index answers at all."""

import pytest

from tests.simulator.line import TableClient
from tests.simulator.run import simulate
from tests.simulator.without.switch import replacing

SEEDS = range(100)


def no_index(_: object) -> object:
    def query(*asked: object) -> list[object]:
        raise AssertionError(f"an index was asked: {asked}")

    return query


@pytest.mark.parametrize("boost", [{}, {"page": 1, "hot": True, "events": 25}])
def test_list_joins_end_right(boost: dict[str, object]) -> None:
    runs = {seed: simulate(seed, boost={"shape": "lists", **boost}) for seed in SEEDS}
    assert {seed: run.verdict for seed, run in runs.items() if run.verdict} == {}
    assert sum(run.done()["fan-out pages"] for run in runs.values()) > 50


@pytest.mark.parametrize(
    "boost",
    [
        {"lag": "none", "page": 1_000},
        {"lag": "none", "hot": True, "events": 14, "faults": 5, "fault": 0.05, "page": 1_000},
        {"lag": "none", "hot": True, "events": 25, "faults": 5, "fault": 0.05, "page": 1},
    ],
)
def test_strong_joins_end_right_and_never_go_back_without_an_index(boost: dict[str, object]) -> None:
    asking = replacing((TableClient, "query", no_index))
    runs = {seed: simulate(seed, boost={"shape": "strong", **boost}, without=asking) for seed in SEEDS}
    assert {seed: run.verdict for seed, run in runs.items() if run.verdict} == {}
    assert sum(run.tally["corrections"] for run in runs.values()) == 0
