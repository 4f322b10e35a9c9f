"""Registry, table, job name and checkpoint belong together: a job with a foreign part stops before it writes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.choices import stored_state
from processor.engine.plan.planning import plan_of, requirements_of
from processor.environment.settings.resolve import open_registry
from processor.environment.stores.kinds import open_store
from processor.errors import Fenced, OwnedByAnother
from processor.job.kafka.outbox import TransactionalOutbox
from processor.job.run.open_job import prepare_plan
from processor.job.run.worker import transactional_id
from processor.language.definitions.load import load
from processor.values.record import Message
from registry.errors import LeaseHeld, RegistryMissing
from tests.integration.job.plain_client import plain_client
from tests.support.sampled import sampled

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect

ADA = '{"id":1}'


@pytest.fixture(scope="module")
def worked(new_scene: Callable[..., Scene], rows: SimpleNamespace) -> Scene:
    """A job that has run. The tests below try to run it with foreign parts."""
    scene = new_scene()
    scene.produce(rows.user(1, "ada"), rows.star("ada", "repo"), partition=0)
    scene.run()
    scene.produce(rows.star("ada", "waits"), partition=0)
    return scene


def refused(scene: Scene, message: str, **changes: Any) -> None:
    """A run with these settings is refused, and writes and publishes nothing."""
    before = scene.published(), scene.registry.binding(), items(scene)
    with pytest.raises(OwnedByAnother, match=message):
        scene.run(**changes)
    assert (scene.published(), scene.registry.binding(), items(scene)) == before


def items(scene: Scene) -> list[Any]:
    store = open_store(scene.settings)
    found = plain_client(scene.settings).scan(TableName=scene.settings.table)["Items"] if store.describe() else []
    store.close()
    return sorted(found, key=str)


@pytest.mark.rest
def test_a_mistyped_table_is_not_created(worked: Scene) -> None:
    typo = f"{worked.settings.table}x"
    refused(worked, rf"table {typo} is foreign: there is no such table, .* Run with --table", table=typo)
    assert open_store(replace(worked.settings, table=typo)).describe() is None


def test_another_registry_does_not_write_the_table(worked: Scene) -> None:
    schema = f"{worked.settings.registry_schema}_other"
    before = worked.published(), items(worked)
    with open_registry(replace(worked.settings, registry_schema=schema)) as other:
        other.migrate(worked.settings.slots)
        other.apply(requirements_of(load(definitions(worked))), who="a test", why="")
        twin = replace(worked, registry=other, plan=plan_of(other.snapshot()))
        with pytest.raises(OwnedByAnother, match=r"table .* is foreign: it belongs to another registry"):
            twin.run(checkpoint=f"{worked.settings.checkpoint}-other")
        with pytest.raises(OwnedByAnother, match="it belongs to another registry"):
            twin.run(checkpoint=f"{worked.settings.checkpoint}-other", adopt=True)
        assert other.binding().job == ""
    another = replace(worked.settings, registry_schema=schema)
    with pytest.raises(OwnedByAnother, match="no job has run with this registry"), stored_state(another):
        pass
    assert (worked.published(), items(worked)) == before


def test_a_mistyped_registry_schema_is_not_created(worked: Scene) -> None:
    typo = replace(worked.settings, registry_schema=f"{worked.settings.registry_schema}_typo")
    with pytest.raises(
        OwnedByAnother, match=r"belongs to a registry, and there is none in the schema .*_typo: correct"
    ):
        prepare_plan(typo, load(definitions(worked)))
    with open_registry(typo) as registry, pytest.raises(RegistryMissing):
        registry.snapshot()


def test_a_reader_refuses_a_table_that_is_not_the_registrys(worked: Scene) -> None:
    with stored_state(worked.settings) as (_, store):
        assert store.describe()
    other = stored_state(replace(worked.settings, table="nothing"))
    with pytest.raises(OwnedByAnother, match=f"not the table of this registry {worked.settings.table}"), other:
        pass


@pytest.mark.rest
def test_a_checkpoint_of_another_job_is_refused(worked: Scene, new_scene: Callable[..., Scene]) -> None:
    other = new_scene()
    other.produce(("user", {"id": 1}, {"id": 1, "name": "other"}))
    other.run()
    refused(worked, "checkpoint .* is foreign: it counts records", checkpoint=other.settings.checkpoint)
    Path(worked.settings.checkpoint, "statestore.identity").rename(f"{worked.settings.checkpoint}.moved")
    refused(worked, "checkpoint .* is foreign: it counts records")
    Path(f"{worked.settings.checkpoint}.moved").rename(Path(worked.settings.checkpoint, "statestore.identity"))


@pytest.mark.rest
def test_a_renamed_job_is_refused_until_the_name_is_adopted(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"), partition=0)
    scene.run()
    scene.produce(rows.user(1, "later"), partition=0)
    name = f"{scene.settings.job}-renamed"
    refused(scene, rf"job {name} is foreign: .* --job {scene.settings.job}, or .* --adopt", job=name)

    with scene.opened() as job:
        outbox = TransactionalOutbox(scene.settings.bootstrap_servers, {}, transactional_id(scene.settings, 0))
        with pytest.raises(LeaseHeld, match=f"job {scene.settings.job} runs already: one"):
            scene.run(job=name, adopt=True)
        result = scene.run(job=name, adopt=True, take_over=True)
        assert result.published == 1
        assert not scene.registry.holds(job.lease)
        outbox.send(Message(scene.plan.products["profile"].product.topic, b"late", b"{}", ()))
        with pytest.raises(Fenced):
            outbox.flush()
    assert scene.documents()[ADA]["name"] == "later"
    refused(scene, f"job {scene.settings.job} is foreign")


@pytest.mark.rest
@pytest.mark.parametrize("state", sampled(["gone", "empty"], "gone"))
def test_a_lost_table_is_built_again_with_a_new_checkpoint_and_higher_sequences(
    scene: Scene, rows: SimpleNamespace, state: str
) -> None:
    scene.produce(*(rows.user(1, f"ada{n}") for n in range(3)), rows.star("ada2", "repo"), partition=0)
    scene.produce(rows.user(2, "bob"), rows.gone(rows.user(2, "bob")), partition=1)
    scene.run(batch_size=3)
    store = open_store(scene.settings)
    plain_client(scene.settings).delete_table(TableName=scene.settings.table)
    if state == "empty":
        store.create(scene.settings.slots)

    refused(scene, r"table .* is foreign: .*`statestore run --adopt` with this --table and a new --checkpoint")
    refused(scene, "checkpoint .* is foreign", adopt=True)
    scene.lose_checkpoint()
    refused(scene, "table .* is foreign")
    scene.run(adopt=True)
    assert scene.documents() == scene.truth()  # which also looks at the sequences
    scene.run()


@pytest.mark.rest
def test_a_new_registry_and_table_go_on_with_the_sequences_of_the_topics(scene: Scene, rows: SimpleNamespace) -> None:
    """The cure of a column whose slot has the encoding of its old type (`ColumnHeld`)."""
    scene.produce(*(rows.user(1, f"ada{n}") for n in range(3)), rows.user(2, "bob"), partition=0)
    scene.run(batch_size=2)
    schema = f"{scene.settings.registry_schema}_second"
    with open_registry(replace(scene.settings, registry_schema=schema)) as second:
        second.migrate(scene.settings.slots)
        second.apply(requirements_of(load(definitions(scene))), who="a test", why="")
        settings = replace(
            scene.settings,
            registry_schema=schema,
            table=f"{scene.settings.table}-second",
            checkpoint=f"{scene.settings.checkpoint}-second",
        )
        again = replace(scene, settings=settings, registry=second, plan=plan_of(second.snapshot()))
        again.run()
        again.produce(rows.gone(rows.user(2, "bob")), partition=0)
        again.run()
        assert again.documents() == again.truth()  # which also looks at the sequences
        assert set(again.documents()) == {ADA}


def definitions(scene: Scene) -> dict[str, str]:
    """The definitions of the scene, as its registry holds them."""
    import json

    snapshot = scene.registry.snapshot()
    texts = {"entities.yaml": json.dumps({entity.name: dict(entity.definition) for entity in snapshot.entities})}
    return texts | {f"products/{one.name}.yaml": json.dumps(dict(one.definition)) for one in snapshot.products}
