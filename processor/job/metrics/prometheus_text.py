"""Metrics in the text form of Prometheus. The doorway to prometheus-client."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from processor.job.metrics.metrics import METRICS, Histogram, Metric, Values, read_metrics

CONTENT_TYPE = CONTENT_TYPE_LATEST


def prometheus_text(report: Mapping[str, Any]) -> bytes:
    """All metrics of a job's report."""
    return metrics_text(METRICS, read_metrics(report))


def metrics_text(metrics: Sequence[Metric], values: Mapping[str, Values | Histogram]) -> bytes:
    """The metrics with their values, by name."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Values([_family(metric, values[metric.name]) for metric in metrics]))
    return generate_latest(registry)


class _Values(Collector):
    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Family]:
        return iter(self._families)


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
