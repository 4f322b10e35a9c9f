"""The published document as the console finds it, in JSON and in Avro."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.required import require_schema_packages

require_schema_packages()

from processor.engine.plan.planning import plan_alone  # noqa: E402
from processor.environment.settings.settings import Settings  # noqa: E402
from processor.job.kafka import registry_client  # noqa: E402
from processor.language.definitions.load import load  # noqa: E402
from processor.tools.web.console import documents as module  # noqa: E402
from processor.tools.web.console.documents import PublishedMessage, published_message  # noqa: E402
from processor.values.framing import framed  # noqa: E402
from processor.values.record import Record  # noqa: E402
from tests.support.registry_stub import RegistryStub, registry_stub  # noqa: E402
from tests.unit.language.product.avro_trip import AvroTrip  # noqa: E402

TEXTS = {
    "entities.yaml": "user: {key: [id], columns: {id: int, name: string}}",
    "framed.yaml": "{product: framed, root: user, format: avro, fields: [id, name]}",
    "plain.yaml": "{product: plain, root: user, fields: [id, name]}",
}
DEFINITIONS = load(TEXTS)
ENTITIES = plan_alone(DEFINITIONS, slots=5).declared_entities
FRAMED = DEFINITIONS.products["framed"]
TRIP = AvroTrip(FRAMED, DEFINITIONS.entities)
KEY, DOCUMENT = b'{"id":1}', {"id": 1, "name": "ada"}


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryStub]:
    """A registry that has the schema of the product, and is asked once."""
    monkeypatch.setattr(registry_client, "RETRY", {"max.retries": 0})
    with registry_stub() as made:
        made.add(TRIP.schema)
        yield made


def found(monkeypatch: pytest.MonkeyPatch, product: str, *values: bytes | None, **settings: Any) -> PublishedMessage:
    """The message of the key, where its topic has these values for it."""
    records = [Record(topic=product, partition=0, offset=n, key=KEY, value=value) for n, value in enumerate(values)]
    monkeypatch.setattr(module, "read_sample", lambda *_: records)
    at = Settings(bootstrap_servers="127.0.0.1:9092", **settings)
    return published_message(at, DEFINITIONS.products[product], ENTITIES, KEY)


def numbered(value: bytes) -> bytes:
    """The same message by the number that the stub gave to the schema."""
    return framed(1, value[5:])


def test_the_last_message_of_a_key_is_its_document(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, "plain", b'{"id":1,"name":"eve"}', b'{"id":1,"name":"ada"}').value == DOCUMENT
    assert found(monkeypatch, "plain", b"{}", None) == PublishedMessage(True)
    assert found(monkeypatch, "plain").why == "it is not among the last 2,000 messages of topic plain"
    assert "no document of this version" in found(monkeypatch, "plain", b"\x00\x01").why


def test_a_message_in_avro_is_read_by_the_schema_of_its_registry(
    monkeypatch: pytest.MonkeyPatch, stub: RegistryStub
) -> None:
    access = {"schema_registry": (("url", stub.url),)}
    message = numbered(TRIP.write(DOCUMENT))
    assert found(monkeypatch, "framed", message, **access) == PublishedMessage(True, DOCUMENT)
    assert found(monkeypatch, "framed", message, None, **access) == PublishedMessage(True)
    assert "no document of this version" in found(monkeypatch, "framed", message[:-1], **access).why
    unknown = found(monkeypatch, "framed", framed(9, message[5:]), **access)
    assert (unknown.found, "no document of this version" in unknown.why) == (False, True)


def test_a_schema_registry_that_is_away_or_unknown_gives_a_sentence(
    monkeypatch: pytest.MonkeyPatch, stub: RegistryStub
) -> None:
    message = numbered(TRIP.write(DOCUMENT))
    assert found(monkeypatch, "framed", message).why.endswith("give [schema_registry] in the settings file")
    stub.fails = [503]
    away = found(monkeypatch, "framed", message, schema_registry=(("url", stub.url),))
    assert away.why.startswith(f"the schema registry {stub.url} fails for schema 1")
    nobody = found(monkeypatch, "framed", message, schema_registry=(("url", "http://127.0.0.1:1"),))
    assert nobody.why.startswith("the schema registry http://127.0.0.1:1 does not answer for schema 1")
