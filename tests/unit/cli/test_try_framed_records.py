"""`try` reads framed records of a file by the schemas of a registry."""

import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.required import require_schema_packages

require_schema_packages()

from processor.cli.main import main  # noqa: E402
from processor.language.definitions.load import load, read_directory  # noqa: E402
from processor.values.recorded_topics import to_line  # noqa: E402
from tests.support.registry_stub import registry_stub  # noqa: E402
from tests.unit.job.kafka.framed import avro  # noqa: E402
from tests.unit.job.kafka.registry_scenes import STYLES, Style, avro_body, registry_scene  # noqa: E402

USER: dict[str, Any] = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "email", "type": "string"},
        {"name": "at", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}},
    ],
}


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    (tmp_path / "entities.yaml").write_text("user: {key: [email], columns: {email: string, at: timestamp}}\n")
    (tmp_path / "profile.yaml").write_text("product: profile\nroot: user\nfields: [email, at]\n")
    return tmp_path


def write(path: Path, *values: bytes) -> str:
    lines = [json.dumps({"topic": "user", "value_base64": b64encode(value).decode()}) for value in values]
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_documents_and_dead_letters(
    definitions: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSWORD", "secret")
    with registry_stub() as stub:
        number, stub.user = stub.add(USER), "me:secret"
        settings = definitions / "settings.toml"
        settings.write_text(f'[schema_registry]\nurl = "{stub.url}"\nusername = "me"\npassword = "env:PASSWORD"\n')
        records = write(
            definitions / "r.jsonl",
            avro(number, USER, {"email": "a", "at": 1_000_001}),
            avro(9, USER, {"email": "b", "at": 1}),
        )
        flags = ["--definitions", str(definitions), "--from", records, "--settings", str(settings), "--json"]
        assert main(["try", *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["value"] for line in found["published"]] == [{"email": "a", "at": "1970-01-01T00:00:01.000001Z"}]
    assert [line["reason"] for line in found["dead_letters"]] == [
        "value: the schema registry has no schema 9, or lacks a reference of it (Schema 9 not found)"
    ]


def test_a_registry_that_does_not_answer_is_an_error_in_one_line(
    definitions: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processor.job.kafka.registry_client.RETRY", {"max.retries": 0})
    settings = definitions / "settings.toml"
    settings.write_text('[schema_registry]\nurl = "http://127.0.0.1:1"\n')
    records = write(definitions / "r.jsonl", avro(1, USER, {"email": "a", "at": 1}))
    flags = ["--definitions", str(definitions), "--from", records, "--settings", str(settings)]
    assert main(["try", *flags]) == 1
    assert "the schema registry http://127.0.0.1:1 does not answer for schema 1" in capsys.readouterr().err


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_the_verbs_of_authors_read_each_framing_of_a_file(
    definitions: Path, style: Style, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    file, settings, draft = definitions / "r.jsonl", definitions / "settings.toml", definitions / "draft"
    with registry_scene(style) as scene:
        settings.write_text(
            "".join(["[schema_registry]\n", *(f'{n} = "{text}"\n' for n, text in scene.access.items())])
        )
        body = avro_body(
            {**USER, "fields": [USER["fields"][0], {"name": "at", "type": "long"}]}, {"email": "a", "at": 1_000_001}
        )
        record = replace(scene.record(scene.add(USER), body), topic="user", key=b'{"email":"a"}')
        file.write_text(f"{to_line(record)}\n")
        flags = ["--from", str(file), "--settings", str(settings)]
        assert main(["try", "--definitions", str(definitions), *flags, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert main(["init", str(draft), *flags]) == 0
    assert [line["value"] for line in found["published"]] == [{"email": "a", "at": "1970-01-01T00:00:01.000001Z"}]
    assert found["dead_letters"] == []
    drafted = load(read_directory(draft)).entities["user"]
    assert (drafted.key, {name: str(one) for name, one in drafted.columns.items()}) == (
        ("email",),
        {"email": "string", "at": "timestamp(us)"},
    )
