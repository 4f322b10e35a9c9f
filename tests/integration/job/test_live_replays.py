"""A running job replays dead letters that an operator asks for, while records flow, and also after a kill in the middle."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from tests.integration.job.running_job import DEADLINE, repeating, running, wait_until
from tests.integration.job.test_postgres_job import environment, set_environment

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect
USERS = [f"name{n}" for n in range(20)]
LETTERS = 600
"""More than a portion."""


def produce_letters(scene: Scene, rows: SimpleNamespace) -> None:
    """Users, and stars whose note is a number: dead letters until the definitions take numbers."""
    scene.produce(*(rows.user(n, name) for n, name in enumerate(USERS)))
    scene.produce(*(rows.star(USERS[n % len(USERS)], f"repo{n}", n) for n in range(LETTERS)))


def flowing(scene: Scene, rows: SimpleNamespace) -> AbstractContextManager[None]:
    """Produces records without an end inside the block, also newer changes of rows of letters."""

    def produce(n: int) -> None:
        scene.produce(
            rows.star(USERS[n % len(USERS)], f"repo{7 * n % LETTERS}", f"text {n}"),
            rows.user(n % 5, f"name{n % 5}"),
        )

    return repeating(produce, first=0, pause=0.1)


@pytest.mark.rest
def test_a_running_job_replays_bulk_letters_while_records_flow(
    new_scene: Any, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = new_scene(max_reject_share=1.0)
    set_environment(monkeypatch, scene.settings)
    produce_letters(scene, rows)
    with running(scene) as job:
        wait_until(lambda: job.job.driver.tally["dead letters"] == LETTERS, job)
        capsys.readouterr()
        assert main(["dead-letters", "replay", "--offsets", "0"]) == 0  # the definitions are as they were
        refused = capsys.readouterr()
        assert "still waits: " in refused.err
        assert "documents published" not in refused.err
        scene.widen()
        wait_until(lambda: job.job.snapshot.version == scene.plan.version, job)
        before = job.job.driver.tally["batches"]
        with flowing(scene, rows):
            wait_until(lambda: job.job.driver.tally["batches"] > before, job)
            assert main(["dead-letters", "replay", "--why", "notes are numbers, too"]) == 0
        printed = capsys.readouterr()
        assert job.job.driver.tally["batches"] > before + 2
        assert f"{LETTERS} of {LETTERS} dead letters replayed = " in printed.out
        assert "+ 0 ignored + 0 refused" in printed.out
        assert "replays 600 dead letters, in turn with batches" in printed.err
        wait_until(lambda: bool(scene.documents() == scene.truth()), job)
        assert main(["dead-letters", "replay"]) == 0
        assert "no dead letter of this selection waits" in capsys.readouterr().err
    assert scene.registry.replays.waiting() == ()


@pytest.mark.rest
def test_a_job_that_is_killed_in_the_middle_of_a_replay_leaves_the_rest_to_the_next_run(
    new_scene: Any, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = new_scene(settle_seconds=2.0, max_reject_share=1.0)
    set_environment(monkeypatch, scene.settings)
    produce_letters(scene, rows)
    scene.run()
    scene.widen()
    argv = [sys.executable, "-c", "from processor.cli.main import main; raise SystemExit(main())", "run"]
    with (
        subprocess.Popen(argv, env=os.environ | environment(scene.settings), start_new_session=True) as process,
        ThreadPoolExecutor(1) as pool,
    ):
        wait_until(lambda: any(one.alive and one.report for one in scene.registry.jobs()))
        verb = pool.submit(main, ["dead-letters", "replay"])
        wait_until(lambda: verb.done() or any(one.ended for one in scene.registry.replays.waiting()))
        os.killpg(process.pid, signal.SIGKILL)
        (request,) = scene.registry.replays.waiting()
        assert 0 < request.ended < LETTERS
        scene.run(owner="two", take_over=True)
        assert verb.result(DEADLINE) == 0
    assert f"{LETTERS} of {LETTERS} dead letters replayed = " in capsys.readouterr().out
    assert scene.documents() == scene.truth()
    assert sum(len(one["stars"]) for one in scene.documents().values()) == LETTERS
