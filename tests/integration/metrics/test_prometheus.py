"""A real Prometheus reads the metrics of the driver's port, answers every query of the dashboard, and takes the alert rules."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from infra.metric_files import RULES, alert_name, queries
from processor.job.metrics.metrics import ALARMS, METRICS, Alarm, Metric
from processor.job.metrics.status_page import RunState, prometheus_text, status_server
from tests.support.required import required_program
from tests.unit.job.metrics.run_report import run_report

pytestmark = pytest.mark.slow
REPORT = run_report()
FILE = Path(__file__).parents[3] / RULES
TARGET = 'job="statestore", instance="driver:9464"'


@pytest.fixture(scope="module")
def program() -> str:
    return required_program("prometheus", "`apt-get install prometheus`")


@pytest.fixture(scope="module")
def api(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API of a Prometheus that has read the metrics of a busy job some times."""
    folder = tmp_path_factory.mktemp("prometheus")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with status_server("127.0.0.1", 0, lambda: RunState(REPORT, ())) as target:
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "main", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
        }
        (folder / "prometheus.yaml").write_text(json.dumps(config))
        flags = {"config.file": folder / "prometheus.yaml", "storage.tsdb.path": folder / "data"}
        started = [f"--{name}={value}" for name, value in flags.items()]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen([program, *started, f"--web.listen-address=127.0.0.1:{port}"], stderr=log)
        try:
            address = f"http://127.0.0.1:{port}/api/v1"
            _wait_for_scrapes(address, folder / "log")
            yield address
        finally:
            process.kill()
            process.wait()


def _wait_for_scrapes(api: str, log: Path) -> None:
    """Waits until Prometheus has three samples, so that it can tell rates."""
    for _ in range(120):
        try:
            found = ask(api, "count_over_time(statestore_job_info[1m])")
        except (urllib.error.URLError, ConnectionError):
            found = []
        if found and float(found[0]["value"][1]) >= 3:
            return
        time.sleep(0.5)
    pytest.fail(f"Prometheus has no samples after a minute: {log.read_text()}")


def ask(api: str, query: str) -> list[Any]:
    """The answer to a query now; it needs no value, but no error."""
    with urllib.request.urlopen(f"{api}/query?{urlencode({'query': query})}", timeout=300) as answer:
        found = json.load(answer)
    assert found["status"] == "success"
    return list(found["data"]["result"])


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_prometheus_answers_the_queries_of_every_panel(api: str, metric: Metric) -> None:
    for query, _ in queries(metric):
        series = ask(api, query.replace("$__rate_interval", "1m").replace("$job", "main"))
        assert series
        labels = {label for one in series for label in one["metric"]}
        assert labels == {"job", *metric.labels}


def test_prometheus_knows_the_type_and_the_meaning_of_every_metric(api: str) -> None:
    with urllib.request.urlopen(f"{api}/metadata", timeout=300) as answer:
        known = json.load(answer)["data"]
    for metric in METRICS:
        (found,) = known[metric.name]
        assert (found["type"], found["help"]) == (metric.kind, metric.meaning)


def test_promtool_finds_no_fault_in_the_text() -> None:
    promtool = required_program("promtool", "`apt-get install prometheus`")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=prometheus_text(REPORT), capture_output=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_promtool_finds_no_fault_in_the_alert_rules() -> None:
    promtool = required_program("promtool", "`apt-get install prometheus`")
    done = subprocess.run(
        [promtool, "check", "rules", str(FILE)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alarm", ALARMS, ids=lambda alarm: alarm.name)
def test_an_alert_begins_above_its_limit_and_ends_with_the_cause(alarm: Alarm, tmp_path: Path) -> None:
    """Minutes 0 to 9 are quiet, then the value is above the limit for ten minutes. A labelled counter has no series before its
    first count, and a lasting one always has a series."""
    labels = ", ".join([TARGET, *(f'{label}="x"' for label in alarm.metric.labels)])
    above = alarm.limit + 1
    if alarm.metric.kind == "counter":
        series, ends = f"{'5+0x9' if alarm.lasting else '_x10'} {5 * alarm.lasting + above}+0x20", 25
    else:
        series, ends = f"{alarm.limit}+0x9 {above}+0x9 {alarm.limit}+0x20", 22
    up = {"series": f"up{{{TARGET}}}", "values": "1+0x40"}
    given = [{"series": f"{alarm.metric.name}{{{labels}}}", "values": series}, up]
    _expect(tmp_path, alarm, given, {9: False, 16 if alarm.metric.kind == "gauge" else 11: True, ends: False})


@pytest.mark.parametrize("up", ["1+0x9 0+0x9", "1+0x9 _x20"], ids=["no answer", "no target"])
def test_an_alert_says_that_a_job_writes_no_metrics(up: str, tmp_path: Path) -> None:
    (alarm,) = [one for one in ALARMS if one.silent]
    _expect(tmp_path, alarm, [{"series": f"up{{{TARGET}}}", "values": up}], {9: False, 22: True})


UP, AWAY = 4, 3
"""A recorded crash loop, in samples of 10 s: each run serves its metrics for 40 s, and systemd waits 30 s."""


def _of_runs(values: list[float], up: int = UP, away: int = AWAY) -> str:
    """The samples of a metric that has one value in each run."""
    return " ".join(f"{value}+0x{up - 1} stale _x{away - 1}" for value in values)


RUNS = range(10)


@pytest.mark.parametrize(
    ("name", "values", "fires"),
    [
        ("failed_runs", f"0+0x11 {_of_runs([*RUNS])} 0+0x90", {5: False, 6: True, 13: True, 14: False}),
        ("restarts", f"7+0x11 {_of_runs([7 + n for n in RUNS])} 17+0x90", {8: False, 10: True, 13: True, 25: False}),
        ("stalled", f"0+0x11 {_of_runs([70 * n for n in RUNS])} 0+0x90", {12: False, 13: True, 14: False}),
    ],
)
def test_a_crash_loop_fires_although_each_run_answers_for_40_s_only(
    name: str, values: str, fires: dict[int, bool], tmp_path: Path
) -> None:
    """Before the loop the job was well for 2 minutes. The loop lasts 11 min 40 s, then a run works on."""
    (alarm,) = [one for one in ALARMS if one.name == name]
    up = f"1+0x11 {' '.join(f'1+0x{UP - 1} 0+0x{AWAY - 1}' for _ in RUNS)} 1+0x90"
    given = [
        {"series": f"{alarm.metric.name}{{{TARGET}}}", "values": values},
        {"series": f"up{{{TARGET}}}", "values": up},
    ]
    _expect(tmp_path, alarm, given, fires, interval="10s")


@pytest.mark.parametrize("name", ["restarts", "stalled"])
def test_two_planned_restarts_are_no_crash_loop(name: str, tmp_path: Path) -> None:
    (alarm,) = [one for one in ALARMS if one.name == name]
    given = [
        {"series": f"{alarm.metric.name}{{{TARGET}}}", "values": f"{_of_runs([12, 12, 12], up=30)} 12+0x90"},
        {"series": f"up{{{TARGET}}}", "values": "1+0x200"},
    ]
    _expect(tmp_path, alarm, given, dict.fromkeys(range(1, 25, 3), False), interval="10s")


def _expect(
    folder: Path, alarm: Alarm, given: list[dict[str, str]], fires: dict[int, bool], interval: str = "1m"
) -> None:
    """Fails unless the alert of the alarm is there at these minutes only."""
    promtool = required_program("promtool", "`apt-get install prometheus`")
    query = f'count(ALERTS{{alertname="{alert_name(alarm)}", alertstate="firing"}}) or vector(0)'
    asked = [
        {"expr": query, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": int(fires_then)}]}
        for minute, fires_then in fires.items()
    ]
    test = {"interval": interval, "input_series": given, "promql_expr_test": asked}
    file = folder / "rules_test.yaml"
    file.write_text(json.dumps({"rule_files": [str(FILE)], "evaluation_interval": interval, "tests": [test]}))
    done = subprocess.run(
        [promtool, "test", "rules", str(file)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
