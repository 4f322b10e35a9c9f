"""A restored table and a lost registry: the job refuses them, and ends right after the steps of docs/troubleshooting.md."""

import json
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from processor.cli.main import main
from processor.engine.plan.planning import plan_of
from processor.environment.settings.resolve import open_registry
from processor.environment.stores.kinds import open_store
from processor.errors import OwnedByAnother
from processor.job.run.run_job import run_job
from processor.job.run.topics import record_boundary
from processor.language.definitions.load import load
from processor.tools.operate.registry import rebuild_registry
from registry.edits import operations
from registry.edits.edit import Signature
from registry.errors import RegistryMissing
from registry.repository.registry import no_check
from tests.integration.job.plain_client import plain_client
from tests.support.migrated_schemas import drop_schema

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]


def items_now(scene: Scene) -> list[Any]:
    """The items of the table as it is now."""
    client = plain_client(scene.settings)
    items: list[Any] = client.scan(TableName=scene.settings.table)["Items"]
    client.close()
    return items


def restore(scene: Scene, items: list[Any], name: str) -> None:
    """Makes a table with these items, in place of one with this name, as a restore does."""
    client = plain_client(scene.settings)
    with suppress(client.exceptions.ResourceNotFoundException):
        client.delete_table(TableName=name)
    table = open_store(replace(scene.settings, table=name))
    table.create(scene.settings.slots)
    table.close()
    for item in items:
        client.put_item(TableName=name, Item=item)
    client.close()


def stars(scene: Scene, rows: SimpleNamespace, *names: str) -> None:
    """Users and their stars, in one partition."""
    users = [rows.user(n, name) for n, name in enumerate(names)]
    scene.produce(*users, *(rows.star(name, f"repo{n}") for name in names for n in range(2)), partition=0)


def test_a_job_goes_on_with_a_table_that_was_restored_to_an_earlier_moment(scene: Scene, rows: SimpleNamespace) -> None:
    stars(scene, rows, "ada", "bob", "cyd")
    scene.run()
    restored = f"{scene.settings.table}-restored"
    restore(scene, items_now(scene), restored)
    scene.registry.operate(Signature("a test", "rows of the copy lack this slot"), operations.move, "star", 1, 3)
    scene.produce(rows.user(0, "bob"), rows.gone(rows.user(2, "cyd")), rows.star("bob", "repo9"), partition=0)
    for n in range(3):  # the sequences of the documents rise above those of the copy
        scene.produce(rows.star("bob", "repo9", f"note {n}"), partition=0)
        scene.run()
    scene.produce(rows.user(5, "eve"), partition=0)
    scene.run()
    scene.produce(rows.gone(rows.user(5, "eve")), partition=0)  # the copy never had this row

    with pytest.raises(OwnedByAnother, match=rf"a copy of {scene.settings.table}, .* `statestore run --adopt`"):
        scene.run(table=restored)
    with pytest.raises(OwnedByAnother, match=r"checkpoint .* is foreign"):
        scene.run(table=restored, adopt=True)
    former = scene.settings
    scene.settings = replace(former, table=restored, checkpoint=f"{former.checkpoint}-restored")
    again = scene.run(adopt=True)
    assert again.tally["read"] == len(scene.lines)
    assert scene.documents() == scene.truth()  # which also looks at the sequences
    assert set(scene.documents()) == {'{"id":0}', '{"id":1}'}

    scene.produce(rows.star("bob", "repo10"), partition=0)
    assert scene.run().published == 2
    assert scene.documents() == scene.truth()
    with pytest.raises(OwnedByAnother, match=r"table .* is foreign: it belongs to another registry"):
        scene.run(table=former.table, checkpoint=former.checkpoint)
    with pytest.raises(OwnedByAnother, match=r"checkpoint .* is foreign"):
        scene.run(checkpoint=former.checkpoint)


def test_a_table_that_was_restored_under_its_own_name_is_noticed(scene: Scene, rows: SimpleNamespace) -> None:
    stars(scene, rows, "ada", "bob")
    scene.run()
    before = items_now(scene)
    scene.produce(rows.user(0, "cyd"), rows.gone(rows.user(1, "bob")), partition=0)
    scene.run()
    restore(scene, before, scene.settings.table)

    with pytest.raises(OwnedByAnother, match=r"table .* went back to an earlier moment: .* `statestore run --adopt`"):
        scene.run()
    with pytest.raises(OwnedByAnother, match=r"checkpoint .* is foreign"):
        scene.run(adopt=True)
    assert sorted(items_now(scene), key=str) == sorted(before, key=str)
    scene.settings = replace(scene.settings, checkpoint=f"{scene.settings.checkpoint}-restored")
    scene.run(adopt=True)
    assert scene.documents() == scene.truth()  # which also looks at the sequences
    assert scene.run().published == 0


def test_a_new_registry_takes_over_the_table_of_a_lost_one(scene: Scene, rows: SimpleNamespace) -> None:
    stars(scene, rows, "ada", "bob", "cyd")
    scene.run()
    scene.registry.operate(Signature("a test", "the new registry assigns another slot"), operations.move, "star", 1, 3)
    for topic in ("user", "star"):
        record_boundary(scene.registry, scene.admin(), scene.topic(topic), who="a test", why="lost records")
    scene.produce(rows.user(0, "bob"), rows.star("bob", "repo9"), partition=0)
    scene.run()
    scene.produce(rows.gone(rows.user(2, "cyd")), rows.star("ada", "repo9"), partition=0)

    schema = f"{scene.settings.registry_schema}_new"
    settings = replace(scene.settings, registry_schema=schema, checkpoint=f"{scene.settings.checkpoint}-new")
    with open_registry(settings) as registry:
        lines = rebuild(settings, registry, scene)
        star, user = lines
        assert re.fullmatch("star: 7 rows, epochs up to 2, layouts up to [3-5]", star)  # by how far the move went
        assert user == "user: 3 rows, epochs up to 2, layouts up to 1"
        assert rebuild(settings, registry, scene) == lines  # as after a call that broke off
        new = replace(scene, settings=settings, registry=registry, plan=plan_of(registry.snapshot()))
        assert new.run().tally["read"] == len(scene.lines)
        assert new.documents() == new.truth()  # which also looks at the sequences
        new.produce(rows.star("bob", "repo10"), partition=0)
        assert new.run().published == 2
        assert new.documents() == new.truth()
        with pytest.raises(OwnedByAnother, match="a job has run with the registry"):
            rebuild(settings, registry, scene)
    with pytest.raises(OwnedByAnother, match="belongs to another registry"):
        scene.run()


DROPPED = (
    r"the table {} belongs to a registry, and there is none in the schema {}: .*`statestore rebuild-registry --regi"
)


@pytest.mark.plain
def test_every_verb_names_the_cure_of_a_dropped_registry_and_the_same_schema_gets_the_new_one(
    scene: Scene, rows: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    settings, texts = scene.settings, texts_of(scene)
    stars(scene, rows, "ada", "bob")
    scene.run()
    scene.produce(rows.user(0, "bob"), rows.star("bob", "repo9"), partition=0)
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(RegistryMissing, match="rebuild-registry"):
        run_without_registry(scene)

    for name in ("registry", "registry_schema", "store", "table", "endpoint", "region", "bootstrap_servers", "job"):
        monkeypatch.setenv(f"STATESTORE_{name.upper()}", str(getattr(settings, name)))
    definitions = ["--definitions", str(tmp_path)]
    run, status, apply, plan = ["run", "--once", "--checkpoint", "new"], ["status"], ["apply"], ["plan"]
    for words in (run, [*run, *definitions], status, [*apply, *definitions], [*plan, *definitions]):
        assert main(words) == 1, words
        said = capsys.readouterr().err
        assert re.search(DROPPED.format(settings.table, settings.registry_schema), said), (words, said)
    with pytest.raises(RegistryMissing):  # no verb has made another one
        scene.registry.snapshot()

    rebuilds = ["rebuild-registry", "--registry-is-lost", *definitions]
    assert main(rebuilds) == 0, capsys.readouterr().err
    scene.positions.clear()
    assert scene.run().tally["read"] == len(scene.lines)
    assert scene.documents() == scene.truth()  # which also looks at the sequences


def run_without_registry(scene: Scene) -> None:
    """Drops the registry under an open job."""
    with scene.opened() as job:
        drop_schema(scene.settings.registry.replace("+psycopg", ""), scene.settings.registry_schema)
        run_job(job, once=True)


def rebuild(settings: Any, registry: Any, scene: Scene) -> list[str]:
    """Rebuilds the registry from the definitions of the scene; returns what it found in the table."""
    lines = list[str]()
    store = open_store(settings)
    rebuild_registry(
        settings, load(texts_of(scene)), registry, store, who="a test", check=no_check, report=lines.append
    )
    store.close()
    return sorted(lines)


def texts_of(scene: Scene) -> dict[str, str]:
    """The definitions of the scene's registry, by the names of their files."""
    snapshot = scene.registry.snapshot()
    texts = {"entities.yaml": json.dumps({one.name: dict(one.definition) for one in snapshot.entities})}
    return texts | {f"products/{one.name}.yaml": json.dumps(dict(one.definition)) for one in snapshot.products}
