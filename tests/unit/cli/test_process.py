"""The page of the driver follows the job that runs now."""

import json
import re
import socket
import time
import urllib.error
import urllib.request
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.printing.output import JobLog
from processor.cli.process import StopSignals, shown_status
from processor.environment.settings.settings import Settings
from processor.job.metrics.status import JobPhase
from registry.model import PastRuns
from tests.unit.job.metrics.run_report import run_report

Printed = pytest.CaptureFixture[str]


def quiet_report() -> dict[str, Any]:
    """Of a run without dead letters that wait."""
    return run_report() | {"letters_waiting": []}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=300) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def job(report: Any) -> Any:
    return SimpleNamespace(monitor=SimpleNamespace(report=report), phase=JobPhase.READS)


def test_without_a_port_there_is_no_page(capsys: Printed) -> None:
    with shown_status(Settings(), StopSignals(JobLog())):
        pass
    assert capsys.readouterr().err == ""


def test_the_page_shows_the_job_that_runs_now(capsys: Printed) -> None:
    signals, port = StopSignals(JobLog()), free_port()
    with shown_status(Settings(status_port=port), signals):
        assert capsys.readouterr().err.endswith(f"info    status page: http://127.0.0.1:{port}/\n")
        assert ask(port, "/status.json") == (200, "null")
        assert ask(port, "/health")[0] == 200
        for doing in ("reads its topics", "paused"):
            report = quiet_report() | {"at": time.time(), "doing": doing}
            signals.job = job(report)
            assert json.loads(ask(port, "/status.json")[1])["doing"] == doing
            assert ask(port, "/health") == (200, "ok\n")


def test_a_job_that_waits_is_degraded_and_no_probe_ends_it() -> None:
    signals, port = StopSignals(JobLog(quiet=True)), free_port()
    with shown_status(Settings(status_port=port), signals):
        signals.troubles.begin("registry", "127.0.0.1:5432 does not answer", "start Postgres")
        for report in (None, quiet_report() | {"at": time.time()}):
            signals.job = job(report) if report else None
            status, text = ask(port, "/health")
            assert status == 200
            line = r"degraded: registry(, for [\d.]+ s)?: 127\.0\.0\.1:5432 does not answer: start Postgres"
            assert re.match(line, text)
            assert re.search(line, ask(port, "/")[1])
        signals.troubles.end("registry")
        assert ask(port, "/health") == (200, "ok\n")


def test_a_job_with_many_dead_letters_is_degraded() -> None:
    signals, port = StopSignals(JobLog(quiet=True)), free_port()
    rejects = [{"topic": "user", "read": 60, "dead": 40, "text": "topic user: 40 of 60 records are dead letters"}]
    with shown_status(Settings(status_port=port), signals):
        signals.job = job(quiet_report() | {"at": time.time(), "rejects": rejects})
        assert ask(port, "/health") == (200, "degraded: topic user: 40 of 60 records are dead letters\n")


def test_a_crash_loop_is_not_healthy_in_its_starts_either() -> None:
    signals, port = StopSignals(JobLog(quiet=True)), free_port()
    past = PastRuns().with_failure(0.0, "no memory").with_failure(60.0, "no memory, again")
    with shown_status(Settings(status_port=port), signals):
        signals.past = past
        for report in (None, quiet_report() | {"at": time.time(), "past": asdict(past)}):
            signals.job = job(report) if report else None
            status, text = ask(port, "/health")
            assert status == 503
            assert re.fullmatch(r"the last 2 runs failed, from .* to .*: no memory, again; no batch ended .*\n", text)
            assert "no memory, again" in ask(port, "/")[1]


def test_a_stopped_product_and_a_silent_monitor_are_not_healthy() -> None:
    signals, port = StopSignals(JobLog()), free_port()
    report = quiet_report() | {"at": time.time(), "stopped_products": {"profile": "too large"}}
    with shown_status(Settings(status_port=port), signals):
        signals.job = job(report)
        assert ask(port, "/health") == (503, "product profile stopped: too large\n")
        signals.job = job(report | {"at": time.time() - 600, "stopped_products": {}})
        status, text = ask(port, "/health")
        assert (status, text.startswith("the job has reported nothing for 10 min")) == (503, True)
        signals.job.phase = JobPhase.ENDED  # it gives its lease back, for as long as a silent registry takes
        assert ask(port, "/health") == (200, "ok\n")
