"""What the monitor reports while the broker does not answer."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from processor.cli.printing.output import status_summary
from processor.engine.rounds.events import JobEvent
from processor.errors import KafkaError
from processor.job.kafka.lag import Unread
from processor.job.metrics.status_page import prometheus_text
from processor.job.run import monitor as module
from processor.job.run.monitor import JobMonitor
from tests.unit.job.metrics.run_report import busy_trial, monitored

AT = ("user", 0)


class Looks:
    """The looks at a broker: what each finds, or why it fails. The monitor reports after each, and ends after the last."""

    def __init__(self, *looks: Mapping[Any, Unread] | KafkaError) -> None:
        self.looks, self.lines, self.reports = list(looks), list[JobEvent](), list[dict[str, Any]]()
        self.job = monitored(busy_trial(), self.lines.append)
        self.job.driver.progress.report = self.lines.append
        self.job.settings = replace(self.job.settings, bootstrap_servers="127.0.0.1:9092")
        ticks = count()
        self.monitor = JobMonitor(self.job, clock=lambda: 100 + next(ticks) / 1_000_000)

    def read_unread(self, *_: Any) -> Mapping[Any, Unread]:
        found = self.looks.pop(0)
        if not self.looks:
            self.monitor._ending.set()
        if isinstance(found, KafkaError):
            raise found
        return found

    @property
    def runs(self) -> "Looks":
        return self

    def keep_report(self, _lease: Any, report: dict[str, Any], _ended: int | None) -> None:
        self.reports.append(json.loads(json.dumps(report)))

    def __enter__(self) -> "Looks":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def reported(monkeypatch: pytest.MonkeyPatch, *looks: Mapping[Any, Unread] | KafkaError) -> Looks:
    """Runs a monitor over these looks."""
    made = Looks(*looks)
    monkeypatch.setattr(module, "read_unread", made.read_unread)
    monkeypatch.setattr(module, "open_registry", lambda _settings: made)
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(module, "LOOKS_PER_LINE", 1)
    made.monitor._look_until_the_end()
    return made


def test_while_the_broker_is_away_the_status_lines_go_on_the_lag_is_unknown_and_the_job_is_degraded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = KafkaError("cannot read topics at 127.0.0.1:9092: Broker transport failure")
    found = reported(monkeypatch, {AT: Unread(range(3), 90.0)}, away, away, {AT: Unread(range(3), 90.0)})
    before, first, second, after, _ = found.reports
    for report in (before, after):
        assert report["topics"] == {"user": {"records": 3, "seconds": pytest.approx(10.0, abs=0.01)}}
    for report in (first, second):
        assert report["topics"] == {"user": {"records": None, "seconds": None}}
        (trouble,) = report["troubles"]
        assert trouble["part"] == "broker"
        assert trouble["text"].startswith("Kafka at 127.0.0.1:9092 does not answer (cannot read topics at")
        assert status_summary(report).startswith("behind user unknown, ")
        text = prometheus_text(report).decode()
        assert "statestore_lag_records{" not in text
        assert "\nstatestore_oldest_unpublished_seconds " not in text
    assert (before["troubles"], after["troubles"]) == ([], [])
    whats = [line.what for line in found.lines]
    assert whats.count("status") == 3, "one for each look after the first"
    assert (whats.count("degraded"), whats.count("recovered")) == (1, 1)


def test_work_that_waits_has_an_age_also_while_the_lag_is_unknown() -> None:
    job = monitored(busy_trial())
    job.driver.progress.backlog.own.add(("profile", "a root"))
    report = JobMonitor(job, clock=lambda: 100.0).state({})
    assert report["oldest_unpublished"] == 100.0


def test_a_report_counts_the_messages_of_each_product() -> None:
    trial = busy_trial()
    report = JobMonitor(monitored(trial), clock=lambda: 100.0).state({})
    counts = report["last_hour"]["counts"]
    assert min(counts["messages of profile"], counts["messages of badge"]) > 0
    tally = trial.tally
    sent = tally["published"] + tally["corrections"]
    assert counts["messages of profile"] + counts["messages of badge"] == sent
    assert report["last_day"]["counts"] == counts
