"""The state that a running job reports: its lag, its last batch, what is open."""

from argparse import Namespace
from contextlib import suppress
from functools import partial
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.status import print_status
from processor.engine.rounds.events import no_report
from processor.errors import StatestoreError
from processor.job.kafka.lag import LagWatch, TopicLag, Unread, read_unread
from processor.job.kafka.reader import read_topic
from processor.job.metrics.status import wrong_in_report, wrong_lines
from processor.job.run.run_job import noted_end, run_job
from registry.edits import operations
from registry.edits.edit import Signature
from tests.integration.job.running_job import configure, wait_until

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect


def test_the_lag_counts_unread_records_and_shows_the_oldest(scene: Scene, rows: SimpleNamespace) -> None:
    user, star = scene.topic("user"), scene.topic("star")
    look = partial(read_unread, scene.settings.bootstrap_servers, {})
    scene.produce(*(rows.user(n, f"u{n}") for n in range(3)), partition=0)
    scene.produce(rows.star("u1", "repo"), partition=1)
    times = [record.timestamp / 1000 for record in read_topic(scene.settings.bootstrap_servers, {}, user)]
    watch = LagWatch()
    watch.keep(look([user, star, "missing"], {(star, 1): 1}), at=times[0] - 1)
    assert watch.lags([user, star], {(star, 1): 1}) == {user: TopicLag(3, times[0]), star: TopicLag(0, None)}
    assert look([user], {(user, 0): 2})[user, 0] == Unread(range(2, 3), times[2])


@pytest.mark.rest
def test_the_registry_has_the_last_state_of_a_job_that_ended(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"), rows.star("ada", "repo"), ("star", {"who": "ada"}, {"who": "ada"}))
    with scene.opened() as job:
        run_job(job, once=True)
    (status,) = scene.registry.jobs()
    assert (status.owner, status.alive) == (None, False)
    state = status.report
    assert (state["registry_version"], state["open_changes"], state["dead_letters"]) == (1, 0, 1)
    assert state["last_dead_letter"].endswith("key part 'repo' is missing")
    assert state["last_batch"] | {"at": 0} == {"number": 0, "at": 0, "records": 3, "documents": 1}


@pytest.mark.plain
def test_runs_that_fail_one_after_another_are_wrong_until_a_run_ends_a_batch(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.produce(rows.user(1, "ada"))
    for text in ("150 of 200 records are bad", "151 of 200 records are bad"):
        ends = noted_end(scene.settings, "one", Event(), no_report)
        with suppress(StatestoreError), ends, scene.opened():
            raise StatestoreError(text)
    with scene.opened() as job:
        wait_until(lambda: job.monitor.report is not None)
        lines = [list(wrong_in_report(job.monitor.report)), [*wrong_lines(*scene.registry.jobs())]]
        for (line,) in lines:
            assert line.startswith("the last 2 runs failed, from 20")
            assert line.endswith(": 151 of 200 records are bad; no batch ended since then: repair the cause")
        run_job(job, once=True)
    (status,) = scene.registry.jobs()
    assert (status.past.failed, status.past.restarts) == (0, 2)
    assert status.past.worked_at == status.report["last_batch"]["at"]


@pytest.mark.plain
def test_a_paused_topic_keeps_its_lag_and_its_reason_and_counts_toward_retention(
    scene: Scene, rows: SimpleNamespace
) -> None:
    topic = scene.topic("star")
    configure(scene, topic, retention_ms="3600000")
    scene.produce(rows.star("u1", "repo"), partition=0)
    scene.run()
    by = Signature("ada", "the source is repaired")
    scene.registry.operate(by, operations.pause_topic, topic, paused=True)
    scene.produce(*(rows.star("u1", f"repo {n}") for n in range(3)), partition=0)
    with scene.opened() as job:
        wait_until(lambda: bool(job.monitor.report and job.monitor.report["topics"][topic]["records"]))
        report = job.monitor.report or {}
    assert report["topics"][topic] | {"seconds": 0} == {"records": 3, "seconds": 0, "retention": 3600.0}
    assert report["oldest_unpublished"] is not None
    assert (report["stalled_seconds"], report["paused_topics"]) == (0.0, [topic])
    assert [(one["name"], one["who"], one["why"]) for one in report["pauses"]] == [(topic, *by)]


@pytest.mark.rest
def test_a_start_continues_at_the_positions_of_its_checkpoint(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"), partition=1)
    scene.run()
    with scene.opened() as job:
        run_job(job, once=True)
        assert job.positions[scene.topic("user"), 1] == 1


@pytest.mark.plain
def test_a_job_that_a_person_stopped_is_amber_while_its_topics_fill_and_the_broker_says_how_far(
    scene: Scene, rows: SimpleNamespace, capsys: Any
) -> None:
    scene.produce(rows.user(1, "ada"))
    stopping = Event()
    with noted_end(scene.settings, "one", stopping, no_report), scene.opened() as job:
        run_job(job, once=True)
        stopping.set()

    def status() -> list[str]:
        assert print_status(scene.registry, scene.settings, Namespace(json=False)) == 0
        return [line.strip() for line in capsys.readouterr().out.splitlines()]

    assert not [line for line in status() if line.startswith(("degraded", "topic"))]
    scene.produce(rows.user(2, "bob"), rows.user(3, "eve"))
    lines = status()
    user = scene.topic("user")
    assert any(line.startswith(f"topic {user}: behind 2 records, ") for line in lines)
    (line,) = [line for line in lines if line.startswith("degraded: ")]
    assert line.startswith(f"degraded: job {scene.settings.job} does not run, and its topics fill: {user} 2 records, ")
    assert line.endswith(": start it again")
