"""What a run counted in its last hour, for the products and costs of the console."""

from processor.job.run.monitor import MARKS, CountWindow
from processor.text import HOUR


def test_a_run_of_less_than_an_hour_counts_whole() -> None:
    window = CountWindow(HOUR, 1_000.0)
    assert window.add(1_005.0, {"messages of profile": 3, "settled": 9}) == {
        "seconds": 5.0,
        "counts": {"messages of profile": 3},
    }


def test_an_hour_is_the_difference_to_an_hour_ago_and_the_marks_stay_few() -> None:
    window = CountWindow(HOUR, 0.0)
    for second in range(0, 3 * HOUR, 5):
        found = window.add(float(second), {"half units Query": second, "applied in user": 7})
    assert HOUR <= found["seconds"] <= HOUR + HOUR / MARKS
    assert found["counts"] == {"half units Query": found["seconds"]}
    assert len(window._marks) <= MARKS + 2
