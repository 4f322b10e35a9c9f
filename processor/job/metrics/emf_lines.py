"""The metrics as lines in CloudWatch's embedded metric format (EMF): the log of the job carries them, and CloudWatch reads them.

Source: the page "Specification: Embedded metric format" of AWS. A line has at most 100 metrics, and a metric at most 100 values.

AWS charges each metric for each combination of its dimensions. So the only dimension is the job, and the values of a metric with
labels become one: their sum, of ages the greatest. A counter is the count since the line before. Of a histogram the line has up
to 100 values, at equal steps through its quantiles, so CloudWatch's percentiles hold and its sample count does not.
"""

import json
from collections.abc import Mapping
from typing import Any

from processor.job.metrics.metrics import METRICS, Histogram, Metric, Values, read_metrics

MOST_METRICS = MOST_VALUES = 100


class EmfWriter:
    """Makes the lines of one run. `namespace`: that of CloudWatch."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._before: Mapping[str, Values | Histogram] = {}

    def line(self, report: Mapping[str, Any]) -> str:
        """The line of a report."""
        values = read_metrics(report)
        found = {
            m: _value(m, values[m.name], self._before.get(m.name)) for m in METRICS if m.name != "statestore_job_info"
        }
        self._before = values
        shown = {metric: value for metric, value in found.items() if value is not None}
        directive = {
            "Namespace": self._namespace,
            "Dimensions": [["job"]],
            "Metrics": [{"Name": m.name, "Unit": "Seconds" if m.unit == "seconds" else "Count"} for m in shown],
        }
        head = {
            "_aws": {"Timestamp": round(1000 * report["at"]), "CloudWatchMetrics": [directive]},
            "job": report["job"],
        }
        return json.dumps({**head, **{metric.name: value for metric, value in shown.items()}})


def _value(metric: Metric, now: Values | Histogram, before: Values | Histogram | None) -> float | list[float] | None:
    """The value of a metric in a line; None where there is none."""
    if isinstance(now, Histogram):
        counts = before.counts if isinstance(before, Histogram) else (0,) * len(now.counts)
        return _quantiles(now._replace(counts=tuple(a - b for a, b in zip(now.counts, counts, strict=True)))) or None
    if not now:
        return None
    if metric.kind == "counter":
        earlier = before if before is not None and not isinstance(before, Histogram) else {}
        return round(sum(now.values()) - sum(earlier.values()), 3)
    return round((max if metric.unit == "seconds" else sum)(now.values()), 3)


def _quantiles(histogram: Histogram) -> list[float]:
    """Up to 100 values of a histogram: the upper bounds of the buckets of its quantiles."""
    ends, bounds = histogram.cumulative, (*histogram.bounds, histogram.bounds[-1])
    shown = min(ends[-1], MOST_VALUES)
    ranks = [(n + 0.5) / shown * ends[-1] for n in range(shown)]
    return [next(bound for bound, end in zip(bounds, ends, strict=True) if end >= rank) for rank in ranks]
