"""Writes the files that are made from the metrics: `python -m infra.metric_files`, from the root of a checkout.

These are the tables of docs/metrics.md, the dashboard for Grafana, and the alarms: as a list for the Terraform module of
CloudWatch, and as rules for Prometheus. The first row of the dashboard says whether all is well, with the limits of the alarms.
Work and costs come below it.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from processor.job.metrics.metrics import ALARMS, LANDING_METRICS, METRICS, Alarm, Metric
from processor.tools.inspect.prices import DEFAULT, MONTH_SECONDS

PAGE, DASHBOARD = Path("docs/metrics.md"), Path("infra/grafana/dashboards/statestore.json")
CLOUDWATCH, RULES = Path("infra/modules/alarms/job_alarms.json"), Path("infra/prometheus/alerts.yaml")
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
HEIGHT, SMALL, IN_A_ROW = 7, 4, 3
UNITS = {"seconds": "s", "percent": "percent", "flag": "none", "version": "none"}
"""Grafana's name of a unit; `short` for all counts."""
CHOSEN = '{job=~"$job"}'
SOURCE = {"type": "prometheus", "uid": "prometheus"}
WINDOW = "5m"
LASTING = "10m"
"""The value of a lasting alarm counts for this long: a start of a job, and the wait before it, take minutes."""
JOBS = 'job=~"statestore.*"'
"""Prometheus knows a silent job only by its target: the name of its scrape job begins with statestore."""


def generated(root: Path) -> dict[Path, str]:
    """Each file, and the text that it must have."""
    page = root / PAGE
    return {
        page: metrics_page(page.read_text(encoding="utf-8")),
        root / DASHBOARD: grafana_dashboard(),
        root / CLOUDWATCH: cloudwatch_alarms(),
        root / RULES: prometheus_rules(),
    }


def metrics_page(page: str) -> str:
    """The page with the tables of the present list between its two marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{_tables()}\n{END}{rest.partition(END)[2]}"


def _tables() -> str:
    lines = []
    for group, metrics in groupby((*METRICS, *LANDING_METRICS), lambda metric: metric.group):
        lines += [f"### {group}", "", "| metric | kind | unit | labels | meaning |", "|---|---|---|---|---|"]
        lines += [
            f"| `{m.name}` | {m.kind} | {m.unit} | {', '.join(f'`{label}`' for label in m.labels)} | {m.meaning} |"
            for m in metrics
        ]
        lines.append("")
    return "\n".join(lines)


def grafana_dashboard() -> str:
    """The dashboard as JSON: the first row, then a row for each group of work and of costs, with a panel for each metric. Its
    queries are PromQL. A counter shows its rate, a gauge its value, a histogram its median and its 99th percentile. The variable
    `job` chooses the jobs, by the label that Prometheus gives each of its targets."""
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
        "panels": list(_numbered(_rows())),
    }
    return json.dumps(dashboard, indent=1) + "\n"


class Stat(NamedTuple):
    """A panel with one value. `limits`: from where the value is amber, and from where it is red; None: never. `none`: the text of
    a panel without a value."""

    title: str
    meaning: str
    query: str
    unit: str
    limits: tuple[float | None, float | None]
    none: str = "no value"
    below: bool = False
    """The value is bad below the limit."""


LIMITS: Final = {alarm.metric.name: float(alarm.limit) for alarm in ALARMS}


def _name(name: str) -> str:
    """The full name of a metric of the list."""
    return next(metric.name for metric in METRICS if metric.name == f"statestore_{name}")


def _first() -> tuple[Stat, ...]:
    """The panels of the first row: whether all is well."""
    restarts, lag, oldest = (_name(name) for name in ("restarts_total", "lag_seconds", "oldest_unpublished_seconds"))
    letters, failure = _name("dead_letters_waiting"), _name("last_failure_seconds")
    waiting = f"sum(max by (topic) ({letters}{CHOSEN}))"
    rise = f"max_over_time({restarts}{CHOSEN}[1h]) - min_over_time({restarts}{CHOSEN}[1h])"
    return (
        Stat(
            "up", "1 while Prometheus reaches every chosen job.", f"min(up{CHOSEN})", "none", (None, 1), "no job", True
        ),
        Stat("restarts in 1 h", "Runs that failed or died.", f"max({rise})", "none", (1, LIMITS[restarts] + 1), "none"),
        Stat("lag", "The oldest unread record of all topics.", f"max({lag}{CHOSEN})", "s", (60, LIMITS[lag])),
        Stat(
            "oldest change",
            "The oldest change without its documents.",
            f"max({oldest}{CHOSEN})",
            "s",
            (60, LIMITS[oldest]),
        ),
        Stat("letters that wait", "Dead letters that wait for a person.", waiting, "none", (1, None)),
        Stat("last failure", "Since a run failed.", f"min({failure}{CHOSEN})", "s", (None, None), "none"),
    )


COSTS: Final = "Requests to the table"
"""The group of the metrics that cost money."""


def _rows() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The rows: a title and its panels."""
    yield "Is it well", [_stat(one) for one in _first()]
    groups = [(group, list(metrics)) for group, metrics in groupby(METRICS, lambda metric: metric.group)]
    for group, metrics in sorted(groups, key=lambda pair: pair[0] == COSTS):
        panels = [_panel(metric) for metric in metrics]
        yield f"{'Cost' if group == COSTS else 'Work'}: {group}", [_month(), *panels] if group == COSTS else panels


def _numbered(rows: Iterable[tuple[str, list[dict[str, Any]]]]) -> Iterator[dict[str, Any]]:
    """The panels with their numbers and places. The panels of a row of single values are small, and in one line."""
    top, number = 0, 0
    for title, panels in rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "gridPos": {"x": 0, "y": top, "w": 24, "h": 1},
            "panels": [],
        }
        small = all(one["type"] == "stat" for one in panels)
        in_a_row, height = (len(panels), SMALL) if small else (IN_A_ROW, HEIGHT)
        width = 24 // in_a_row
        for n, panel in enumerate(panels):
            number += 1
            at = {"x": n % in_a_row * width, "y": top + 1 + n // in_a_row * height, "w": width, "h": height}
            yield {"id": number, **panel, "gridPos": at}
        top = at["y"] + height


def _stat(one: Stat) -> dict[str, Any]:
    """A panel that shows one value in the colour of its limit."""
    amber, red = one.limits
    steps: list[dict[str, str | float | None]] = [{"color": "red" if one.below else "green", "value": None}]
    if one.below:
        steps.append({"color": "green", "value": red})
    else:
        steps += [{"color": color, "value": at} for color, at in (("orange", amber), ("red", red)) if at is not None]
    defaults = {"unit": one.unit, "noValue": one.none, "thresholds": {"mode": "absolute", "steps": steps}}
    return {
        "type": "stat",
        "title": one.title,
        "description": one.meaning,
        "datasource": SOURCE,
        "options": {"colorMode": "background", "graphMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [{"refId": "A", "datasource": SOURCE, "expr": one.query, "legendFormat": one.title}],
    }


def _month() -> dict[str, Any]:
    """The dollars of a month at the present rate: on demand, in the region of the price list."""
    units = {name: f"sum(rate({_name(f'{name}_units_total')}{CHOSEN}[1h]))" for name in ("write", "read")}
    dollars = f"({units['write']} * {DEFAULT.write} + {units['read']} * {DEFAULT.read}) * {MONTH_SECONDS} / 1e6"
    meaning = f"At the rate of the last hour, on demand in {DEFAULT.region} ({DEFAULT.date}). A table in Postgres has no units."
    return _stat(Stat("$ a month", meaning, dollars, "currencyUSD", (None, None)))


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


def cloudwatch_alarms() -> str:
    """The list that infra/modules/alarms/main.tf reads, by the name of the alarm."""
    alarms = {
        alarm.name: {
            "metric": alarm.metric.name,
            "kind": alarm.metric.kind,
            "limit": alarm.limit_name,
            "silent": "breaching" if alarm.silent else "ignore" if alarm.lasting else "notBreaching",
            "meaning": alarm.meaning,
        }
        for alarm in ALARMS
    }
    return json.dumps(alarms, indent=2) + "\n"


def prometheus_rules() -> str:
    """The rules as YAML: a group of alerts."""
    lines = [
        "# Made from processor/job/metrics/metrics.py by `python -m infra.metric_files`.",
        "groups:",
        "  - name: statestore",
        "    rules:",
    ]
    for alarm in ALARMS:
        lines += [
            f"      - alert: {alert_name(alarm)}",
            f"        expr: {json.dumps(expression(alarm))}",
            f"        for: {'0s' if alarm.metric.kind == 'counter' or alarm.lasting else WINDOW}",
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
    `increase` does not see: so the count itself serves while the series is new. A lasting counter is never new and never falls,
    so its rise is exact, where `increase` extrapolates."""
    name = alarm.metric.name
    if alarm.lasting:
        rise = f"max_over_time({name}[{LASTING}]) - min_over_time({name}[{LASTING}])"
        value = rise if alarm.metric.kind == "counter" else f"last_over_time({name}[{LASTING}])"
        return f"max by (job, instance) ({value}) > {alarm.limit}"
    if alarm.metric.kind == "counter":
        counted = f"({name} unless {name} offset {WINDOW}) or increase({name}[{WINDOW}])"
        return f"sum by (job, instance) ({counted}) > {alarm.limit}"
    above = f"max by (job, instance) ({name}) > {alarm.limit}"
    return f"({above}) or (up{{{JOBS}}} == 0) or absent(up{{{JOBS}}})" if alarm.silent else above


def _description(alarm: Alarm) -> str:
    window = LASTING if alarm.lasting else WINDOW
    over = f"in {window}" if alarm.metric.kind == "counter" or alarm.lasting else f"for {window}"
    silent = ", or the job writes no metrics," if alarm.silent else ""
    return f"{{{{ $labels.job }}}} at {{{{ $labels.instance }}}}: {alarm.metric.name} is above {alarm.limit}{silent} {over}."


if __name__ == "__main__":
    for path, text in generated(Path()).items():
        path.write_text(text, encoding="utf-8")
