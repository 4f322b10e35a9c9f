"""A whole job over a table in Postgres: killed in the middle and started again, then looked at and changed by the verbs."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from processor.engine.protocol.identity import IDENTITY
from processor.environment.settings.settings import Settings
from processor.environment.stores.kind import RetryBudget
from processor.environment.stores.kinds import open_store
from processor.job.run.binding import Parts
from statestore.keys import Key
from statestore.store import FencedWrite, FencingToken, Write
from tests.contract.postgres_servers import execute

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.rest,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]
SECONDS = 600.0


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


def set_environment(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    for name, value in environment(settings).items():
        monkeypatch.setenv(name, value)


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
    set_environment(monkeypatch, killed.settings)
    assert main(["verify", "profile"]) == 0
    assert "40 documents compared, 0 differ" in capsys.readouterr().err
    assert main(["get", "profile", '{"id": 3}']) == 0
    assert '"name":"another name"' in capsys.readouterr().out
    for verb in (
        ["status"],
        ["explain", "profile", '{"id": 3}'],
        ["keys", "profile"],
        ["dead-letters", "list"],
        ["slots"],
        ["statistics"],
    ):
        assert main(verb) == 0, verb
    assert main(["add-slots", "5", "--why", "more joins"]) == 0
    with closing(open_store(killed.settings)) as store:
        assert store.describe().slots == 5  # type: ignore[union-attr]
    capsys.readouterr()
    main(["doctor"])
    lines = {line.split()[1]: line.split()[0] for line in capsys.readouterr().out.splitlines() if len(line.split()) > 1}
    assert {
        name: lines.get(name) for name in ("table", "keys", "log", "slots", "permissions", "items", "identity")
    } == dict.fromkeys(("table", "keys", "log", "slots", "permissions", "items", "identity"), "ok")


def test_the_killed_run_can_write_nothing_any_more(killed: Scene) -> None:
    identity = killed.registry.binding().identity
    key = Key("TABLE#user", "zombie")
    for generation, fenced in ((1, True), (2, False)):
        store = open_store(killed.settings, RetryBudget.JOB, FencingToken(identity, generation))
        if fenced:
            with pytest.raises(FencedWrite, match="a newer run than 1 took over: this run must stop"):
                store.write(Write(key, {"n": 1}))
            assert store.get([key]) == {}
        else:
            store.write(Write(Key("PROBE", "a"), {"n": 1}))
        store.close()


def test_a_verb_that_is_done_or_refused_leaves_no_connection_open(
    killed: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """psycopg warns of a connection that nobody closed, and the warning fails the test."""
    set_environment(monkeypatch, killed.settings)
    for verb in (
        ["verify", "--repair"],
        ["verify", "--sql"],
        ["erase", "user", '{"id": 3}', "--referring"],
        ["erase", "user", '{"id": 3}'],
        ["dead-letters", "drop", "--why", "a test"],
        ["dead-letters", "replay"],
        ["backfill"],
    ):
        assert main(verb) == 0, (verb, capsys.readouterr().err)
    for wrong in (["get", "profile", "no key"], ["get", "nothing", "3"], ["erase", "nothing", "3"]):
        assert main(wrong) == 1, wrong
    monkeypatch.setenv("STATESTORE_TABLE", "mistyped")
    for refused in (["get", "profile", "3"], ["statistics"], ["verify"], ["backfill"]):
        assert main(refused) == 1, refused
    gc.collect()


def taken_over(settings: Settings, generation: int, then: Callable[..., None]) -> Callable[..., None]:
    """A step of a start, before which a run of this generation takes the table over."""

    def step(parts: Parts, *more: Any) -> None:
        with closing(open_store(settings)) as store:
            store.take_over(FencingToken(parts.registry.binding().identity, generation))
        then(parts, *more)

    return step


def test_a_start_that_another_run_took_over_from_writes_no_identity(
    new_scene: Callable[..., Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = new_scene(store="postgres")
    monkeypatch.setattr(Parts, "bind", taken_over(scene.settings, 2, Parts.bind))
    with pytest.raises(FencedWrite, match="a newer run than 1 took over"), scene.opened():
        pass
    with closing(open_store(scene.settings)) as store:
        assert store.get([IDENTITY]) == {}
    assert scene.registry.binding().table == ""


def test_a_start_that_another_run_took_over_from_forgets_no_progress_of_a_restored_table(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = new_scene(store="postgres")
    scene.produce(rows.user(1, "ada"), rows.star("ada", "repo"))
    scene.run()
    scene.settings = replace(scene.settings, table=f"{scene.settings.table}_restored")
    execute(scene.settings.registry, f"ALTER SCHEMA state_{scene.settings.job} RENAME TO state_{scene.settings.table}")
    scene.lose_checkpoint()
    monkeypatch.setattr(Parts, "adopt_table", taken_over(scene.settings, 9, Parts.adopt_table))
    with closing(open_store(scene.settings)) as store:
        before = store.scan(None, 1_000).items
        with pytest.raises(FencedWrite, match="a newer run than 2 took over"), scene.opened(adopt=True):
            pass
        assert store.scan(None, 1_000).items == before
