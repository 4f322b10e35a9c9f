"""The dashboard for Grafana, made from the list: a row for each group, and in it a panel for each metric. Its queries are PromQL.

A counter shows its rate, a gauge its value, a histogram its median and its 99th percentile. The variable `job` chooses the jobs,
by the label that Prometheus gives each of its targets.
"""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from processor.metrics.metrics import METRICS, Metric

WIDTH, HEIGHT, IN_A_ROW = 8, 7, 3
UNITS = {"seconds": "s", "flag": "none", "version": "none"}
"""Grafana's name of a unit; `short` for all counts."""
CHOSEN = '{job=~"$job"}'
SOURCE = {"type": "prometheus", "uid": "prometheus"}


def grafana_dashboard() -> str:
    """The dashboard as JSON."""
    variable = {
        "name": "job",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": "label_values(statestore_job_info, job)", "refId": "job"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }
    dashboard = {
        "uid": "statestore",
        "title": "statestore",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": list(_panels()),
    }
    return json.dumps(dashboard, indent=1) + "\n"


def _panels() -> Iterator[dict[str, Any]]:
    top, number = 0, 0
    for group, metrics in groupby(METRICS, lambda metric: metric.group):
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": group,
            "gridPos": {"x": 0, "y": top, "w": 24, "h": 1},
            "panels": [],
        }
        for n, metric in enumerate(metrics):
            number += 1
            at = {"x": n % IN_A_ROW * WIDTH, "y": top + 1 + n // IN_A_ROW * HEIGHT, "w": WIDTH, "h": HEIGHT}
            yield {"id": number, **_panel(metric), "gridPos": at}
        top = at["y"] + HEIGHT


def _panel(metric: Metric) -> dict[str, Any]:
    targets = [
        {"refId": "ABC"[n], "datasource": SOURCE, "expr": query, "legendFormat": legend}
        for n, (query, legend) in enumerate(queries(metric))
    ]
    rate = "/s" if metric.kind == "counter" else ""
    return {
        "type": "timeseries",
        "title": metric.name.removeprefix("statestore_").removesuffix("_total").replace("_", " ") + rate,
        "description": metric.meaning,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": UNITS.get(metric.unit, "short"), "min": 0}, "overrides": []},
        "targets": targets,
    }


def queries(metric: Metric) -> list[tuple[str, str]]:
    """The queries of a metric's panel, each with its legend."""
    by = ", ".join(("job", *metric.labels))
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels or ("job",))
    match metric.kind:
        case "counter":
            return [(f"sum by ({by}) (rate({metric.name}{CHOSEN}[$__rate_interval]))", legend)]
        case "gauge":
            return [(f"max by ({by}) ({metric.name}{CHOSEN})", legend)]
        case "histogram":
            buckets = f"sum by (job, le) (rate({metric.name}_bucket{CHOSEN}[$__rate_interval]))"
            return [(f"histogram_quantile({share}, {buckets})", f"p{100 * share:g} {legend}") for share in (0.5, 0.99)]
