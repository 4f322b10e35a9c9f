"""The metrics in the text form of Prometheus. The doorway to prometheus-client."""

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from processor.metrics.metric_list import METRICS, Metric
from processor.metrics.read_metrics import Histogram, Values, read_metrics

CONTENT_TYPE = CONTENT_TYPE_LATEST


def prometheus_text(report: Mapping[str, Any]) -> bytes:
    """All metrics of a report."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Report(report))
    return generate_latest(registry)


class _Report(Collector):
    def __init__(self, report: Mapping[str, Any]) -> None:
        self._report = report

    def collect(self) -> Iterator[Family]:
        values = read_metrics(self._report)
        return (_family(metric, values[metric.name]) for metric in METRICS)


def _family(metric: Metric, values: Values | Histogram) -> Family:
    if isinstance(values, Histogram):
        histogram = HistogramMetricFamily(metric.name, metric.meaning)
        ends = [f"{bound:g}" for bound in values.bounds] + ["+Inf"]
        histogram.add_metric([], list(zip(ends, values.cumulative, strict=True)), values.total)
        return histogram
    made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family: CounterMetricFamily | GaugeMetricFamily = made(metric.name, metric.meaning, labels=metric.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
