"""What the monitor reports while the broker does not answer."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.printing.output import status_summary
from processor.engine.rounds.events import JobEvent
from processor.errors import KafkaError
from processor.job.kafka.lag import UNKNOWN, TopicLag, Unread
from processor.job.metrics.metrics import EmfWriter
from processor.job.metrics.status_page import prometheus_text
from processor.job.run import monitor as module
from processor.job.run.monitor import JobMonitor, LastBatch
from registry.model import HistoryEntry, PastRuns, WaitingGroup
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

    def keep_report(self, _lease: Any, report: dict[str, Any], _ended: int | None, *, worked_at: float | None) -> None:
        self.worked = worked_at
        self.reports.append(json.loads(json.dumps(report)))

    def __enter__(self) -> "Looks":
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Retentions:
    """A broker that keeps the records of `user` for 40 s."""

    def __init__(self, *_: Any) -> None:
        pass

    def retentions(self, topics: set[str]) -> dict[str, float]:
        return {topic: 40.0 for topic in topics if topic == "user"}


def reported(monkeypatch: pytest.MonkeyPatch, *looks: Mapping[Any, Unread] | KafkaError) -> Looks:
    """Runs a monitor over these looks."""
    made = Looks(*looks)
    monkeypatch.setattr(module, "read_unread", made.read_unread)
    monkeypatch.setattr(module, "Admin", Retentions)
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
        assert report["topics"] == {"user": {"records": 3, "seconds": pytest.approx(10.0, abs=0.01), "retention": 40.0}}
    for report in (first, second):
        assert report["topics"] == {"user": {"records": None, "seconds": None, "retention": 40.0}}
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


def test_the_log_warns_once_of_a_topic_that_loses_unread_records_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    young, old = {AT: Unread(range(3), 90.0)}, {AT: Unread(range(3), 65.0)}
    found = reported(monkeypatch, young, young, old, old, young)
    (line,) = [line for line in found.lines if line.what == "retention"]
    assert (line.level, line.fields) == ("warning", {"topic": "user"})
    assert line.text.startswith("topic user: in 5 s the broker deletes what the job has not read: ")


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


def test_a_report_counts_the_work_of_each_product_and_the_parts_add_up_to_whole_writes() -> None:
    report = JobMonitor(monitored(busy_trial()), clock=lambda: 100.0).state({})
    counts = report["last_hour"]["counts"]
    for work in ("bytes", "ledger writes/1000", "reads/1000", "render us"):
        assert min(counts[f"{work} of {name}"] for name in ("profile", "badge")) > 0
    for work in ("ledger writes/1000", "reads/1000"):
        assert sum(count for name, count in counts.items() if name.startswith(f"{work} of ")) % 1_000 == 0


def test_the_monitor_asks_for_the_letters_that_wait_after_new_ones_and_else_once_a_minute() -> None:
    job, now, asked = monitored(busy_trial()), [100.0], list[float]()
    monitor = JobMonitor(job, clock=lambda: now[0])

    def waiting() -> tuple[WaitingGroup, ...]:
        asked.append(now[0])
        return ()

    registry: Any = SimpleNamespace(letters=SimpleNamespace(waiting=waiting))
    for now[0] in (100.0, 110.0, 159.0, 161.0, 170.0):
        monitor._look_at_letters(registry)
    assert asked == [100.0, 161.0]
    job.driver.tally["dead letters"] += 1
    for now[0] in (171.0, 172.0):
        monitor._look_at_letters(registry)
    assert asked == [100.0, 161.0, 171.0]


def restarted(past: PastRuns, **of_job: Any) -> JobMonitor:
    """The monitor of a run after others, at second 100."""
    job = monitored(busy_trial())
    job.lease.past, job.last_batch = past, None
    for name, value in of_job.items():
        setattr(job, name, value)
    return JobMonitor(job, clock=lambda: 100.0)


def test_records_that_wait_are_stalled_since_the_last_batch_of_any_run() -> None:
    failed = PastRuns(worked_at=30.0).with_failure(80.0, "no memory")
    waits, none, unknown = {"user": TopicLag(7, 10.0)}, {"user": TopicLag(0, None)}, {"user": UNKNOWN}
    state = restarted(failed).state(waits)
    assert (state["stalled_seconds"], state["past"]["failed"], state["past"]["text"]) == (70.0, 1, "no memory")
    assert restarted(failed).state({"user": TopicLag(1, 95.0)})["stalled_seconds"] == 5.0, (
        "the job had nothing to do before"
    )
    assert restarted(PastRuns().with_failure(80.0, "no")).state(waits)["stalled_seconds"] == 20.0
    assert restarted(PastRuns()).state(waits)["stalled_seconds"] == 0.0
    assert [restarted(failed).state(lags)["stalled_seconds"] for lags in (none, unknown)] == [0.0, None]
    assert restarted(failed, paused=True).state(waits)["stalled_seconds"] == 0.0


def test_a_batch_that_ended_ends_the_failures_before_it_and_the_registry_gets_to_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monitor = restarted(PastRuns(restarts=4).with_failure(80.0, "no memory"))
    assert (monitor.state({})["past"]["failed"], monitor._worked) == (1, False)
    monitor._job.last_batch = LastBatch(number=3, at=90.0, records=12, documents=5)
    past = monitor.state({})["past"]
    assert (past["failed"], past["restarts"], past["worked_at"], monitor._worked) == (0, 5, 90.0, True)
    assert reported(monkeypatch, {AT: Unread(range(3), 90.0)}).worked == 90.0


def test_the_first_line_for_cloudwatch_counts_the_restarts_since_the_run_before() -> None:
    report = restarted(PastRuns(restarts=4, seen=3)).state({"user": TopicLag(7, 40.0)})
    writer = EmfWriter("job", restarts=3)
    assert [json.loads(writer.line(report))["statestore_restarts_total"] for _ in range(2)] == [1, 0]


def test_a_paused_topic_keeps_its_lag_and_age_and_does_not_stall_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    pause = HistoryEntry(
        version=7,
        at=datetime.fromtimestamp(60, UTC),
        who="ada",
        why="the source is repaired",
        entry="work",
        operation="update",
        old={"paused_topics": []},
        new={"paused_topics": ["star"]},
    )
    made = Looks({AT: Unread(range(0), None), ("star", 0): Unread(range(4, 9), 65.0)}, {})
    snapshot = SimpleNamespace(version=7, paused_topics=("star",), products=(), waiting=())
    made.job.follower = SimpleNamespace(snapshot=snapshot, refused=0, refusal="")
    made.job.last_batch, made.history = None, lambda: (pause,)  # type: ignore[attr-defined]
    made.job.left = {("star", 0): 4}
    asked = list[Any]()

    def read_unread(*of: Any) -> Mapping[Any, Unread]:
        asked.append(of)
        return made.read_unread()

    monkeypatch.setattr(module, "read_unread", read_unread)
    monkeypatch.setattr(module, "Admin", Retentions)
    made.monitor._look_at_pauses(made)  # type: ignore[arg-type]
    made.monitor._look_at_lag()
    assert asked[0][2:] == (["star", "user"], {("star", 0): 4})
    report = made.monitor.state(made.monitor._lag.lags(made.monitor._topics(), made.monitor._positions))
    assert report["topics"]["star"] == {"records": 5, "seconds": pytest.approx(35.0, abs=0.01), "retention": None}
    assert report["oldest_unpublished"] == 65.0
    assert report["stalled_seconds"] == 0.0
    assert report["pauses"] == [
        {"kind": "topic", "name": "star", "at": 60.0, "who": "ada", "why": "the source is repaired"}
    ]
    text = prometheus_text(report).decode()
    assert 'statestore_lag_records{topic="star"} 5.0' in text
    assert re.search(r'statestore_pause_seconds\{kind="topic",name="star"\} 40\.0', text)
