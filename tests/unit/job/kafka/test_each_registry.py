"""The suite that each kind of registry passes, in each framing that its clients write."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.required import require_schema_packages

require_schema_packages()

from botocore.exceptions import ClientError  # noqa: E402

from processor.engine.protocol.decode import decode  # noqa: E402
from processor.environment.settings.schema_registry import KINDS, schema_registry_place  # noqa: E402
from processor.environment.settings.settings import Settings  # noqa: E402
from processor.errors import SchemaRegistryAway, SettingError  # noqa: E402
from processor.finding import DoctorCheck  # noqa: E402
from processor.job.kafka import registry_client  # noqa: E402
from processor.job.kafka.framed_records import CLIENTS, RegistrySchemas  # noqa: E402
from processor.job.kafka.schemas import has_subjects, registration_refusal  # noqa: E402
from processor.tools.doctor.checks import examine  # noqa: E402
from processor.tools.doctor.kafka import check_schema_registry  # noqa: E402
from processor.values.framing import FRAMINGS, NO_SCHEMAS, FramedReader  # noqa: E402
from processor.values.record import Change, Record, Rejected  # noqa: E402
from tests.support.registry_stub import HttpStub, listening  # noqa: E402
from tests.unit.engine.protocol.decoding import entity  # noqa: E402
from tests.unit.job.kafka.registry_scenes import (  # noqa: E402
    PROTO,
    ROW_BEGINNINGS,
    ROW_MESSAGE,
    STYLES,
    RegistryScene,
    Style,
    avro_body,
    registry_scene,
)

ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
BODY = avro_body(ROW, {"id": 7, "name": "Ann"})
TABLE = entity("t", "id", "id int, name string")
OVER_HTTP = [style for style in STYLES if style.kind != "glue"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "RETRY", {"max.retries": 1, "retries.wait.ms": 1})
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")


@pytest.fixture(params=STYLES, ids=lambda style: style.name)
def scene(request: pytest.FixtureRequest) -> Iterator[RegistryScene]:
    with registry_scene(request.param) as made:
        yield made


def row(record: Record, schemas: FramedReader, table: Any = TABLE) -> dict[str, Any]:
    schemas.fetch(record)
    result = decode(record, table, schemas)
    assert isinstance(result, Change), result
    return dict(result.row or {})


def rejected(record: Record, schemas: FramedReader) -> Rejected:
    schemas.fetch(record)
    result = decode(record, TABLE, schemas)
    assert isinstance(result, Rejected), result
    assert "\n" not in result.reason
    return result


def test_the_settings_the_framings_and_the_clients_know_the_same_kinds() -> None:
    assert set(KINDS) == set(FRAMINGS) == set(CLIENTS) == {style.kind for style in STYLES}


def test_avro_is_read_in_the_value_and_in_the_key(scene: RegistryScene) -> None:
    number, key = scene.add(ROW), scene.add(KEY, name="key")
    record = scene.record(number, BODY, (key, avro_body(KEY, {"id": 7})))
    assert row(record, scene.schemas()) == {"id": 7, "name": "Ann"}
    other = scene.record(number, BODY, (key, avro_body(KEY, {"id": 8})))
    assert rejected(other, scene.schemas()).code == "key-differs"


def test_json_is_read_by_its_schema_and_keeps_every_digit(scene: RegistryScene) -> None:
    properties = {
        "id": {"type": "integer"},
        "price": {
            "title": "org.apache.kafka.connect.data.Decimal",
            "type": "string",
            "connect.type": "bytes",
            "connect.parameters": {"scale": "2"},
        },
    }
    number = scene.add({"type": "object", "properties": properties}, "JSON")
    table = entity("t", "id", "id int, price decimal")
    found = row(scene.record(number, b'{"id":9007199254740993,"price":"BNI="}'), scene.schemas(), table)
    assert {name: str(value) for name, value in found.items()} == {"id": "9007199254740993", "price": "12.34"}


def test_protobuf_is_read_as_the_message_that_the_body_names(scene: RegistryScene) -> None:
    number = scene.add(PROTO, "PROTOBUF")
    body = ROW_BEGINNINGS[scene.style.kind] + ROW_MESSAGE
    found = row(scene.record(number, body), scene.schemas())
    assert found == {"id": 7, "name": "Ann", "by_name": {}}


@pytest.mark.parametrize("style", OVER_HTTP, ids=lambda style: style.name)
def test_references_are_read_also_those_of_references(style: Style) -> None:
    with registry_scene(style) as scene:
        scene.add({"type": "enum", "name": "Unit", "symbols": ["EUR"]}, name="Unit")
        money = {"type": "record", "name": "Money", "fields": [{"name": "unit", "type": "Unit"}]}
        scene.add(money, name="Money", references=["Unit"])  # also of the row: asked for once
        fields = [{"name": "id", "type": "int"}, {"name": "a", "type": "Money"}]
        number = scene.add({"type": "record", "name": "Row", "fields": fields}, references=["Money", "Unit"])
        found = row(scene.record(number, b"\x0e\x00"), scene.schemas(), entity("t", "id", "id int, a json"))
        assert sorted(set(scene.asked)) == sorted(scene.asked)
        assert found == {"id": 7, "a": {"unit": "EUR"}}


def test_each_schema_is_asked_for_once(scene: RegistryScene) -> None:
    record, schemas = scene.record(scene.add(ROW), BODY), scene.schemas()
    row(record, schemas)
    asked = list(scene.asked)
    assert asked
    for _ in range(3):
        row(record, schemas)
    assert scene.asked == asked


def test_an_unknown_id_is_a_dead_letter_and_asked_for_again_after_a_while(scene: RegistryScene) -> None:
    number = scene.add(ROW)
    unknown = "01234567-89ab-cdef-0123-456789abcdef" if scene.style.kind == "glue" else number + 40
    now = [0.0]
    schemas = RegistrySchemas(scene.client().schema, lambda: now[0], FRAMINGS[scene.style.kind])
    record = scene.record(unknown, BODY)
    for _ in range(3):
        found = rejected(record, schemas)
        assert (found.code, "the schema registry has no schema" in found.reason) == ("schema-missing", True)
    asked = len(scene.asked)
    now[0] = 31.0
    rejected(record, schemas)
    assert len(scene.asked) > asked


def test_a_registry_that_does_not_answer_is_away(scene: RegistryScene) -> None:
    number = scene.add(ROW)
    nowhere = {"endpoint": "http://127.0.0.1:1"} if scene.style.kind == "glue" else {"url": "http://127.0.0.1:1"}
    with pytest.raises(SchemaRegistryAway, match=r"127\.0\.0\.1:1.* does not answer for schema"):
        scene.schemas(**nowhere).fetch(scene.record(number, BODY))


@pytest.mark.parametrize("style", OVER_HTTP, ids=lambda style: style.name)
def test_a_registry_that_fails_once_is_asked_again_and_then_is_away(style: Style) -> None:
    with registry_scene(style) as scene:
        record, schemas = scene.record(scene.add(ROW), BODY), scene.schemas()
        assert scene.stub is not None
        scene.stub.fails = [503]
        row(record, schemas)
        later = scene.schemas()
        scene.stub.fails = [503, 503]
        with pytest.raises(SchemaRegistryAway, match="fails for schema"):
            later.fetch(record)
        row(record, later)


@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServiceException"])
def test_an_answer_of_glue_that_may_pass_is_away(code: str) -> None:
    with registry_scene(STYLES[-1]) as scene:
        client: Any = scene.client()
        client._client.get_schema_version = denied(code, 500)
        with pytest.raises(SchemaRegistryAway, match=f"AWS Glue in eu-central-1 fails for schema x: {code}"):
            client.schema("x")


def denied(code: str, status: int = 400) -> Any:
    def refuse(**_: Any) -> None:
        raise ClientError(
            {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}},
            "GetSchemaVersion",
        )

    return refuse


def test_wrong_credentials_are_a_wrong_setting_without_the_secret(scene: RegistryScene) -> None:
    record = scene.record(scene.add(ROW), BODY)
    if scene.stub is None:
        for code, cure in (
            ("AccessDeniedException", "allow glue:GetSchemaVersion"),
            ("ExpiredTokenException", "correct the credentials"),
        ):
            client: Any = scene.client()
            client._client.get_schema_version = denied(code)
            with pytest.raises(SettingError, match=cure):
                RegistrySchemas(client.schema, framing=FRAMINGS["glue"]).fetch(record)
        return
    scene.stub.user = "me:pass:word"
    row(record, scene.schemas(username="me", password="pass:word"))
    for access in ({}, {"username": "me", "password": "hunter2hunter2"}):
        with pytest.raises(SettingError, match=r"HTTP 401\): correct \[schema_registry\]") as error:
            scene.schemas(**access).fetch(record)
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("other", STYLES, ids=lambda style: style.name)
def test_the_framing_of_another_kind_is_named_with_the_setting_to_write(scene: RegistryScene, other: Style) -> None:
    scene.add(ROW)
    other_id = "01234567-89ab-cdef-0123-456789abcdef" if other.kind == "glue" else 1
    value, headers = other.frame(other_id, BODY, "value")
    record = Record(topic="t", partition=0, offset=0, key=b'{"id":7}', value=value, headers=headers)
    own = FRAMINGS[scene.style.kind].find(value, headers, "value")
    if own is not None and (own.head or other.kind == scene.style.kind):
        return  # of the same form: the kind in the settings decides
    found = rejected(record, scene.schemas())
    assert found.code == "other-registry"
    same_bytes = "confluent" if other.name == "apicurio, 4 bytes" else other.kind
    assert f'write kind = "{same_bytes}" in [schema_registry]' in found.reason


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_job_without_a_registry_names_what_it_lacks(style: Style) -> None:
    value, headers = style.frame("01234567-89ab-cdef-0123-456789abcdef" if style.kind == "glue" else 1, BODY, "value")
    record = Record(topic="t", partition=0, offset=0, key=b'{"id":7}', value=value, headers=headers)
    assert "[schema_registry]" in rejected(record, NO_SCHEMAS).reason


def test_no_part_of_a_record_is_a_row_of_nulls_or_a_traceback(scene: RegistryScene) -> None:
    number = scene.add(ROW)
    whole, schemas = scene.record(number, BODY), scene.schemas()
    schemas.fetch(whole)
    for length in range(len(whole.value or b"")):
        cut = replace(whole, value=(whole.value or b"")[:length])
        schemas.fetch(cut)
        assert isinstance(decode(cut, TABLE, schemas), Rejected), length
    longer = replace(whole, value=(whole.value or b"") + b"\0")
    assert isinstance(decode(longer, TABLE, schemas), Rejected)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("AVRO", '{"type": "record"}'), ("PROTOBUF", 'syntax = "proto3"; message Row { x'), ("JSON", "[")],
)
def test_a_schema_that_cannot_be_read_is_a_dead_letter(scene: RegistryScene, kind: str, text: str) -> None:
    if (kind, scene.style.kind) in (("PROTOBUF", "confluent"), ("JSON", "glue")):
        return  # the registry itself refuses it
    found = rejected(scene.record(scene.add(text, kind), BODY), scene.schemas())
    assert (found.code, "cannot be read" in found.reason) == ("schema-missing", True)


def test_doctor_asks_each_kind_and_the_place_is_shown_in_an_outage(scene: RegistryScene) -> None:
    scene.add(ROW)
    check = DoctorCheck(name="schemas", looks_at="", look=check_schema_registry, cure="cure")
    settings = replace(Settings(), schema_registry=tuple(sorted(scene.access.items())))
    around: Any = SimpleNamespace(settings=settings, embedded=True)
    ((_, finding),) = examine([check], around)
    assert finding.state == "ok"
    assert schema_registry_place(scene.access) in finding.text


def test_only_the_api_of_confluent_has_subjects_and_takes_schemas_of_documents(scene: RegistryScene) -> None:
    access = tuple(scene.access.items())
    confluent = scene.style.kind == "confluent"
    assert has_subjects(access) is confluent
    assert (registration_refusal(access) == "") is confluent


class OtherServer(HttpStub):
    """A server of another kind, which answers each request in JSON."""

    def answer(self, path: str, query: dict[str, list[str]], authorization: str | None) -> tuple[Any, ...]:
        return 200, {"status": "ok"}


def test_the_json_of_another_server_is_a_wrong_address_of_apicurio() -> None:
    with listening(stub := OtherServer()):
        client = CLIENTS["apicurio"]({"url": f"{stub.url}/apis/registry/v3", "ids": "contentId"})
        for ask in (client.probe, partial(client.schema, 1)):
            with pytest.raises(SettingError, match="answers, but not as an Apicurio registry"):
                ask()


def test_a_kind_of_which_an_old_registry_of_apicurio_is_not_sure_is_a_dead_letter() -> None:
    """It ignores the id in a search, and shows all artifacts."""
    with registry_scene(STYLES[2]) as scene:
        number = scene.add(ROW)
        scene.add("{}", "JSON", name="other")
        stub: Any = scene.stub
        answer = stub.answer
        stub.answer = lambda path, query, user: answer(path, {}, user)
        found = rejected(scene.record(number, BODY), scene.schemas())
        assert f"does not say the kind of schema {number}" in found.reason


def test_a_value_whose_placeholder_is_compressed_is_still_refused(scene: RegistryScene) -> None:
    tags = {"type": "array", "items": "string"}
    schema = {
        "type": "record",
        "name": "Row",
        "fields": [{"name": "id", "type": "int"}, {"name": "tags", "type": tags}],
    }
    body = avro_body(schema, {"id": 7, "tags": ["__debezium_unavailable_value", "x"]})
    schemas, table = scene.schemas(), entity("t", "id", "id int, tags json")
    record = scene.record(scene.add(schema), body)
    schemas.fetch(record)
    result = decode(record, table, schemas)
    assert isinstance(result, Rejected), json.dumps(str(result))
    assert result.code == "not-sent"


def test_a_pending_version_of_glue_is_a_dead_letter() -> None:
    with registry_scene(STYLES[-1]) as scene:
        client: Any = scene.client()
        client._client.get_schema_version = lambda **_: {
            "Status": "PENDING",
            "DataFormat": "AVRO",
            "SchemaDefinition": "{}",
        }
        record = scene.record("01234567-89ab-cdef-0123-456789abcdef", BODY)
        assert (
            "is PENDING in the registry"
            in rejected(record, RegistrySchemas(client.schema, framing=FRAMINGS["glue"])).reason
        )


def test_avro_in_the_json_encoding_of_apicurio_is_a_dead_letter_that_names_it() -> None:
    with registry_scene(STYLES[3]) as scene:
        record = scene.record(scene.add(ROW), b'{"id": 7, "name": "Ann"}')
        headers = (record.headers[0], ("apicurio.value.encoding", b"JSON"))
        found = rejected(replace(record, headers=headers), scene.schemas())
        assert "apicurio.registry.avro.encoding" in found.reason
