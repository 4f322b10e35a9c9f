"""A load makes the rows that the job makes of the same records, and publishes each document once. Then the job continues."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from processor.errors import StatestoreError
from processor.job.run.run_job import run_job
from statestore.dynamodb.client import open_s3
from statestore.dynamodb.load import DynamoLoader
from statestore.dynamodb.retries import Patience
from statestore.keys import is_progress
from statestore.postgres import PostgresLoader
from statestore.store import Item
from tests.integration.job.test_postgres_job import set_environment

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.rest,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]
STARS = {"many": "star", "on": {"who": "name"}, "fields": ["repo"], "strong": True}


@pytest.fixture
def store() -> str:
    return "postgres"


@pytest.fixture
def twins(new_scene: Callable[..., Scene], rows: SimpleNamespace, store: str) -> list[Scene]:
    """Two scenes with the same records: rows with and without edges, changes, deletes, a dead letter."""
    made = [new_scene(store=store, batch_size=1_000, import_files="s3://imports/first") for _ in range(2)]
    for scene in made:
        if store == "dynamodb":
            open_s3(scene.settings.endpoint, "us-east-1", Patience()).create_bucket(Bucket="imports")
        scene.plain = True
        scene.add("strong", embed={"stars": STARS})
        scene.produce(*(rows.user(n, f"u{n}") for n in range(20)), *(rows.star(f"u{n}", "one") for n in range(20)))
        scene.produce(*(rows.star(f"u{n}", "one", "again") for n in range(5)), rows.user(3, "moved"))
        scene.produce(rows.gone(rows.user(4, "u4")), rows.gone(rows.star("u5", "one")))
        scene.produce(("user", {"id": 6}, {"id": "no number", "name": "six"}), partition=0)
    return made


def load(scene: Scene, **changes: Any) -> Any:
    with scene.opened(load=True, **changes) as job:
        run_job(job, once=True)
    return job.driver


def stored(scene: Scene) -> dict[tuple[str, str], Item]:
    """The rows and edges, without the time of a delete marker."""
    with scene.opened() as job:
        items = job.driver.store.scan(None, 10_000).items
        return {(i["PK"], i["SK"]): {**i, "ttl": None} for i in items if not is_progress(i["PK"])}


@pytest.mark.plain
@pytest.mark.parametrize("store", ["postgres", "dynamodb"])
def test_a_load_makes_the_rows_that_the_job_makes(twins: list[Scene], store: str) -> None:
    loaded, usual = twins
    driver = load(loaded)
    tally = usual.run().tally
    rows = stored(loaded)
    assert rows == stored(usual)
    assert {pk.partition("#")[0] for pk, _ in rows} == {"TABLE", "EDGE"}
    counts = ("read", "applied", "superseded", "dead letters", "published")
    assert {name: driver.tally[name] for name in counts} == {name: tally[name] for name in counts}


@pytest.mark.plain
@pytest.mark.parametrize("store", ["postgres", "dynamodb"])
def test_a_load_publishes_each_document_once_and_the_job_continues(
    twins: list[Scene], rows: SimpleNamespace, store: str
) -> None:
    scene, _ = twins
    load(scene)
    assert scene.documents() == scene.truth()
    assert len(scene.published()) == len(scene.documents()) == 19
    assert len(scene.rejected()) == 1
    scene.produce(rows.user(3, "back"), rows.star("back", "two"), rows.gone(rows.user(7, "u7")))
    assert scene.run().tally["read"] == 3
    assert scene.documents() == scene.truth()
    assert scene.documents("strong") == scene.truth("strong")
    assert len(scene.published()) == 21


@pytest.mark.plain
@pytest.mark.parametrize(
    ("store", "step", "loads"),
    [
        *(("postgres", step, loads) for step in ("add", "finish") for loads in (True, False)),
        ("dynamodb", "add", True),
        ("dynamodb", "finish", False),
    ],
)
def test_a_load_that_broke_off_leaves_no_row_and_the_next_run_does_its_work(
    twins: list[Scene], monkeypatch: pytest.MonkeyPatch, store: str, step: str, loads: bool
) -> None:
    scene, _ = twins
    kind = {"postgres": PostgresLoader, "dynamodb": DynamoLoader}[store]
    usual = getattr(kind, step)

    def fail(loader: Any, *given: Any) -> None:
        if step == "add":
            usual(loader, *given)
        raise StatestoreError("the load broke off")

    with monkeypatch.context() as patched:
        patched.setattr(kind, step, fail)
        with pytest.raises(StatestoreError, match="the load broke off"):
            load(scene)
    assert stored(scene) == {}
    assert scene.published() == []
    load(scene, take_over=True) if loads else scene.run(take_over=True)
    assert scene.documents() == scene.truth()
    assert len(scene.published()) == 19


@pytest.mark.plain
def test_a_load_that_broke_off_after_its_end_keeps_its_rows(
    twins: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, _ = twins
    finish = PostgresLoader.finish

    def fail(loader: PostgresLoader) -> None:
        finish(loader)
        raise StatestoreError("the load broke off")

    with monkeypatch.context() as patched:
        patched.setattr(PostgresLoader, "finish", fail)
        with pytest.raises(StatestoreError, match="the load broke off"):
            load(scene)
    assert len(stored(scene)) > 40
    scene.positions.update(
        dict.fromkeys(scene.positions or {(scene.topic("user"), 0): 0}, 0)
    )  # Spark has planned the batch
    load(scene, take_over=True)
    assert scene.documents() == scene.truth()
    assert len(scene.published()) == 19


@pytest.mark.plain
def test_a_load_refuses_a_table_with_rows(twins: list[Scene]) -> None:
    scene, _ = twins
    load(scene)
    scene.lose_checkpoint()
    with pytest.raises(StatestoreError, match="has rows, and `load` fills an empty one: give another --table"):
        load(scene, take_over=True)


@pytest.mark.plain
def test_the_second_copy_of_a_task_goes_and_two_rows_of_one_key_stop_a_load(
    twins: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    twice, other = twins
    add = PostgresLoader.add
    for scene, change in ((twice, {}), (other, {"extra": "differs"})):
        with monkeypatch.context() as patched:

            def again(loader: PostgresLoader, items: list[Item], change: Any = change) -> None:
                add(loader, items)
                add(loader, [{**item, **change} for item in items[:3]])

            patched.setattr(PostgresLoader, "add", again)
            if change:
                with pytest.raises(StatestoreError, match="two Kafka keys name one row"):
                    load(scene)
                assert stored(scene) == {}
            else:
                load(scene)
                assert scene.documents() == scene.truth()


def test_the_verb_loads_with_spark_and_the_documents_equal_the_sql_answer(
    new_scene: Callable[..., Scene],
    rows: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = new_scene(store="postgres", batch_size=50)
    names = [f"name{n}" for n in range(40)]
    scene.produce(*(rows.user(n, name) for n, name in enumerate(names)))
    for note in ("first", "second"):
        scene.produce(*(rows.star(name, f"repo{n}", note) for name in names for n in range(5)))
    set_environment(monkeypatch, scene.settings)
    assert main(["load"]) == 0
    assert scene.committed() == [0]
    assert len(scene.published()) == 40
    assert main(["verify", "profile"]) == 0
    assert "40 documents compared, 0 differ" in capsys.readouterr().err
    scene.produce(rows.user(3, "another name"), *(rows.gone(rows.star(name, "repo0")) for name in names[:10]))
    assert scene.run(owner="two", take_over=True).tally["read"] == 11
    assert scene.documents() == scene.truth()
