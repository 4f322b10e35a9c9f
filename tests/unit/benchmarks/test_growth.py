"""The benchmark of growth finds what grows with a size that the event does not touch."""

from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests import `benchmarks` from the root of the checkout."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.mark.parametrize(
    ("costs", "exponent"),
    [((3.0, 3.0, 3.0), 0.0), ((2.0, 20.0, 200.0), 1.0), ((1.0, 100.0, 10_000.0), 2.0), ((0.0, 0.0, 0.0), 0.0)],
)
def test_the_exponent_is_that_of_the_power_law(costs: tuple[float, ...], exponent: float) -> None:
    from benchmarks.growth import fit_exponent

    assert fit_exponent((10, 100, 1_000), costs) == pytest.approx(exponent)


def figures(grows: str, sizes: tuple[int, ...]) -> tuple[Mapping[str, tuple[float, ...]], list[str]]:
    from benchmarks.growth import KINDS, measure_growth

    (kind,) = (kind for kind in KINDS if kind.grows == grows)
    found = measure_growth(kind, sizes)
    return found.costs, [cost for cost in found.faults if "units" in cost or cost == "requests"]


@pytest.mark.parametrize(
    "grows",
    [
        "stars of the repository",
        "stars of the user, the newest 50 with `ordered: true`",
        "products, one reads the column",
        "other entities with a product",
        "partitions of the topic",
        "open changes of other rows",
        "roots",
    ],
)
def test_an_event_costs_the_same_units_whatever_it_does_not_touch(grows: str) -> None:
    sizes = (60, 300) if "newest" in grows else (2, 12)
    costs, faults = figures(grows, sizes)
    assert faults == []
    assert costs["read units"][0] > 0 < costs["write units"][0]


def test_a_list_that_reads_all_rows_to_show_some_is_a_fault() -> None:
    costs, faults = figures("stars of the user, the newest 50 shown", (60, 300))
    assert faults == ["read units"]
    assert costs["read units"][0] < costs["read units"][1]


def test_an_hour_of_a_run_costs_as_much_as_the_first_one() -> None:
    from benchmarks.growth import LIMITS, measure_uptime

    found = measure_uptime((1, 2), seconds=60.0, users=10)
    assert [name for name in found.faults if name != "CPU ms"] == []
    assert found.costs.keys() == LIMITS.keys()
