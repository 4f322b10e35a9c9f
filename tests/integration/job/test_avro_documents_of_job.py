"""A job that publishes Avro: a consumer with confluent-kafka's own deserialiser reads the documents that SQL answers."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.required import require_schema_packages

require_schema_packages()

from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: E402
from confluent_kafka.schema_registry.avro import AvroDeserializer  # noqa: E402

from processor.engine.rounds.follow_up_stages import RootToRepair  # noqa: E402
from processor.environment.settings.settings import (  # noqa: E402
    Settings,
    setting_flags,
    statestore_version,
)
from processor.environment.stores.kinds import open_store  # noqa: E402
from processor.errors import StatestoreError  # noqa: E402
from processor.job.kafka.reader import read_topic  # noqa: E402
from processor.job.run.run_job import run_job  # noqa: E402
from processor.tools.inspect.oracle import oracle  # noqa: E402
from processor.tools.operate.repair import Repair  # noqa: E402
from processor.values.dead_letters import RefusedBy, read_dead_letters  # noqa: E402
from tests.support.registry_stub import RegistryStub, registry_stub  # noqa: E402

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]
MAIN = "import sys; from processor.cli.main import main; sys.exit(main(sys.argv[1:]))"
STARS = {"many": "star", "on": {"who": "name"}, "fields": ["repo", "note"]}
CONTENT = {"format": "avro", "fields": ["id", "name"], "embed": {"stars": STARS}}


@pytest.fixture
def stub() -> Iterator[RegistryStub]:
    with registry_stub() as made:
        made.user = "me:secret"
        yield made


def access(stub: RegistryStub) -> tuple[tuple[str, str], ...]:
    return (("password", "secret"), ("url", stub.url), ("username", "me"))


def consumed(scene: Scene, stub: RegistryStub) -> dict[str, Any]:
    """The last value of each key, as a consumer has it."""
    client = SchemaRegistryClient({"url": stub.url, "basic.auth.user.info": stub.user})
    deserialise = AvroDeserializer(client)
    published = {(record.key or b"").decode(): record.value for record in scene.published("framed")}
    documents = {key: None if value is None else deserialise(value, None) for key, value in published.items()}
    client.close()
    return documents


def answered(scene: Scene, users: dict[int, str], stars: list[tuple[str, str, str]]) -> dict[str, Any]:
    """The documents that SQL answers over these rows."""
    tables: dict[str, list[dict[str, Any]]] = {
        "user": [{"id": number, "name": name} for number, name in users.items()],
        "star": [{"who": who, "repo": repo, "note": note} for who, repo, note in stars],
    }
    entities = scene.plan.declared_entities
    with oracle(scene.settings.registry, f"{scene.settings.job}_sql", entities) as postgres:
        postgres.load(tables)
        return postgres.documents(scene.plan.products["framed"].product)


def verified(scene: Scene, stub: RegistryStub, folder: Path) -> SimpleNamespace:
    """`statestore verify framed --json`, in a process of its own."""
    settings = folder / "settings.toml"
    settings.write_text(f'[schema_registry]\nurl = "{stub.url}"\nusername = "me"\npassword = "env:REGISTRY_PASSWORD"\n')
    variables = {f"STATESTORE_{name.upper()}": str(getattr(scene.settings, name)) for name, _ in setting_flags()}
    run = subprocess.run(
        [sys.executable, "-c", MAIN, "verify", "framed", "--json", "--sql", "--settings", str(settings)],
        env=os.environ | variables | {"REGISTRY_PASSWORD": "secret"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout, run.stderr
    return SimpleNamespace(code=run.returncode, found=json.loads(run.stdout)["products"]["framed"])


def test_a_consumer_of_avro_gets_the_documents_of_sql_also_after_a_restart(
    scene: Scene, rows: SimpleNamespace, stub: RegistryStub, tmp_path: Path
) -> None:
    scene.add("framed", **CONTENT)
    settings = access(stub)
    scene.produce(*(rows.user(n, f"user{n}") for n in range(1, 21)), rows.star("user1", "r1", "n"))
    scene.run(schema_registry=settings)
    users, stars = {n: f"user{n}" for n in range(1, 21)}, [("user1", "r1", "n")]
    assert consumed(scene, stub) == answered(scene, users, stars)

    scene.uncommit_last()
    assert scene.run(schema_registry=settings).published == 0, "equal documents do not go out again"
    scene.produce(rows.gone(rows.user(2, "user2")), rows.user(3, "user1"), rows.star("user1", "r2"))
    scene.run(schema_registry=settings)
    users = users | {3: "user1"}
    del users[2]
    stars.append(("user1", "r2", ""))
    assert consumed(scene, stub) == answered(scene, users, stars) | {'{"id":2}': None}
    assert {subject for subject, _ in stub.subjects if subject.endswith("-value")} == {
        f"{scene.settings.job}.framed-value"
    }
    checked = verified(scene, stub, tmp_path)
    assert (checked.code, checked.found["compared"], checked.found["differences"]) == (0, 20, [])


def test_another_version_of_the_product_has_another_schema_and_old_readers_read_it(
    scene: Scene, rows: SimpleNamespace, stub: RegistryStub
) -> None:
    scene.add("framed", **CONTENT)
    scene.produce(rows.user(1, "ada"), rows.star("ada", "r1", "n"))
    scene.run(schema_registry=access(stub))
    old = next(text["schema"] for text in stub.schemas.values())
    counted = {"many": "star", "on": {"who": "name"}, "value": "count(*)"}
    scene.add("framed", **CONTENT | {"fields": ["id"], "embed": {"stars": STARS, "n": counted}})
    scene.run(schema_registry=access(stub))
    assert consumed(scene, stub) == {'{"id":1}': {"id": 1, "stars": [{"repo": "r1", "note": "n"}], "n": 1}}
    client = SchemaRegistryClient({"url": stub.url, "basic.auth.user.info": stub.user})
    value = scene.published("framed")[-1].value
    assert AvroDeserializer(client, old)(value, None) == {
        "id": 1,
        "name": None,
        "stars": [{"repo": "r1", "note": "n"}],
    }
    client.close()


def test_a_refused_schema_stops_its_product_and_the_next_start_publishes_it(
    scene: Scene, rows: SimpleNamespace, stub: RegistryStub
) -> None:
    scene.add("framed", **CONTENT)
    stub.refuses[f"{scene.settings.job}.framed-value"] = (409, "the new schema lacks a default")
    scene.produce(rows.user(1, "ada"))
    lines: list[str] = []
    with scene.opened(report=lambda event: lines.append(event.text), schema_registry=access(stub)) as job:
        run_job(job, once=True)
        assert "(the new schema lacks a default)" in job.driver.progress.backlog.stopped["framed"]
    assert any(line.startswith("product framed stopped: the schema registry refuses the schema") for line in lines)
    assert (scene.published("framed"), scene.documents()) == ([], scene.truth())

    assert scene.run().published == 0, "a job without a registry stops the product, too"
    stub.refuses.clear()
    scene.run(schema_registry=access(stub))
    assert consumed(scene, stub) == {'{"id":1}': {"id": 1, "name": "ada", "stars": []}}


def test_a_value_beyond_its_type_is_a_dead_letter_until_a_change_of_its_row_makes_the_document_fit(
    scene: Scene, rows: SimpleNamespace, stub: RegistryStub
) -> None:
    orders = {"many": "order", "on": {"buyer": "id"}, "fields": ["id", "paid"]}
    columns = {"id": "int", "buyer": "int", "paid": "int"}
    scene.add_entity("order", columns, "framed", {"orders": orders}, format="avro")

    def order(paid: int) -> tuple[str, dict[str, int], dict[str, int]]:
        return "order", {"id": 7}, {"id": 7, "buyer": 1, "paid": paid}

    scene.produce(rows.user(1, "ada"), rows.user(2, "bob"), order(2**63))
    with scene.opened(schema_registry=access(stub)) as job:
        run_job(job, once=True)
        assert (job.driver.progress.backlog.stopped, job.driver.tally["dead letters"]) == ({}, 0)
        assert job.monitor.state({})["unfit_documents"] == {"framed": 1}
    assert consumed(scene, stub) == {'{"id":2}': {"id": 2, "orders": []}}
    ((topic, _, _, key, value, reason),) = scene.rejected()
    assert (topic, key, value) == (f"{scene.settings.job}.framed", b'{"id":1}', None)
    assert reason == (
        "the document of product framed does not fit its Avro schema: orders: paid: expected int, found a number (Avro has 64 "
        "bits: declare decimal(38,0))"
    )
    (letter,) = read_dead_letters(read_topic(scene.settings.bootstrap_servers, {}, scene.settings.dead_letter_topic))
    assert letter.refused_by == RefusedBy(statestore_version(), scene.plan.version)

    assert [outcome for _, outcome in scene.replay(schema_registry=access(stub))] == ["refused"]
    assert len(scene.rejected()) == 1, "another start sends no second letter"
    scene.produce(order(5))
    scene.run(schema_registry=access(stub))
    assert consumed(scene, stub)['{"id":1}'] == {"id": 1, "orders": [{"id": 7, "paid": 5}]}
    assert [outcome for _, outcome in scene.replay(schema_registry=access(stub))] == ["superseded"]


def test_repair_publishes_avro(scene: Scene, rows: SimpleNamespace, stub: RegistryStub) -> None:
    scene.add("framed", **CONTENT)
    scene.produce(rows.user(1, "ada"))
    scene.run(schema_registry=access(stub))
    before = consumed(scene, stub)
    root = RootToRepair(("framed", "1"), '{"id":1}')
    with pytest.raises(StatestoreError, match="product framed cannot be repaired: its documents are Avro, and the"):
        repair(scene.settings, scene).publish([root])
    settings = replace(scene.settings, schema_registry=access(stub))
    assert repair(settings, scene).publish([root])["published"] == 1
    assert consumed(scene, stub) == before
    assert len(scene.published("framed")) == 2


def repair(settings: Settings, scene: Scene) -> Repair:
    return Repair(
        settings=settings, plan=scene.plan, registry=scene.registry, store=open_store(settings), owner="repair"
    )
