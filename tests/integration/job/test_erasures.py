"""`statestore erase` over real parts: no store holds a value of the erased row, and its old records do not bring it back.

Each value of the row has a mark. After the erasure the test searches every item of the table, every table of the registry, the
topic of dead letters, the checkpoint, and all output of the jobs.
"""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import psycopg
import pytest

from processor.cli.main import main
from processor.engine.plan.planning import plan_of, requirements_of
from processor.engine.protocol.segments import unpack
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import setting_flags
from processor.environment.stores.kinds import open_store
from processor.job.run.topics import record_boundary
from processor.language.definitions.load import load
from processor.tools.operate.registry import rebuild_registry
from registry.repository.registry import no_check
from tests.integration.job.profile_definitions import profile_definitions

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.slow,  # six starts of a job
    pytest.mark.filterwarnings(
        "ignore:unclosed:ResourceWarning"
    ),  # PySpark's own, and of the verb, which ends with its process
]
MARK = "rowcanary77af"
OTHER = "othercanary31"


def test_nothing_keeps_an_erased_row_and_only_new_records_bring_it_back(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    scene.produce(rows.user(1, f"{MARK} before"), rows.user(2, OTHER), rows.star(f"{MARK} now", "first"), partition=0)
    scene.produce(rows.user(1, f"{MARK} now"), ("user", {"id": 1}, f"{MARK} no JSON".encode()), partition=0)
    scene.produce(("user", {"id": 2}, f"{OTHER} no JSON".encode()), partition=0)
    scene.run()
    assert scene.documents()['{"id":1}']["name"] == f"{MARK} now"
    assert any(f"{MARK} now" in item for item in _stored_items(scene))
    scene.produce(rows.user(1, f"{MARK} unread"), partition=0)  # before the erasure, and the job has not read it yet

    for name, _ in setting_flags():
        monkeypatch.setenv(f"STATESTORE_{name.upper()}", str(getattr(scene.settings, name)))
    assert main(["erase", "user", '{"id": 1}', "--referring"]) == 0
    assert capfd.readouterr().out == f"""statestore erase star '{{"who":"{MARK} now","repo":"first"}}'\n"""
    assert main(["erase", "user", '{"id": 1}', "--json"]) == 0
    printed = capfd.readouterr()
    certificate = json.loads(printed.out)
    assert certificate["complete"]
    assert certificate["key"] == {"id": 1}
    assert {"topic": scene.topic("user"), "partition": 0, "offset": 6} in certificate["new_from"]
    assert certificate["referring"] == [{"entity": "star", "columns": ["who"], "rows": 1}]
    assert main(["erase", "star", json.dumps({"who": f"{MARK} now", "repo": "first"}), "--without-key"]) == 0
    assert MARK not in printed.out + printed.err
    assert MARK not in "".join(capfd.readouterr())

    (marker,) = [
        item for item in _stored_items(scene) if MARK in item
    ]  # the key of the star, until DynamoDB removes it
    assert "TABLE#star" in marker
    assert "_deleted" in marker
    assert MARK not in _stored_registry(scene)
    assert MARK not in str(scene.rejected())
    assert [letter[4] for letter in scene.rejected()] == [f"{OTHER} no JSON".encode()]
    left = [path for path in Path(scene.settings.checkpoint).rglob("*") if path.is_file()]
    assert [path for path in left if MARK.encode() in path.read_bytes()] == []
    topic = scene.plan.products["profile"].product.topic
    assert scene.last_values(topic)['{"id":1}'] is None
    assert OTHER in scene.documents()['{"id":2}']["name"]

    counted = scene.run().tally
    assert counted["ignored: erased"] == 1
    scene.lose_checkpoint()
    scene.run()
    assert scene.replay() == [(4, "refused")]
    assert [item for item in _stored_items(scene) if MARK in item] == [marker]
    assert MARK not in str(scene.rejected())
    assert set(scene.documents()) == {'{"id":2}'}

    scene.produce(rows.user(1, "a new start"), partition=0)
    scene.run()
    assert scene.documents()['{"id":1}'] == {"id": 1, "name": "a new start", "stars": []}


@pytest.fixture
def erase(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Gives `statestore erase` for a user, and returns the exit status."""

    def give(key: str) -> int:
        for name, _ in setting_flags():
            monkeypatch.setenv(f"STATESTORE_{name.upper()}", str(getattr(scene.settings, name)))
        return main(["erase", "user", key])

    return give


def test_a_new_registry_does_not_bring_an_erased_row_back(
    scene: Scene, rows: SimpleNamespace, erase: Callable[[str], int]
) -> None:
    scene.produce(rows.user(1, MARK), rows.user(2, OTHER), partition=0)
    scene.run()
    assert erase('{"id": 1}') == 0
    schema = f"{scene.settings.registry_schema}_new"
    settings = replace(scene.settings, registry_schema=schema, checkpoint=f"{scene.settings.checkpoint}-new")
    definitions = load(profile_definitions(scene.settings.job))
    with open_registry(settings) as registry, closing(open_store(settings)) as store:
        rebuild_registry(settings, definitions, registry, store, who="a test", check=no_check, report=lambda _: None)
        assert {b.epoch for b in registry.epochs([scene.topic("star"), scene.topic("user")])} == {2}
        new = replace(scene, settings=settings, registry=registry, plan=plan_of(registry.snapshot()))
        assert new.run().tally["ignored: erased"] == 1
        assert set(new.documents()) == {'{"id":2}'}
        assert [item for item in _stored_items(new) if MARK in item] == []
        new.produce(rows.user(1, "a new start"), partition=0)
        new.run()
        assert new.documents()['{"id":1}']["name"] == "a new start"


def test_a_topic_that_an_entity_had_before_does_not_bring_an_erased_row_back(
    scene: Scene, rows: SimpleNamespace, erase: Callable[[str], int]
) -> None:
    first, second = scene.topic("user"), f"{scene.settings.job}.second"
    scene.admin().ensure([second], partitions=2, compacted=False)
    scene.produce(rows.user(1, MARK), rows.user(2, OTHER), partition=0)
    scene.run()
    _move(scene, second)
    scene.produce(rows.user(1, f"{MARK} second"), partition=0)
    scene.run()
    assert erase('{"id": 1}') == 0
    _move(scene, first)
    # from its first record, as newer than all others
    record_boundary(scene.registry, scene.admin(), first, who="a test", why="a new boundary")
    scene.lose_checkpoint()
    assert scene.run().tally["ignored: erased"] == 1
    assert set(scene.documents()) == {'{"id":2}'}
    assert [item for item in _stored_items(scene) if MARK in item] == []


def _move(scene: Scene, topic: str) -> None:
    """Gives the users another topic."""
    definitions = profile_definitions(scene.settings.job)
    entities = json.loads(definitions["entities.yaml"])
    entities["user"]["topic"] = topic
    required = requirements_of(load(definitions | {"entities.yaml": json.dumps(entities)}))
    scene.registry.apply(required, who="a test", why="another topic")
    scene.plan = plan_of(scene.registry.snapshot())


def _stored_items(scene: Scene) -> list[str]:
    """Every item of the table, with all of its attributes; packed texts unpacked."""
    client = boto3.client("dynamodb", endpoint_url=scene.settings.endpoint, region_name="us-east-1")
    pages = client.get_paginator("scan").paginate(TableName=scene.settings.table, ConsistentRead=True)
    items = [item for page in pages for item in page["Items"]]
    client.close()
    packed = [item["rows"]["B"] for item in items if "B" in item.get("rows", ())]
    return [*map(str, items), *(unpack(one).decode() for one in packed)]


def _stored_registry(scene: Scene) -> str:
    schema = scene.settings.registry_schema
    with psycopg.connect(scene.settings.registry.replace("+psycopg", "")) as connection:
        tables = connection.execute("select tablename from pg_tables where schemaname = %s", [schema]).fetchall()
        assert len(tables) > 5
        return "\n".join(
            str(connection.execute(f'select * from "{schema}"."{table}"'.encode()).fetchall()) for (table,) in tables
        )
