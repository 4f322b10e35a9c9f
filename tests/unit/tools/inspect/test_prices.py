"""The figures of docs/costs.md about a month follow from its own prices and units."""

import re
from pathlib import Path

import pytest

from processor.tools.inspect.prices import DEFAULT

PAGE = (Path(__file__).parents[4] / "docs" / "costs.md").read_text(encoding="utf-8").replace("\n  ", " ")
HOURS = 730
UNITS = (2.35, 1.50)
"""Write units and read units of an event of the mix."""
EVENT = float(UNITS[0] * float(DEFAULT.write) + UNITS[1] * float(DEFAULT.read)) / 1_000_000
"""Its dollars on demand."""
PROVISIONED = (UNITS[0] * 0.00065 + UNITS[1] * 0.00013) * HOURS / 0.7
"""Dollars a month for one event a second, 70 % of the capacity used."""
STORAGE, RARE_STORAGE, RARE_REQUESTS = 0.25, 0.25 * 0.4, 1.25


def on_demand(rate: float) -> float:
    return EVENT * rate * HOURS * 3_600


@pytest.mark.parametrize("rate", [1, 100, 10_000])
def test_the_table_has_the_price_of_each_rate(rate: int) -> None:
    (demand, provisioned) = re.findall(rf"^\| {rate:,} \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)[0]
    assert float(demand.replace(",", "")) == pytest.approx(on_demand(rate), rel=0.02, abs=0.5)
    assert float(provisioned.replace(",", "")) == pytest.approx(PROVISIONED * rate, rel=0.05, abs=0.5)


def test_the_prices_with_reserved_capacity_are_54_and_77_percent_less() -> None:
    found = re.findall(
        r"10,000 events a second cost \$([\d,]+) or \$([\d,]+) a month, and 100 cost \$(\d+) or \$(\d+)", PAGE
    )
    shown = [float(text.replace(",", "")) for text in found[0]]
    computed = [PROVISIONED * rate * share for rate in (10_000, 100) for share in (0.46, 0.23)]
    assert shown == [pytest.approx(each, rel=0.01) for each in computed]


def test_the_rate_below_which_standard_ia_is_cheaper_follows_from_the_prices() -> None:
    a_month = (STORAGE - RARE_STORAGE) / ((RARE_REQUESTS - 1) * EVENT)
    (shown, rate) = re.findall(r"below ([\d,]+) events a month for each GB, which is ([\d.]+) events a second", PAGE)[0]
    assert float(shown.replace(",", "")) == pytest.approx(a_month, rel=0.01)
    assert float(rate) == pytest.approx(a_month / HOURS / 3_600, rel=0.02)


def test_a_large_table_is_much_cheaper_as_standard_ia_and_a_small_one_hardly() -> None:
    standard, rare = (
        [price * on_demand(1) + storage * size for size in (1_000, 10)]
        for price, storage in ((1.0, STORAGE), (RARE_REQUESTS, RARE_STORAGE))
    )
    assert f"a table of 1,000 GB costs ${rare[0]:.0f} in place of ${standard[0]:.0f}" in PAGE
    assert f"one of 10 GB ${rare[1]:.0f} in place of ${standard[1]:.0f}" in PAGE
