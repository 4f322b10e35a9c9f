"""Wrong files, addresses and messages end a command with one line and status 1, never with a traceback."""

import json
from pathlib import Path
from typing import Any

import pytest

from processor.cli.main import main
from processor.cli.options import user_name
from processor.errors import KafkaError
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.language.definitions.load import load, read_directory
from processor.language.product.document import read_root_key
from processor.values.dead_letters import read_dead_letters, reject_message
from processor.values.record import Record, Rejected
from registry.errors import RegistryError
from registry.repository import Registry
from statestore.dynamodb.store import DynamoStore
from statestore.store import Terminal

EXAMPLE = Path(__file__).parents[3] / "examples" / "github"
NOWHERE = "127.0.0.1:1"


def error_of(capsys: Any, *command: str) -> str:
    assert main(command) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return str(line)


@pytest.mark.parametrize("output", ["no/folder/out.jsonl", ".", "file/out.jsonl"])
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("topics.jsonl").touch()
    line = error_of(capsys, "try", "--definitions", str(EXAMPLE), "--from", "topics.jsonl", "--to", output)
    assert line.startswith(f"statestore try: {output}: cannot be written: ")
    line = error_of(
        capsys, "run", "--definitions", str(EXAMPLE), "--once", "--to", "out.jsonl", "--dead-letters", output
    )
    assert line.startswith(f"statestore run: {output}: cannot be written: ")


def test_a_full_disk_is_an_error(tmp_path: Path, capsys: Any) -> None:
    topics = tmp_path / "topics.jsonl"
    topics.write_text(json.dumps({"topic": "user", "value": {"id": 1, "email": "a"}}) + "\n")
    command = (
        "try",
        "--definitions",
        str(EXAMPLE),
        "--from",
        str(topics),
        "--to",
        "/dev/full",
        "--rejects",
        "/dev/null",
    )
    assert "/dev/full: cannot be written: No space left on device" in error_of(capsys, *command)


@pytest.mark.parametrize("key", ["{email: a}", "{'email': 'a'}", '{"email": a'])
def test_a_key_of_wrong_json_is_shown_as_it_should_be(key: str) -> None:
    user = load(read_directory(EXAMPLE)).entities["user"]
    cure = r"""is not JSON: .*: write '{"email":"..."}', with names and texts in double quotes"""
    with pytest.raises(ValueError, match=cure):
        read_root_key(user, key)
    assert read_root_key(user, "a{b") == ("a{b",)


@pytest.mark.parametrize(
    ("kind", "example"),
    [("int", "7"), ("decimal", "7"), ("float", "7"), ("bool", "true"), ("string", '"..."'), ("date", '"..."')],
)
def test_the_example_of_a_key_is_one_that_the_verb_takes(kind: str, example: str) -> None:
    text = f"t: {{key: [a, b], columns: {{a: {kind}, b: string}}}}"
    entity = load({"entities.yaml": text}).entities["t"]
    with pytest.raises(ValueError, match="give it as JSON") as error:
        read_root_key(entity, "x")
    shown = str(error.value).rpartition("as JSON: ")[2]
    assert shown == f'{{"a":{example},"b":"..."}}'
    if kind != "date":
        assert read_root_key(entity, shown)


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def getuser() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr("getpass.getuser", getuser)
    monkeypatch.setattr("os.getuid", lambda: 12345)
    assert user_name() == "uid 12345"


@pytest.mark.parametrize("endpoint", ["localhost:8000", "http//x", "http://", "://", "http://a b"])
def test_an_endpoint_that_is_no_url_is_an_error(credentials: None, endpoint: str) -> None:
    with pytest.raises(Terminal, match="give the endpoint as http://host:port") as error:
        DynamoStore(table="states", endpoint_url=endpoint, region="us-east-1")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@h:port/d", "postgresql://me:secret@h:99999999/d", f"postgresql://me:secret@{NOWHERE}/d?no_option=1",
        f"postgresql://me:secret@{NOWHERE}/d?connect_timeout=soon", f"postgresql://me:secret@{NOWHERE}/d?sslmode=perhaps",
        "postgresql://me:secret@127.0.0.1:1,127.0.0.2:2:3/d", "postgresql://me:secret@[::1/d", "secret", "", "mysql://me:secret@h/d",
    ],
)  # fmt: skip
def test_a_wrong_address_of_the_registry_is_an_error_without_the_password(url: str) -> None:
    with pytest.raises(RegistryError) as error, Registry(url) as registry:
        registry.snapshot()
    assert str(error.value).strip()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "extra",
    [{"librdkafka.no.such.option": "1"}, {"security.protocol": "perhaps"}, {"librdkafka.socket.timeout.ms": "soon"}],
)
def test_a_wrong_setting_of_kafka_is_an_error(extra: dict[str, str]) -> None:
    def read(bootstrap: str, settings: dict[str, str]) -> list[Record]:
        return list(read_topic(bootstrap, settings, "topic"))

    for make in (Admin, KafkaOutbox, read):
        with pytest.raises(KafkaError, match=r"Kafka's client refuses its settings: .*correct"):
            make(NOWHERE, extra)


def test_a_foreign_message_in_the_dead_letter_topic_is_left_out() -> None:
    record = Record(topic="user", partition=0, offset=3, epoch=1, timestamp=5, key=b"1", value=b"{")
    good = reject_message(Rejected(record=record, reason="broken"), "rejects")
    reason = ("statestore.reject.reason", b"because")
    offset = ("statestore.reject.offset", b"one")
    negative = ("statestore.reject.offset", b"-1")
    bytes_ = ("statestore.reject.topic", b"\xff")
    strange = [(), (reason,), (*good.headers, offset), (*good.headers, negative), (*good.headers, bytes_)]
    topic = [
        Record(topic="rejects", partition=0, offset=n, timestamp=7, key=b"1", value=b"{", headers=headers)
        for n, headers in enumerate([*strange, good.headers])
    ]
    foreign: list[Record] = []
    (letter,) = read_dead_letters(topic, foreign)
    assert (letter.rejected.record, letter.rejected.reason) == (record, "broken")
    assert [message.offset for message in foreign] == [0, 1, 2, 3, 4]


def test_a_key_with_a_member_twice_is_refused_because_nobody_knows_which_is_meant() -> None:
    user = load(read_directory(EXAMPLE)).entities["user"]
    with pytest.raises(ValueError, match=r'is not clear: the member "email" is there twice; write it once'):
        read_root_key(user, '{"email": "a", "email": "b"}')


@pytest.mark.parametrize("place", ['"topic": "user", "value": {"id": 1, "id": 2}', '"topic": "user", "topic": "user"'])
def test_a_line_of_recorded_topics_with_a_member_twice_is_refused(tmp_path: Path, capsys: Any, place: str) -> None:
    file = tmp_path / "topics.jsonl"
    file.write_text("{" + place + "}\n")
    line = error_of(capsys, "try", "--definitions", str(EXAMPLE), "--from", str(file))
    assert f"{file}:1: not clear: the member " in line
    assert "is there twice; write it once" in line
