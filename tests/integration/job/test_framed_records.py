"""A job over topics of Avro: workers ask a registry for the schemas, and a registry that fails costs no record."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.required import require_schema_packages

require_schema_packages()

from tests.integration.job.running_job import wait_until  # noqa: E402
from tests.integration.job.surviving_job import surviving  # noqa: E402
from tests.support.registry_stub import registry_stub  # noqa: E402
from tests.unit.job.kafka.framed import avro  # noqa: E402

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
USER = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"], "default": None}],
}
SOURCE = {"type": "record", "name": "Source", "fields": [{"name": "table", "type": "string"}]}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", USER], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": SOURCE},
        {"name": "op", "type": "string"},
    ],
}


def test_documents_of_avro_are_those_of_json_and_a_failing_registry_only_delays_them(
    scene: Scene, rows: SimpleNamespace
) -> None:
    with registry_stub() as stub:
        key, value, stub.user = stub.add(KEY), stub.add(ENVELOPE), "me:secret"
        access = {"url": stub.url, "username": "me", "password": "secret"}

        def framed(number: int, name: str, op: str = "c") -> tuple[str, Any, Any]:
            row = {"id": number, "name": name}
            content = {"before": None, "after": row, "source": {"table": "user"}, "op": op}
            return "user", avro(key, KEY, {"id": number}), avro(value, ENVELOPE, content)

        def gone(number: int) -> tuple[str, Any, Any]:
            return "user", avro(key, KEY, {"id": number}), None

        lines = [framed(n, f"user{n}") for n in range(40)]
        scene.produce(*lines, rows.star("user1", "r1", "n"), rows.star("user39", "r2"))
        scene.produce(framed(1, "user39", "u"), gone(2), ("user", None, avro(99, USER, {"id": 3, "name": "x"})))
        stub.fails = [503] * 5  # all tries of the first request, and more
        settings = tuple(sorted(access.items()))
        with pytest.raises(Exception, match=r"the schema registry .* fails for schema"):
            scene.run(schema_registry=settings)
        assert scene.documents() == {}
        stub.fails = []
        done = scene.run(schema_registry=settings)
        asked = [path for path in stub.requests if path.startswith("/schemas/ids/")]
    assert done.tally["dead letters"] == 1
    (letter,) = scene.rejected()
    assert letter[5].startswith("value: the schema registry has no schema 99")
    documents = scene.documents()
    assert sorted(map(int, (json.loads(one)["id"] for one in documents))) == [n for n in range(40) if n != 2]
    assert documents['{"id":1}'] == {"id": 1, "name": "user39", "stars": [{"repo": "r2", "note": ""}]}
    assert documents['{"id":39}'] == {"id": 39, "name": "user39", "stars": [{"repo": "r2", "note": ""}]}
    assert len(asked) < 40  # three ids, by each of the worker processes, and not by each of the records


def test_a_running_job_waits_for_its_schema_registry(scene: Scene) -> None:
    with registry_stub() as stub:
        key, value = stub.add(KEY), stub.add(USER)
        access = (("url", stub.url),)
        with surviving(scene, schema_registry=access) as survivor:
            stub.fails = [503] * 100_000
            scene.produce(("user", avro(key, KEY, {"id": 1}), avro(value, USER, {"id": 1, "name": "ada"})))
            wait_until(lambda: survivor.says("degraded", "schema registry"), survivor)
            assert scene.documents() == {}
            stub.fails = []
            wait_until(lambda: '{"id":1}' in scene.documents(), survivor)
            wait_until(lambda: survivor.says("recovered", "schema registry"), survivor)
        assert survivor.failures == []
    assert scene.rejected() == []
