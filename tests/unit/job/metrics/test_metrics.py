"""Every metric of the list gets its value from what a run did."""

import re

import pytest

from processor.engine.rounds.round_counts import SURE_LETTERS
from processor.job.metrics.metrics import METRICS, Histogram, read_metrics
from processor.values.reasons import REASONS
from tests.unit.job.metrics.run_report import run_report

REPORT = run_report()
VALUES = read_metrics(REPORT)
AT_REST = {
    *("statestore_open_changes", "statestore_settle_due", "statestore_fan_outs", "statestore_backlog_documents"),
    *("statestore_walks", "statestore_paused", "statestore_unfit_documents", "statestore_failed_runs"),
    *("statestore_stopped_products", "statestore_stopped_walks", "statestore_refused_version"),
}
"""Gauges that are 0 once a run has done its work."""


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_busy_run_sets_every_metric(metric) -> None:  # type: ignore[no-untyped-def]
    found = VALUES[metric.name]
    total = sum(found.counts) if isinstance(found, Histogram) else sum(found.values())
    assert (total == 0) == (metric.name in AT_REST)
    if not isinstance(found, Histogram):
        assert {len(labels) for labels in found} == {len(metric.labels)}


@pytest.mark.parametrize(
    ("field", "value", "metric"),
    [
        ("open_changes", 7, "open_changes"),
        ("settle_due", 2, "settle_due"),
        ("fan_outs", 3, "fan_outs"),
        ("backlog", 9, "backlog_documents"),
        ("walks", ["fill star"], "walks"),
        ("doing", "paused", "paused"),
        ("stopped_products", {"profile": "too large"}, "stopped_products"),
        ("unfit_documents", {"profile": 1}, "unfit_documents"),
        ("stopped_walks", {"fill star": "refused"}, "stopped_walks"),
        ("refused_version", 4, "refused_version"),
    ],
)
def test_a_gauge_shows_what_the_report_says(field: str, value: object, metric: str) -> None:
    found = read_metrics(REPORT | {field: value})[f"statestore_{metric}"]
    assert found == {(): value if isinstance(value, int) else 1}


def test_the_events_of_all_outcomes_are_the_records_that_the_job_read() -> None:
    events = VALUES["statestore_events_total"]
    assert not isinstance(events, Histogram)
    assert sum(events.values()) == REPORT["counts"]["read"]
    assert {topic for topic, _ in events} == {"nothing", "star", "user"}
    assert (events["user", "dead_letter"], events["nothing", "ignored"]) == (1, 1)
    assert VALUES["statestore_dead_letters_total"] == {(code,): float(code == "column-type") for code in REASONS}


def test_records_that_changed_no_row_count_by_topic_and_reason() -> None:
    assert VALUES["statestore_ignored_total"] == {("nothing", "unknown topic"): 1}


def test_the_work_for_a_product_counts_in_its_units() -> None:
    counts = {"bytes of badge": 652, "render us of badge": 7_000_000}
    counts |= {"ledger writes/1000 of badge": 20_000, "reads/1000 of badge": 1_500}
    found = read_metrics(REPORT | {"counts": counts})
    names = ("message_bytes_total", "render_seconds_total", "ledger_writes_total", "document_reads_total")
    assert [found[f"statestore_{name}"] for name in names] == [{("badge",): n} for n in (652, 7.0, 20.0, 1.5)]


def test_the_letters_of_all_groups_of_a_topic_wait() -> None:
    groups = [{"topic": "user", "letters": 60}, {"topic": "user", "letters": 8}]
    waiting = read_metrics(REPORT | {"letters_waiting": groups})["statestore_dead_letters_waiting"]
    assert waiting == {("user",): 68, ("star",): 0}
    assert read_metrics(REPORT | {"letters_waiting": None})["statestore_dead_letters_waiting"] == {}


def test_few_dead_letters_have_no_share() -> None:
    few, more = ([{"topic": "user", "read": 20, "dead": dead}] for dead in (SURE_LETTERS, SURE_LETTERS + 1))
    shares = [read_metrics(REPORT | {"rejects": one})["statestore_dead_letter_percent"] for one in (few, more)]
    assert shares == [{("user",): 0.0, ("star",): 0.0}, {("user",): 55.0, ("star",): 0.0}]


def test_units_count_once_as_read_or_as_written() -> None:
    units = [VALUES[f"statestore_{kind}_units_total"] for kind in ("read", "write")]
    assert not any(isinstance(one, Histogram) for one in units)
    names = [name for one in units for (name,) in one]  # type: ignore[misc]
    assert sorted(names) == sorted({name for (name,) in VALUES["statestore_requests_total"]})  # type: ignore[misc]


def test_the_wait_of_an_unread_record_that_the_broker_does_not_show_has_no_value() -> None:
    lags = {"a": {"records": 5, "seconds": None}, "b": {"records": 0, "seconds": 0.0}}
    found = read_metrics(REPORT | {"topics": lags})
    assert found["statestore_lag_records"] == {("a",): 5, ("b",): 0}
    assert found["statestore_lag_seconds"] == {("b",): 0.0}


def test_names_and_units_follow_prometheus() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"statestore_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert (metric.unit == "seconds") == ("seconds" in metric.name)
        assert metric.meaning.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)
