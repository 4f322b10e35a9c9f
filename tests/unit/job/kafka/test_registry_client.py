"""The client of a schema registry, over HTTP: what it asks, how often, and what it makes of each answer."""

import os
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.required import require_schema_packages

require_schema_packages()

from processor.environment.settings.settings import Settings  # noqa: E402
from processor.errors import SchemaRegistryAway, SettingError  # noqa: E402
from processor.finding import DoctorCheck  # noqa: E402
from processor.job.kafka import registry_client  # noqa: E402
from processor.job.kafka.framed_records import MISSING_SECONDS, RegistrySchemas  # noqa: E402
from processor.job.kafka.registry_client import RegistryClient, SchemaMissing, WriterSchema  # noqa: E402
from processor.tools.doctor.checks import examine  # noqa: E402
from processor.tools.doctor.kafka import check_schema_registry  # noqa: E402
from processor.values.record import Change  # noqa: E402
from tests.secured.broker import Authority  # noqa: E402
from tests.support.registry_stub import RegistryStub, registry_stub  # noqa: E402
from tests.unit.engine.protocol.decoding import entity  # noqa: E402
from tests.unit.job.kafka.framed import avro, decoded, reason, record_of, row  # noqa: E402

ROW = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "int"}]}
TABLE = entity("t", "id", "id int")


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryStub]:
    monkeypatch.setattr(registry_client, "RETRY", {"max.retries": 1, "retries.wait.ms": 1})
    with registry_stub() as made:
        yield made


def schemas(stub: RegistryStub, **access: str) -> RegistrySchemas:
    return RegistrySchemas(RegistryClient({"url": stub.url, **access}).schema)


def test_each_schema_is_asked_for_once(stub: RegistryStub) -> None:
    first, second = stub.add(ROW), stub.add(ROW)
    framed = schemas(stub)
    for _ in range(3):
        for number in (first, second):
            assert row(TABLE, None, avro(number, ROW, {"id": 1}), framed) == {"id": 1}
    assert stub.requests == ["/schemas/ids/1", "/schemas/ids/2"]


def test_references_are_asked_for_once_also_those_of_references(stub: RegistryStub) -> None:
    def refer(name: str) -> dict[str, Any]:
        return {"name": name, "subject": name, "version": 1}

    unit = {"type": "enum", "name": "Unit", "symbols": ["EUR"]}
    money = {"type": "record", "name": "Money", "fields": [{"name": "unit", "type": "Unit"}]}
    fields = [{"name": "id", "type": "int"}, {"name": "a", "type": "Money"}, {"name": "b", "type": "Unit"}]
    stub.add(unit, subject="Unit")
    stub.add(money, references=[refer("Unit")], subject="Money")
    number = stub.add({"type": "record", "name": "Row", "fields": fields}, references=[refer("Money"), refer("Unit")])
    whole = [fields[0], {"name": "a", "type": money | {"fields": [{"name": "unit", "type": unit}]}}, fields[2]]
    data = avro(number, {"type": "record", "name": "Row", "fields": whole}, {"id": 1, "a": {"unit": "EUR"}, "b": "EUR"})
    table, framed = entity("t", "id", "id int, a json, b string"), schemas(stub)
    for _ in range(2):
        assert row(table, None, data, framed) == {"id": 1, "a": {"unit": "EUR"}, "b": "EUR"}
    assert [path.partition("?")[0] for path in stub.requests] == [
        f"/schemas/ids/{number}",
        "/subjects/Money/versions/1",
        "/subjects/Unit/versions/1",
    ]


def test_a_protobuf_schema_is_asked_for_in_its_compiled_form(stub: RegistryStub) -> None:
    number = stub.add('syntax = "proto3"; message Row {}', "PROTOBUF", compiled="Q29tcGlsZWQ=")
    assert RegistryClient({"url": stub.url}).schema(number) == WriterSchema("PROTOBUF", "Q29tcGlsZWQ=", {})


def test_names_of_json_are_the_names_of_the_columns(stub: RegistryStub) -> None:
    names = {
        "id": {"type": "integer"},
        "n": {"type": "integer"},
        "user-id": {"type": "string"},
        "user_id": {"type": "string"},
    }
    number = stub.add({"type": "object", "title": "Value", "properties": names}, "JSON")
    head = b"\0" + number.to_bytes(4, "big")
    table = entity("t", "id", "id int, user-id string, n int")
    for body in (b'{"id":1,"user-id":"RIGHT","user_id":"other"}', b'{"id":1,"user_id":"other","user-id":"RIGHT"}'):
        expected = {"id": 1, "user-id": "RIGHT", "n": None, "user_id": "other"}
        assert row(table, None, head + body, schemas(stub)) == expected
    found = row(table, None, head + b'{"id":1,"n":5,"user_id":"other"}', schemas(stub))
    assert found == {"id": 1, "user-id": None, "n": 5, "user_id": "other"}


def test_json_with_a_schema_keeps_every_digit(stub: RegistryStub) -> None:
    decimal = {"title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes", "type": "string"}
    properties = {
        "id": {"type": "integer", "connect.type": "int64"},
        "price": {"oneOf": [{"type": "null"}, decimal | {"connect.parameters": {"scale": "2"}}]},
        "at": {"type": "integer", "title": "io.debezium.time.MicroTimestamp", "connect.type": "int64"},
        "tags": {"type": "array", "items": {"type": "integer", "title": "io.debezium.time.Date"}},
        "x": {"type": "number"},
    }
    number = stub.add({"type": "object", "title": "Value", "properties": properties}, "JSON")
    body = b'{"id":9007199254740993,"price":"BNI=","at":1795214323797123,"tags":[19000],"x":0.10000000000000000000001}'
    table = entity("t", "id", "id int, price decimal, at timestamp, tags date[], x decimal")
    found = row(table, None, b"\0" + number.to_bytes(4, "big") + body, schemas(stub))
    assert {name: str(value) for name, value in found.items()} == {
        "id": "9007199254740993",
        "price": "12.34",
        "at": "2026-11-20T22:38:43.797123Z",
        "tags": "['2022-01-08']",
        "x": "0.10000000000000000000001",
    }
    envelope = {
        "type": "object",
        "properties": {"after": {"oneOf": [{"type": "null"}, {"type": "object", "properties": properties}]}},
    }
    number = stub.add(envelope, "JSON")
    data = b"\0" + number.to_bytes(4, "big") + b'{"op":"c","before":null,"after":' + body + b"}"
    assert row(table, None, data, schemas(stub)) == found


def test_json_that_does_not_parse_is_a_dead_letter(stub: RegistryStub) -> None:
    number = stub.add({"type": "object"}, "JSON")
    why = reason(TABLE, None, b"\0" + number.to_bytes(4, "big") + b"{", schemas(stub))
    assert why.startswith("value: the body does not fit schema 1: not JSON")


def test_an_unknown_id_is_a_dead_letter_and_asked_for_again_after_a_while(stub: RegistryStub) -> None:
    now = [0.0]
    framed = RegistrySchemas(RegistryClient({"url": stub.url}).schema, lambda: now[0])
    data = avro(1, ROW, {"id": 1})
    for _ in range(3):
        assert reason(TABLE, None, data, framed) == (
            "value: the schema registry has no schema 1, or lacks a reference of it (Schema 1 not found)"
        )
    assert len(stub.requests) == 1
    stub.add(ROW)
    now[0] = MISSING_SECONDS + 1
    assert isinstance(decoded(TABLE, None, data, framed), Change)


def test_a_missing_reference_is_a_dead_letter(stub: RegistryStub) -> None:
    number = stub.add(ROW, references=[{"name": "A", "subject": "gone", "version": 1}])
    assert "lacks a reference of it (Subject 'gone' not found.)" in reason(
        TABLE, None, avro(number, ROW, {"id": 1}), schemas(stub)
    )


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_fails_is_transient_and_the_next_try_asks_again(stub: RegistryStub, status: int) -> None:
    number = stub.add(ROW)
    framed = schemas(stub)
    stub.fails = [status, status]
    with pytest.raises(
        SchemaRegistryAway, match=f"the schema registry {stub.url} fails for schema 1: the backend store is down"
    ):
        decoded(TABLE, None, avro(number, ROW, {"id": 1}), framed)
    assert row(TABLE, None, avro(number, ROW, {"id": 1}), framed) == {"id": 1}


def test_the_client_tries_again_before_it_gives_up(stub: RegistryStub) -> None:
    number = stub.add(ROW)
    stub.fails = [503]
    assert row(TABLE, None, avro(number, ROW, {"id": 1}), schemas(stub)) == {"id": 1}


def test_a_registry_that_does_not_answer_is_transient(stub: RegistryStub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "SECONDS", 0.2)
    stub.waits = threading.Event()
    with pytest.raises(SchemaRegistryAway, match=r"does not answer for schema 1 \(ReadTimeout"):
        schemas(stub).fetch(record_of(avro(1, ROW, {"id": 1})))
    with pytest.raises(SchemaRegistryAway, match=r"does not answer for schema 1 \(ConnectError"):
        RegistrySchemas(RegistryClient({"url": "http://127.0.0.1:1"}).schema).fetch(record_of(avro(1, ROW, {"id": 1})))


def test_a_user_proves_who_it_is(stub: RegistryStub) -> None:
    stub.user = "me:pass:word"
    number = stub.add(ROW)
    good = schemas(stub, username="me", password="pass:word")
    assert row(TABLE, None, avro(number, ROW, {"id": 1}), good) == {"id": 1}
    for access in ({}, {"username": "me", "password": "hunter2hunter2"}):
        with pytest.raises(
            SettingError, match=r"refuses the user for schema 1 \(HTTP 401\): correct \[schema_registry\]"
        ) as error:
            schemas(stub, **access).fetch(record_of(avro(1, ROW, {"id": 1})))
        assert "hunter2" not in str(error.value)


def test_an_address_without_a_registry_is_a_wrong_setting(stub: RegistryStub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingError, match="refuses to give schema 1: HTTP 404 Not Found"):
        RegistryClient({"url": f"{stub.url}/elsewhere"}).schema(1)
    monkeypatch.setattr(stub, "answer", lambda *_: (200, "<html>welcome</html>"))
    with pytest.raises(SettingError, match="answers, but not as a schema registry, for schema 1"):
        RegistryClient({"url": stub.url}).schema(1)


def test_doctor_asks_the_registry_and_shows_no_password(stub: RegistryStub) -> None:
    stub.user = "me:hunter2hunter2"
    check = DoctorCheck(name="schemas", looks_at="", look=check_schema_registry, cure="cure")

    def look(**access: str) -> tuple[str, str]:
        settings = replace(Settings(), schema_registry=tuple(sorted(access.items())))
        around: Any = SimpleNamespace(settings=settings, embedded=True)
        ((_, finding),) = examine([check], around)
        assert "hunter2" not in finding.text
        return finding.state, finding.text

    user = {"username": "me", "password": "hunter2hunter2"}
    assert look(url=stub.url, **user) == ("ok", f"{stub.url} knows JSON, PROTOBUF, AVRO")
    assert look(url=stub.url)[0] == "failure"
    assert look() == ("ok", "the settings name none, so the job reads JSON without a registry")


def test_rules_that_change_values_are_refused(stub: RegistryStub) -> None:
    number = stub.add(ROW)
    rule = {"name": "encrypt", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "ENCRYPT"}
    stub.schemas[number]["ruleSet"] = {"domainRules": [rule]}
    with pytest.raises(SchemaMissing, match="schema 1 has rules that change or encrypt values"):
        RegistryClient({"url": stub.url}).schema(number)


def test_both_sides_prove_themselves_by_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "RETRY", {"max.retries": 0})
    authority, stranger = Authority(folder=tmp_path, name="ca"), Authority(folder=tmp_path, name="stranger")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*authority.issue("registry"))
    tls.load_verify_locations(authority.file)
    tls.verify_mode = ssl.CERT_REQUIRED
    certificate, key = authority.issue("client")
    client = {"ssl.certificate.pem": certificate.read_text(), "ssl.key.pem": key.read_text()}
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with registry_stub(tls) as stub:
        number = stub.add(ROW)
        good = schemas(stub, **client, **{"ssl.ca.pem": authority.file.read_text()})
        assert row(TABLE, None, avro(number, ROW, {"id": 1}), good) == {"id": 1}
        for access in (
            client,
            {**client, "ssl.ca.pem": stranger.file.read_text()},
            {"ssl.ca.pem": authority.file.read_text()},
        ):
            with pytest.raises(SchemaRegistryAway, match="does not answer for schema 1"):
                schemas(stub, **access).fetch(record_of(avro(1, ROW, {"id": 1})))
    assert os.listdir(folder) == []


def test_a_pem_text_that_is_none_is_a_wrong_setting_and_no_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    with pytest.raises(SettingError, match="the client of the schema registry refuses its settings"):
        RegistryClient({"url": "https://127.0.0.1:1", "ssl.ca.pem": pem})
    assert os.listdir(tmp_path) == []
