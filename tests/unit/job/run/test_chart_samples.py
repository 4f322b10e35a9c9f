"""The samples of a run, for the charts of the console."""

import itertools

from processor.job.run.monitor import MOST_SAMPLES, RANGES, ChartSamples


def test_each_range_has_sixty_means_and_no_older_ones() -> None:
    ring = ChartSamples()
    for second in range(0, 200_000, 5):
        kept = ring.add(float(second), second / 10)
    for name, seconds in RANGES.items():
        assert MOST_SAMPLES - 1 <= len(kept[name]) <= MOST_SAMPLES
        times = [sample[0] or 0.0 for sample in kept[name]]
        assert {later - earlier for earlier, later in itertools.pairwise(times)} == {seconds / 60}
    at, mean = kept["1 h"][-1]
    assert at is not None
    assert mean == round((at - 27.5) / 10, 1)  # of the minute that ends then


def test_a_sample_of_values_that_nobody_knows_is_unknown_and_others_are_the_mean_of_those_known() -> None:
    ring = ChartSamples()
    ring.add(0.0, 1.0, None)
    for second in (5.0, 10.0):
        kept = ring.add(second, second, None if second == 5.0 else 3.0)
    assert kept["10 min"] == [[0, 1.0, None], [10, 7.5, 3.0]]


def test_a_run_continues_the_charts_of_the_run_before() -> None:
    before = ChartSamples().add(0.0, 1.0)
    kept = ChartSamples(before).add(100.0, 2.0)
    assert ([at for at, _ in kept["10 min"]], [at for at, _ in kept["1 h"]]) == ([0], [0])
    ring = ChartSamples(before)
    ring.add(100.0, 2.0)
    assert ring.add(110.0, 4.0)["10 min"] == [[0, 1.0], [110, 3.0]]
    assert ChartSamples(before).add(601.0, 2.0)["10 min"] == []  # too old
