"""The alarms of CloudWatch and the rules of Prometheus are those of one list, and each serves a person who must act."""

import json
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from processor.metrics.generate_files import CLOUDWATCH, RULES
from processor.metrics.metrics import ALARMS, METRICS

ROOT = Path(__file__).parents[3]
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
