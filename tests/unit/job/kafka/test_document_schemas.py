"""The schemas of Avro documents: what the job registers, what stops a product, and how published documents are read back."""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.support.required import require_schema_packages

require_schema_packages()

from processor.engine.plan.plan import Plan  # noqa: E402
from processor.engine.plan.planning import plan_alone  # noqa: E402
from processor.environment.settings.settings import Settings  # noqa: E402
from processor.errors import SchemaRegistryAway  # noqa: E402
from processor.job.kafka import registry_client  # noqa: E402
from processor.job.kafka.schemas import SchemaRegistration, as_json, registration_refusal  # noqa: E402
from processor.language.definitions.load import load  # noqa: E402
from processor.tools.doctor import kafka  # noqa: E402
from processor.tools.doctor.checks import examine  # noqa: E402
from processor.tools.doctor.context import CheckContext  # noqa: E402
from processor.values.record import Record  # noqa: E402
from tests.support.registry_stub import RegistryStub, registry_stub  # noqa: E402
from tests.unit.language.product.avro_trip import AvroTrip  # noqa: E402
from tests.unit.tools.doctor.healthy import Healthy  # noqa: E402


def plan_of(**formats: str) -> Plan:
    texts = {"entities.yaml": "user: {key: [id], columns: {id: int, name: string}}"}
    for name, text in formats.items():
        texts[f"{name}.yaml"] = f"{{product: {name}, root: user, topic: the.{name}, {text}}}"
    return plan_alone(load(texts), slots=20)


PLAN = plan_of(one="format: avro, fields: [id]", two="format: avro, value: name", three="fields: [id]")
ONE = (
    '{"type":"record","name":"Value","namespace":"statestore.one",'
    '"fields":[{"name":"id","type":["null","long"],"default":null}]}'
)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryStub]:
    monkeypatch.setattr(registry_client, "RETRY", {"max.retries": 1, "retries.wait.ms": 1})
    with registry_stub() as made:
        yield made


def registration(stub: RegistryStub, **access: str) -> SchemaRegistration:
    return SchemaRegistration(access=tuple(sorted({"url": stub.url, **access}.items())))


def test_each_schema_is_registered_once_under_the_topic_of_its_product(stub: RegistryStub) -> None:
    first = registration(stub)
    for _ in range(2):
        registered = first.register(PLAN)
        assert registered.ids.keys() == {"one", "two"}
        assert registered.refused == {}
    texts = {name: json.loads(stub.schemas[number]["schema"]) for name, number in registered.ids.items()}
    assert texts == {"one": json.loads(ONE), "two": ["null", "string"]}
    assert len(stub.requests) == 4
    assert {subject for subject, _ in stub.subjects} > {"the.one-value", "the.two-value"}
    assert registration(stub).register(PLAN) == registered, "the next start of the job"
    assert len(stub.schemas) == 2


def test_a_schema_that_somebody_registered_before_needs_no_right_to_write(stub: RegistryStub) -> None:
    number = stub.add(ONE, subject="the.one-value")
    stub.refuses["the.one-value"] = (403, "no right to write")
    assert registration(stub).register(plan_of(one="format: avro, fields: [id]")).ids == {"one": number}


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (
            409,
            "Schema being registered is incompatible with an earlier schema",
            "the schema registry refuses the schema of subject the.one-value (Schema being registered is incompatible with an "
            "earlier schema): change the product so that readers of the earlier schema can read it, give it another `topic`, ",
        ),
        (
            422,
            "Invalid Avro schema",
            "the schema registry refuses the schema of subject the.one-value (Invalid Avro schema",
        ),
        (403, "User is denied operation Write", "refuses the user for the schema of subject the.one-value (HTTP 403)"),
    ],
)
def test_a_refused_schema_stops_its_product_only(stub: RegistryStub, status: int, message: str, reason: str) -> None:
    stub.refuses["the.one-value"] = (status, message)
    registered = registration(stub).register(PLAN)
    assert registered.ids.keys() == {"two"}
    assert registered.refused.keys() == {"one"}
    assert reason in registered.refused["one"]


def test_wrong_credentials_and_no_registry_stop_the_avro_products(stub: RegistryStub) -> None:
    stub.user = "me:secret"
    refused = registration(stub, username="me", password="wrong").register(PLAN).refused
    assert all("refuses the user" in reason and "[schema_registry]" in reason for reason in refused.values())
    unset = SchemaRegistration(access=()).register(PLAN).refused
    assert unset.keys() == refused.keys() == {"one", "two"}
    assert all("give [schema_registry] in the settings file" in reason for reason in unset.values())
    assert SchemaRegistration(access=()).register(plan_of(three="fields: [id]")).refused == {}


def test_a_registry_that_fails_makes_the_job_try_again(stub: RegistryStub) -> None:
    stub.fails = [503, 503]
    first = registration(stub)
    with pytest.raises(SchemaRegistryAway, match=r"fails for the schema of subject the\.one-value"):
        first.register(PLAN)
    assert first.register(PLAN).refused == {}


def test_published_documents_are_read_back_by_the_schema_of_each(stub: RegistryStub) -> None:
    old, new = plan_of(one="format: avro, fields: [id, name]"), plan_of(one="format: avro, fields: [id]")
    values: list[bytes | None] = []
    for plan, document in ((old, {"id": 1, "name": "a"}), (new, {"id": 2})):
        number = registration(stub).register(plan).ids["one"]
        body = AvroTrip(plan.products["one"].product, {"user": plan.entities["user"].entity}).write(document)[5:]
        values.append(b"\0" + number.to_bytes(4, "big") + body)
    foreign = [b'{"id":3}', b"\0\0\0\0\x63abc", b"\0", b"\0" + stub.add('"string"').to_bytes(4, "big") + b"\x02a"]
    values += [None, *foreign]
    records = [Record(topic="the.one", partition=0, offset=n, key=b"", value=value) for n, value in enumerate(values)]
    access, entities = (("url", stub.url),), {"user": new.entities["user"].entity}
    found = [record.value for record in as_json(records, new.products["one"].product, entities, access)]
    assert found == [b'{"id":1}', b'{"id":2}', None, *foreign]


@pytest.mark.parametrize("answers", [True, False, None])
def test_doctor_says_when_avro_products_have_no_registry(stub: RegistryStub, answers: bool | None) -> None:
    access: Any = () if answers is None else (("url", stub.url),)
    stub.fails = [500] * 10 if answers is False else []
    around = Healthy(Settings(schema_registry=access), plan=PLAN)
    found = {pair.check.name: pair.finding for pair in examine(kafka.FORMATS, cast(CheckContext, around))}
    expected = {
        True: ("ok", "the job registers the schemas of one, two"),
        False: ("skipped", "schemas failed"),
        None: ("failure", "the documents of one, two are Avro, and the settings name no schema registry"),
    }
    state, text = expected[answers]
    assert found["avro products"].state == state
    assert found["avro products"].text.startswith(text)
    assert found["schemas"].state == ("failure" if answers is False else "ok")


def test_doctor_says_when_the_registry_takes_no_schemas_of_documents() -> None:
    access = (("kind", "glue"), ("region", "eu-west-1"))
    around = cast(CheckContext, Healthy(Settings(schema_registry=access), plan=PLAN))
    (found,) = kafka.check_avro_products(around)
    assert (found.state, found.text) == ("failure", f"one, two: {registration_refusal(access)}")
