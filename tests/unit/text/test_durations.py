"""Durations, as people read them."""

import pytest

from processor.text import duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0, "0 s"),
        (0.34, "0.3 s"),
        (9.4, "9.4 s"),
        (42.2, "42 s"),
        (59.7, "1 min"),
        (125, "2 min 5 s"),
        (3_600, "1 h"),
        (10_799, "2 h 59 min"),
        (86_400, "1 day"),
        (100_800, "1 day 4 h"),
        (30 * 86_400, "30 days"),
        (375_389_347, "11 years"),
    ],
)
def test_a_duration_has_its_largest_unit_and_the_next_one(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
