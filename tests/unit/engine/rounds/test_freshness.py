"""The histogram of the ages of documents, and how `run` prints it."""

from collections import Counter
from itertools import pairwise
from math import inf

import pytest

from processor.cli.printing.output import event_text, freshness_histogram
from processor.engine.rounds.events import JobEvent
from processor.engine.rounds.round_counts import AGE_BOUNDS, UNKNOWN, Freshness, count_ages, oldest, read_freshness
from processor.job.metrics.status import freshness_text


def histogram(*ages: float) -> Freshness:
    return read_freshness(count_ages(ages))


def test_each_document_counts_in_the_bucket_whose_upper_bound_its_age_does_not_exceed() -> None:
    assert count_ages([0.1, 0.11, 0.125, 700]) == {
        "freshness <= 0.1 s": 1,
        "freshness <= 0.125 s": 2,
        "freshness > 630 s": 1,
        "freshness ms": 700_335,
    }
    read = histogram(0.1, 0.11, 0.125, 700)
    assert (read.count, read.seconds) == (4, 700.335)


def test_the_buckets_go_from_a_tenth_of_a_second_to_ten_minutes_in_steps_of_at_most_a_third() -> None:
    assert (AGE_BOUNDS[0], AGE_BOUNDS[-1], len(AGE_BOUNDS)) == (0.1, 630, 39)
    assert all(1.2 < upper / lower < 1.34 for lower, upper in pairwise(AGE_BOUNDS))


def test_a_quantile_lies_between_the_bounds_of_its_bucket_in_proportion() -> None:
    ages = histogram(*[0.9] * 80, *[7.0] * 20)
    assert ages.quantile(0.2) == pytest.approx(0.85)  # a quarter of the way from 0.8 to 1
    assert ages.quantile(0.8) == 1.0
    assert ages.quantile(0.9) == pytest.approx(7.15)  # half of the way from 6.3 to 8
    assert ages.quantile(1) == 8.0


def test_the_quantile_of_the_first_bucket_begins_at_zero() -> None:
    assert histogram(0.01, 0.09).quantile(0.5) == pytest.approx(0.05)


def test_a_quantile_in_the_last_bucket_has_no_bound() -> None:
    assert histogram(0.5, 1_000).quantile(0.99) == inf


def test_tallies_of_several_tasks_add_up_to_the_histogram_of_all_documents() -> None:
    first, second = [0.2, 0.7, 3.0], [0.7, 90.0]
    total = Counter({"published": 3})
    for ages in (first, second):
        total.update(count_ages(ages))
    assert read_freshness(total) == histogram(*first, *second)


def test_an_age_below_zero_counts_as_zero() -> None:
    assert histogram(-3.0) == histogram(0.0)


def test_the_oldest_record_gives_a_root_its_time() -> None:
    ada, bob = ("profile", "ada"), ("profile", "bob")
    assert oldest([{ada: 5.0, bob: UNKNOWN}, {ada: 4.0}, {ada: 6.0}]) == {ada: 4.0, bob: UNKNOWN}


def test_a_round_and_the_end_of_a_run_show_the_freshness_of_their_documents() -> None:
    tally = {"read": 2, "applied": 2, "published": 2, **count_ages([0.9, 0.9])}
    assert event_text(JobEvent(what="batch", text="batch 3", fields=tally)) == (
        "batch 3: 2 read = 2 applied, 2 published, freshness p50 0.8 to 1 s, p99 0.8 to 1 s"
    )
    text = freshness_histogram(count_ages([0.9, 0.9, 4.5]))
    assert text == "freshness p50 0.8 to 1 s, p99 4 to 5 s; documents by age: 2 <= 1 s, 1 <= 5 s"


def test_a_round_and_a_run_without_known_ages_show_none() -> None:
    batch = JobEvent(what="batch", text="batch 3", fields={"read": 2, "applied": 2})
    assert event_text(batch) == "batch 3: 2 read = 2 applied, 0 published"
    assert freshness_histogram({"read": 2, "applied": 2}) == ""


def test_ages_above_the_last_bound_are_shown_as_such() -> None:
    assert freshness_text(count_ages([0.09, 800])) == "freshness p50 under 0.1 s, p99 over 10 min 30 s"
    assert freshness_text(count_ages([700, 800])) == "freshness over 10 min 30 s"
    assert freshness_text(count_ages([0.5, 375_389_347])) == "freshness p50 0.4 to 0.5 s, p99 over 10 min 30 s"
    assert (
        freshness_text(count_ages([90, 95])) == "freshness p50 1 min 20 s to 1 min 40 s, p99 1 min 20 s to 1 min 40 s"
    )


def test_documents_of_records_that_are_years_old_say_so() -> None:
    assert freshness_text(count_ages([375_389_347, 375_389_000])) == "freshness of old records: 11 years on average"
