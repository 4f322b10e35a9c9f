"""The samples of a run, for the charts of the console."""

import itertools

from processor.job.run.monitor import MOST_SAMPLES, SampleRing


def test_a_sample_a_minute_and_an_hour_of_them() -> None:
    ring = SampleRing()
    for second in range(0, 7_200, 5):
        kept = ring.add(float(second), second / 10)
    assert len(kept) == MOST_SAMPLES
    assert kept[-1] == [7_140, 714.0]
    assert {later[0] - earlier[0] for earlier, later in itertools.pairwise(kept)} == {60}
