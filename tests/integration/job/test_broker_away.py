"""A broker that is away for a while: the job says so, writes its lines, and continues by itself when the broker is back."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.printing.output import status_summary
from processor.engine.rounds.events import JobEvent
from processor.environment.programs.servers import start_kafka
from processor.job.run.outages import BROKER
from tests.integration.job.running_job import RunningJob, running, wait_until

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]


def has_caught_up(scene: Scene, job: RunningJob) -> None:
    wait_until(lambda: bool(scene.documents() == scene.truth()), job)


def test_while_the_broker_is_away_the_job_names_it_and_its_lag_is_unknown(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, tmp_path: Path
) -> None:
    first = start_kafka(tmp_path)
    port = int(first.endpoint.rpartition(":")[2])
    parts, events = [first], list[JobEvent]()

    def seen(what: str) -> list[JobEvent]:
        return [event for event in events if event.what == what]

    try:
        scene = new_scene(bootstrap_servers=first.endpoint)
        scene.produce(rows.user(1, "ada"), rows.star("ada", "one"))
        with running(scene, report=events.append) as job:
            has_caught_up(scene, job)
            os.kill(first.process.pid, signal.SIGKILL)
            wait_until(lambda: not first.alive())
            wait_until(lambda: bool(seen("degraded")), job)
            before = len(seen("status"))
            wait_until(lambda: len(seen("status")) >= before + 3, job)
            assert status_summary(seen("status")[-1].fields).startswith(f"behind {scene.topic('star')} unknown, ")
            (status,) = scene.registry.jobs()
            assert {lag["records"] for lag in status.report["topics"].values()} == {None}
            troubles = {trouble["part"]: trouble["text"] for trouble in status.report["troubles"]}
            assert first.endpoint in troubles[BROKER]
            parts.append(start_kafka(tmp_path, port=port))
            scene.produce(rows.user(2, "bob"), rows.star("ada", "two"))
            has_caught_up(scene, job)
            wait_until(lambda: job.job.troubles.now == (), job)
            wait_until(lambda: {lag["records"] for lag in seen("status")[-1].fields["topics"].values()} == {0}, job)
        assert job.failures == []
    finally:
        for part in parts:
            part.stop()
