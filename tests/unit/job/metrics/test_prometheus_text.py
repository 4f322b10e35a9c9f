"""The text for Prometheus, read by the parser of prometheus-client."""

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from processor.job.metrics.metrics import METRICS
from processor.job.metrics.status_page import prometheus_text
from tests.unit.job.metrics.run_report import run_report


@pytest.fixture(scope="module")
def families() -> dict[str, Any]:
    """The families in the text, by their names in the list."""
    text = prometheus_text(run_report()).decode()
    found = {family.name: family for family in text_string_to_metric_families(text)}
    return {metric.name: found.pop(metric.name.removesuffix("_total")) for metric in METRICS} | found


def test_the_text_has_the_metrics_of_the_list_and_no_others(families: dict[str, Any]) -> None:
    assert families.keys() == {metric.name for metric in METRICS}
    for metric in METRICS:
        family = families[metric.name]
        assert (family.type, family.documentation) == (metric.kind, metric.meaning)
        assert {label for sample in family.samples for label in sample.labels} - {"le"} == set(metric.labels)


def test_a_histogram_has_cumulative_buckets_their_count_and_their_sum(families: dict[str, Any]) -> None:
    samples = families["statestore_document_latency_seconds"].samples
    buckets = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    assert [buckets[end] for end in ("0.25", "0.315", "2", "6.3", "8", "630", "+Inf")] == [0, 1, 2, 2, 3, 3, 4]
    assert {s.name[-5:]: s.value for s in samples[-2:]} == {"count": 4, "s_sum": 1009.3}


def test_topics_with_odd_names_are_escaped() -> None:
    lags = {'a"b\\c\nd{}': {"records": 5, "seconds": 1.0}}
    text = prometheus_text(run_report() | {"topics": lags}).decode()
    (family,) = (f for f in text_string_to_metric_families(text) if f.name == "statestore_lag_records")
    assert [(sample.labels, sample.value) for sample in family.samples] == [({"topic": 'a"b\\c\nd{}'}, 5)]
