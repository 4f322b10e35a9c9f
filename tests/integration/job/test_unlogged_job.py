"""A job over an unlogged table, whose server crashes: neither the job nor the next start continues over the emptied table."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from processor.environment.settings.settings import setting_flags
from processor.errors import OwnedByAnother
from tests.contract.postgres_servers import crashing_postgres, execute
from tests.integration.job.running_job import running, wait_until

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.rest,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]
RECIPE = (
    r"it is empty, .* They are lost: build the state again from the topics: `statestore run --adopt` with this --table"
)


@pytest.fixture(scope="module")
def crashed(new_scene: Callable[..., Scene], rows: SimpleNamespace) -> Iterator[Scene]:
    """A job whose server crashed while it ran. Its registry is on another server."""
    with crashing_postgres() as (url, crash):
        scene = new_scene(store="postgres", store_url=url, store_unlogged=True)
        scene.produce(*(rows.user(n, f"name{n}") for n in range(3)), rows.star("name1", "repo"), partition=0)
        with running(scene) as job:
            wait_until(lambda: len(scene.documents()) == 3, job)
            crash()
            scene.before = scene.published()
            scene.produce(rows.user(1, "name1, changed"), rows.star("name2", "repo"), partition=0)
            scene.failure = str(job.failure())
        yield scene


def test_the_running_job_fails_with_the_recipe_and_publishes_nothing(crashed: Scene) -> None:
    table = crashed.settings.table
    assert f"table {table}: it has lost its rows, and the fence of this run: its server crashed" in crashed.failure
    assert "`statestore run --adopt` with a new --checkpoint" in crashed.failure
    assert crashed.published() == crashed.before
    assert execute(crashed.settings.store_url, f"SELECT count(*) FROM state_{table}.items") == [(0,)]


def test_the_verbs_say_that_the_rows_are_lost(
    crashed: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, _ in setting_flags():
        monkeypatch.setenv(f"STATESTORE_{name.upper()}", str(getattr(crashed.settings, name)))
    assert main(["get", "profile", '{"id": 1}']) == 1
    assert f"the table postgres:{crashed.settings.table} has lost its rows: `statestore run`" in capsys.readouterr().err
    assert main(["doctor"]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "failure identity the table" in printed
    assert "warning log the table is unlogged: a crash of the server empties it" in printed


def test_the_next_start_refuses_the_emptied_table_until_it_is_built_again(crashed: Scene) -> None:
    before = crashed.published()
    with pytest.raises(OwnedByAnother, match=RECIPE):
        crashed.run()
    with pytest.raises(OwnedByAnother, match=r"checkpoint .* is foreign"):
        crashed.run(adopt=True)
    crashed.lose_checkpoint()
    with pytest.raises(OwnedByAnother, match=RECIPE):
        crashed.run()
    assert crashed.published() == before

    crashed.run(adopt=True)
    assert crashed.documents() == crashed.truth()  # which also looks at the sequences
    assert crashed.run().published == 0
