"""How a run ended, for a person who asks when its process is gone."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.job_process import run_command
from processor.cli.main import main
from tests.faulty.processes import write_settings
from tests.integration.job.running_job import broker, wait_until

Scene = Any  # conftest's
Printed = pytest.CaptureFixture[str]
# PySpark's own, of each collect; the command closes some connections only when its process ends
pytestmark = [pytest.mark.rest, pytest.mark.filterwarnings("ignore::ResourceWarning")]
COMMAND = [sys.executable, "-c", "import sys; from processor.cli.main import main; sys.exit(main(sys.argv[1:]))", "run"]


def test_a_run_that_an_error_ended_is_wrong_until_the_job_runs_again(
    scene: Scene, rows: SimpleNamespace, tmp_path: Path, capsys: Printed
) -> None:
    scene.produce(rows.user(1, "ada"))
    topic, settings = scene.topic("user"), write_settings(scene.settings, tmp_path / "settings.toml")
    with run_command([*COMMAND, *settings], log := tmp_path / "log") as process:
        wait_until(lambda: " batch 0: " in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        broker(scene).delete_topics([topic])[topic].result(300)
        assert process.wait(600) == 1, log.read_text()
    gone = f"topic {topic} is gone, and entity user has read it: create it again, run `statestore epoch {topic}`"
    assert gone in log.read_text()

    assert main(["status", *settings]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f"job {scene.settings.job}: does not run" in lines[0]
    assert " ended with an error at 20" in lines[1]
    assert any(line.startswith(f"wrong: job {scene.settings.job} failed at 20") for line in lines)
    assert any(gone in line for line in lines)
    assert main(["status", "--json", *settings]) == 1
    found = json.loads(capsys.readouterr().out)
    (job,) = found["jobs"]
    assert (job["ended"]["how"], job["report"]["doing"], len(found["wrong"])) == ("failed", "has ended", 1)
