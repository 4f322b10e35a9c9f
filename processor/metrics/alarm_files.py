"""The alarms as a list for the Terraform module of CloudWatch, and as rules for Prometheus. Made from alarm_list.py."""

import json

from processor.metrics.alarm_list import ALARMS, Alarm

WINDOW = "5m"
JOBS = 'job=~"statestore.*"'
"""Prometheus knows a silent job only by its target: the name of its scrape job begins with statestore."""


def cloudwatch_alarms() -> str:
    """The list that infra/modules/alarms/main.tf reads, by the name of the alarm."""
    alarms = {
        alarm.name: {
            "metric": alarm.metric.name,
            "kind": alarm.metric.kind,
            "limit": alarm.limit_name,
            "silent": "breaching" if alarm.silent else "notBreaching",
            "meaning": alarm.meaning,
        }
        for alarm in ALARMS
    }
    return json.dumps(alarms, indent=2) + "\n"


def prometheus_rules() -> str:
    """The rules as YAML: a group of alerts."""
    lines = [
        "# Made from processor/metrics/alarm_list.py by `python -m processor.metrics.generate_files`.",
        "groups:",
        "  - name: statestore",
        "    rules:",
    ]
    for alarm in ALARMS:
        lines += [
            f"      - alert: {alert_name(alarm)}",
            f"        expr: {json.dumps(expression(alarm))}",
            f"        for: {'0s' if alarm.metric.kind == 'counter' else WINDOW}",
            f"        labels: {{severity: {alarm.severity}}}",
            "        annotations:",
            f"          summary: {json.dumps(alarm.meaning)}",
            f"          description: {json.dumps(_description(alarm))}",
        ]
    return "\n".join(lines) + "\n"


def alert_name(alarm: Alarm) -> str:
    """The name of the alert of an alarm: StatestoreStoppedProduct."""
    return "Statestore" + "".join(word.capitalize() for word in alarm.name.split("_"))


def expression(alarm: Alarm) -> str:
    """The expression that has a value while the alarm lasts. A labelled series of a counter begins with its first count, which
    `increase` does not see: so the count itself serves while the series is new."""
    name = alarm.metric.name
    if alarm.metric.kind == "counter":
        counted = f"({name} unless {name} offset {WINDOW}) or increase({name}[{WINDOW}])"
        return f"sum by (job, instance) ({counted}) > {alarm.limit}"
    above = f"max by (job, instance) ({name}) > {alarm.limit}"
    return f"({above}) or (up{{{JOBS}}} == 0) or absent(up{{{JOBS}}})" if alarm.silent else above


def _description(alarm: Alarm) -> str:
    over = f"in {WINDOW}" if alarm.metric.kind == "counter" else f"for {WINDOW}"
    silent = ", or the job writes no metrics," if alarm.silent else ""
    return f"{{{{ $labels.job }}}} at {{{{ $labels.instance }}}}: {alarm.metric.name} is above {alarm.limit}{silent} {over}."
