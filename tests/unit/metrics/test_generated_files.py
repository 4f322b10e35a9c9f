"""The generated files are those of the lists, and all that names a metric names one of the list."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processor.metrics.generate_files import DASHBOARD, PAGE, generated
from processor.metrics.metrics import METRICS, Metric

ROOT = Path(__file__).parents[3]
BY_NAME = {metric.name: metric for metric in METRICS}
SERIES = {**BY_NAME, **{f"{m.name}_bucket": m for m in METRICS if m.kind == "histogram"}}
"""The names of the list as Prometheus stores them, and the metric of each."""
OF_PROMETHEUS = {"job"}
"""Labels that Prometheus adds to each target."""


def test_the_generated_files_are_those_of_the_lists() -> None:
    for path, text in generated(ROOT).items():
        assert path.read_text(encoding="utf-8") == text, "run `python -m processor.metrics.generate_files`"


def dashboard_queries() -> Iterator[str]:
    dashboard: dict[str, Any] = json.loads((ROOT / DASHBOARD).read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from re.findall(r"label_values\((\w+, \w+)\)", json.dumps(dashboard["templating"]))


def used(query: str) -> tuple[list[Metric], set[str]]:
    """The metrics of a query, and its labels: in selectors, after `by`, and of `label_values`."""
    names = re.findall(r"\bstatestore_\w+", query)
    selected = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", query)
    grouped = re.findall(r"\bby \(([^)]*)\)", query) + re.findall(r"^\w+, (\w+)$", query)
    return [SERIES[name] for name in names], {*selected, *(label for one in grouped for label in one.split(", "))}


@pytest.mark.parametrize("query", list(dashboard_queries()))
def test_every_query_of_the_dashboard_uses_metrics_and_labels_of_the_list(query: str) -> None:
    metrics, labels = used(query)
    assert metrics
    for metric in metrics:
        known = {*metric.labels, *OF_PROMETHEUS, *({"le"} if metric.kind == "histogram" else ())}
        assert labels <= known


def test_the_page_says_how_many_metrics_cloudwatch_gets() -> None:
    assert f"at most {len(METRICS) - 1} metrics there" in (ROOT / PAGE).read_text(encoding="utf-8")


def test_every_metric_has_a_panel() -> None:
    shown = [metric.name for query in dashboard_queries() for metric in used(query)[0]]
    assert set(shown) == set(BY_NAME)


def test_no_panel_covers_another() -> None:
    panels = json.loads((ROOT / DASHBOARD).read_text(encoding="utf-8"))["panels"]
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)
