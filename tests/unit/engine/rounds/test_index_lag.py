"""The histogram of how far index answers lag."""

from processor.engine.rounds.round_counts import count_lags


def test_each_answer_that_lags_counts_in_the_bucket_of_its_age() -> None:
    assert count_lags([0.0, 4.2, 5.0, 400.0]) == {
        "index lag <= 0.1 s": 1,
        "index lag <= 5 s": 2,
        "index lag > 300 s": 1,
        "index lag ms": 409_200,
    }


def test_answers_in_time_leave_no_counter() -> None:
    assert count_lags([]) == {}
