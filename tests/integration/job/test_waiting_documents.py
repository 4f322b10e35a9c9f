"""A product whose documents wait, in a job over a table: the verbs of another process say so, and an edit lets them go."""

import json
from threading import Thread
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from processor.environment.settings.settings import setting_flags
from processor.job.run.job import Job
from processor.job.run.run_job import run_job

Scene = Any  # conftest's
pytestmark = pytest.mark.plain
FIELDS = ["id", "name"]
GATE = {"quiet": "1 h", "at_most": "2 h"}


def stop_when_quiet(job: Job) -> None:
    """Stops the job once nothing is left to do but to wait."""
    while not job.driver.progress.held.held or job.unsettled:
        sleep(0.05)
    job.stopping.set()


def test_other_processes_see_what_waits_and_another_gate_lets_it_go(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.add("calm", fields=FIELDS, publish=GATE)
    scene.produce(rows.user(1, "ada"))
    with scene.opened() as job:
        Thread(target=stop_when_quiet, args=(job,), daemon=True).start()
        run_job(job, once=True)
        assert job.monitor.state({})["gates"]["calm"]["waiting"] == 1
    assert scene.documents().keys() == {'{"id":1}'}
    assert scene.documents("calm") == {}

    for name, _ in setting_flags():
        monkeypatch.setenv(f"STATESTORE_{name.upper()}", str(getattr(scene.settings, name)))
    assert main(["get", "calm", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["document"], found["waits"]) == ({"id": 1, "name": "ada"}, True)
    assert main(["explain", "calm", "1"]) == 0
    assert "  quiet: its rows must not change for " in capsys.readouterr().out
    assert main(["verify", "calm"]) == 0
    assert capsys.readouterr().err == "calm: 1 documents compared, 0 differ; 1 wait at the gate of the product\n"

    scene.add("calm", fields=FIELDS)
    scene.run()
    assert scene.documents("calm") == {'{"id":1}': {"id": 1, "name": "ada"}}
    (product,) = (one for one in scene.registry.snapshot().products if one.name == "calm")
    assert product.version == 1
    assert main(["verify", "calm"]) == 0
    assert capsys.readouterr().err == "calm: 1 documents compared, 0 differ\n"
