"""A whole job over a table in Postgres: killed in the middle and started again, then looked at and changed by the verbs."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from processor.job.worker import open_postgres, open_store
from processor.settings.settings import Settings
from statestore.errors import FencedWrite
from statestore.keys import Key
from statestore.store import Fence, Write

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
    pytest.mark.filterwarnings("ignore:.*was deleted while still open:ResourceWarning"),  # a verb ends with its process
]
SECONDS = 120.0


def environment(settings: Settings) -> dict[str, str]:
    """The settings as variables."""
    given = {
        one.name: getattr(settings, one.name)
        for one in fields(settings)
        if one.name not in ("kafka", "schema_registry")
    }
    return {
        f"STATESTORE_{name.upper()}": str.__str__(value) if isinstance(value, str) else str(value)
        for name, value in given.items()
    }


@pytest.fixture(scope="module")
def killed(new_scene: Callable[..., Scene], rows: SimpleNamespace) -> Scene:
    """A job that was killed in the middle of its records, and went on to their end."""
    scene = new_scene(store="postgres", batch_size=25)
    names = [f"name{n}" for n in range(40)]
    scene.produce(*(rows.user(n, name) for n, name in enumerate(names)))
    for note in ("first", "second"):
        scene.produce(*(rows.star(name, f"repo{n}", note) for name in names for n in range(5)))
    argv = [sys.executable, "-c", "from processor.cli.main import main; raise SystemExit(main())", "run", "--once"]
    with subprocess.Popen(
        argv, env=os.environ | environment(scene.settings), start_new_session=True, stderr=subprocess.PIPE, text=True
    ) as process:
        until = monotonic() + SECONDS
        while len(scene.committed()) < 3 and process.poll() is None and monotonic() < until:
            sleep(0.05)
        scene.running = process.poll() is None
        if scene.running:
            os.killpg(process.pid, signal.SIGKILL)
        assert process.stderr is not None
        scene.said = process.stderr.read()
    scene.left = len(scene.documents())
    scene.produce(*(rows.gone(rows.star(name, "repo0")) for name in names[:10]), rows.user(3, "another name"))
    scene.tally = scene.run(owner="two", take_over=True).tally
    return scene


def test_a_killed_job_goes_on_and_its_documents_equal_those_of_try(killed: Scene) -> None:
    assert killed.running, killed.said
    assert killed.left > 0
    assert killed.tally["read"] > 11
    assert killed.documents() == killed.truth()
    assert len(killed.documents()) == 40


def test_the_documents_equal_the_sql_answer(
    killed: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment(killed.settings).items():
        monkeypatch.setenv(name, value)
    assert main(["verify", "profile"]) == 0
    assert "40 documents compared, 0 differ" in capsys.readouterr().err
    assert main(["get", "profile", '{"id": 3}']) == 0
    assert '"name":"another name"' in capsys.readouterr().out
    for verb in (["status"], ["explain", "profile", '{"id": 3}'], ["rejects", "list"], ["slots"], ["statistics"]):
        assert main(verb) == 0, verb
    assert main(["add-slots", "5", "--why", "more joins"]) == 0
    assert open_store(killed.settings).describe().slots == 5  # type: ignore[union-attr]
    capsys.readouterr()
    main(["doctor"])
    lines = {line.split()[1]: line.split()[0] for line in capsys.readouterr().out.splitlines() if len(line.split()) > 1}
    assert {
        name: lines.get(name) for name in ("table", "keys", "slots", "permissions", "items", "identity")
    } == dict.fromkeys(("table", "keys", "slots", "permissions", "items", "identity"), "ok")


def test_the_killed_run_can_write_nothing_any_more(killed: Scene) -> None:
    identity = killed.registry.binding().identity
    key = Key("TABLE#user", "zombie")
    for generation, fenced in ((1, True), (2, False)):
        store = open_postgres(killed.settings, Fence(identity, generation))
        if fenced:
            with pytest.raises(FencedWrite, match="a newer run than 1 took over: this run must stop"):
                store.write(Write(key, {"n": 1}))
            assert store.get([key]) == {}
        else:
            store.write(Write(Key("PROBE", "a"), {"n": 1}))
        store.close()
