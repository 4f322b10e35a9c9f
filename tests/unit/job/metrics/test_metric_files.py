"""The generated files are those of the table, what names a metric names one of it, and an alarm serves a person who must act."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from infra.metric_files import CLOUDWATCH, DASHBOARD, PAGE, RULES, generated
from processor.job.metrics.metrics import ALARMS, METRICS, Metric

ROOT = Path(__file__).parents[4]
BY_NAME = {metric.name: metric for metric in METRICS}
SERIES = {**BY_NAME, **{f"{m.name}_bucket": m for m in METRICS if m.kind == "histogram"}}
"""The names of the list as Prometheus stores them, and the metric of each."""
OF_PROMETHEUS = {"job"}
"""Labels that Prometheus adds to each target."""


def test_the_generated_files_are_those_of_the_lists() -> None:
    for path, text in generated(ROOT).items():
        assert path.read_text(encoding="utf-8") == text, "run `python -m infra.metric_files`"


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
    assert metrics or query.startswith("min(up{")
    for metric in metrics:
        known = {*metric.labels, *OF_PROMETHEUS, *({"le"} if metric.kind == "histogram" else ())}
        assert labels <= known


def test_the_page_says_how_many_metrics_cloudwatch_gets() -> None:
    assert f"at most {len(METRICS) - 1} metrics there" in (ROOT / PAGE).read_text(encoding="utf-8")


def test_every_metric_has_a_panel() -> None:
    shown = [metric.name for query in dashboard_queries() for metric in used(query)[0]]
    assert set(shown) == set(BY_NAME)


def test_the_first_row_of_the_dashboard_says_whether_all_is_well_with_the_limits_of_the_alarms() -> None:
    panels = json.loads((ROOT / DASHBOARD).read_text(encoding="utf-8"))["panels"]
    rows = [panel["title"] for panel in panels if panel["type"] == "row"]
    assert rows[0] == "Is it well"
    assert [title.partition(":")[0] for title in rows[1:]] == ["Work"] * (len(rows) - 2) + ["Cost"]
    first = panels[1 : panels.index(next(one for one in panels if one["title"] == rows[1]))]
    assert {panel["type"] for panel in first} == {"stat"}
    assert len({panel["gridPos"]["y"] for panel in first}) == 1
    red = {
        panel["title"]: [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]
        for panel in first
    }
    limits = {alarm.name: alarm.limit for alarm in ALARMS}
    assert red == {
        "up": [None, 1],
        "restarts in 1 h": [None, 1, limits["restarts"] + 1],
        "lag": [None, 60, limits["lag"]],
        "oldest change": [None, 60, limits["unpublished"]],
        "letters that wait": [None, 1],
        "last failure": [None],
    }


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


MODULE = ROOT / "infra" / "modules" / "alarms"
BY_ALERT = {f"Statestore{alarm.name.title().replace('_', '')}": alarm for alarm in ALARMS}


def rules() -> list[dict[str, Any]]:
    """The rules of the file, as Prometheus reads them."""
    document = YAML(typ="safe").load(ROOT / RULES)
    assert list(document) == ["groups"]
    (group,) = document["groups"]
    assert (set(group), group["name"]) == ({"name", "rules"}, "statestore")
    return list(group["rules"])


def test_each_alarm_is_a_rule_of_prometheus_and_an_alarm_of_cloudwatch() -> None:
    assert [rule["alert"] for rule in rules()] == list(BY_ALERT)
    assert list(json.loads((ROOT / CLOUDWATCH).read_text())) == [alarm.name for alarm in ALARMS]


def test_a_rule_has_the_members_that_prometheus_knows_and_says_what_to_do() -> None:
    for rule in rules():
        alarm = BY_ALERT[rule["alert"]]
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[sm]", rule["for"])
        assert rule["labels"] == {"severity": alarm.severity}
        assert rule["annotations"]["summary"] == alarm.meaning
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["description"])) == {"job", "instance"}


def test_a_rule_asks_for_the_metric_and_the_limit_of_its_alarm_only() -> None:
    for rule in rules():
        alarm = BY_ALERT[rule["alert"]]
        assert set(re.findall(r"\bstatestore_\w+", rule["expr"])) == {alarm.metric.name}
        assert f" > {alarm.limit}" in rule["expr"]
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_only_a_job_that_writes_nothing_alarms_without_a_value() -> None:
    assert [alarm.name for alarm in ALARMS if alarm.silent] == ["lease"]
    assert [rule["alert"] for rule in rules() if "absent(up" in rule["expr"]] == ["StatestoreLease"]


def test_every_metric_for_which_a_person_must_act_has_an_alarm() -> None:
    urgent = {metric.name for metric in METRICS if "a person must act" in metric.meaning}
    assert len(urgent) >= 3
    assert urgent <= {alarm.metric.name for alarm in ALARMS if alarm.severity == "critical"}


def test_terraform_has_the_limits_of_the_list() -> None:
    text = (MODULE / "variables.tf").read_text(encoding="utf-8")
    limits = {name: int(limit) for name, limit in re.findall(r"(\w+)\s*= optional\(number, (\d+)\)", text)}
    assert limits == {alarm.limit_name: alarm.limit for alarm in ALARMS if alarm.limit_name}
    assert [alarm.name for alarm in ALARMS if not alarm.limit_name and alarm.limit] == []


def test_terraform_knows_the_kind_of_each_alarm() -> None:
    """A histogram has no single value, so no alarm is on one."""
    text = (MODULE / "main.tf").read_text(encoding="utf-8")
    kinds = set(re.findall(r"^    (\w+)\s*= \{ statistic", text, re.MULTILINE))
    assert {alarm.metric.kind for alarm in ALARMS} == kinds


def test_the_names_of_alarms_are_unique() -> None:
    names = [alarm.name for alarm in ALARMS]
    assert len(names) == len(set(names))
