"""`statestore init` by the command: from a file, from Kafka, and from the subjects of a schema registry."""

import json
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from processor.cli.main import main
from processor.cli.printing.output import IGNORED_BY
from processor.job.kafka.outbox import KafkaOutbox
from processor.language.definitions.load import load, read_directory
from processor.values.envelopes.kinds import FORMATS
from processor.values.record import Message
from tests.support.registry_stub import registry_stub
from tests.support.required import require_schema_packages
from tests.unit.values.envelopes.samples import SAMPLES

ORDERS = Path(__file__).parents[3] / "examples" / "orders" / "topics.jsonl"


def init(directory: Path, *words: str) -> int:
    return main(["init", str(directory), *words])


def test_a_first_product_from_records_runs_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "new"
    assert init(new, "--from", str(ORDERS), "--root", "order", "--depth", "2") == 0
    out = capsys.readouterr().out.splitlines()
    assert [line for line in out if " offset " not in line] == [
        f"wrote {new / 'entities.yaml'}",
        "Records as the job reads them:",
        f"wrote {new / 'order_document.yaml'}",
    ]
    assert "order/0 offset 0: row 100: customer_id = 7, status = placed, placed_at = 2026-03-01T09:00:00Z" in out
    assert main(["check", str(new)]) == 0
    assert main(["try", "--definitions", str(new), "--from", str(ORDERS), "--to", str(tmp_path / "to")]) == 0
    document = json.loads((tmp_path / "to").read_text().splitlines()[0])["value"]
    assert document["customer"] == {"id": 7, "name": "Ada", "country": "GB"}
    assert [line["article"]["name"] for line in document["order_line"]] == ["Tea", "Kettle"]
    first = (new / "entities.yaml").read_text().splitlines()[0]
    assert (new / first.partition("$schema=")[2]).is_file()


ROW = {"id": 17, "customer": "Ada"}


@pytest.mark.parametrize("kind", [name for name in FORMATS if name != "row"])
def test_records_of_each_kind_are_shown_as_the_job_reads_them(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = SAMPLES[kind]
    values = [samples.insert(ROW), samples.delete(ROW), *samples.controls()[:1]]
    lines = [
        {"topic": "shop.item", "key": [17] if kind == "cockroach" else {"id": 17}, "value": value} for value in values
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert init(tmp_path / "new", "--from", str(tmp_path / "t.jsonl")) == 0
    shown = [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines() if " offset " in line]
    assert shown[0] == "row 17: customer = Ada"
    assert shown[1] in ("row 17: customer = Ada, deleted", "row 17: deleted")
    assert [line.partition(":")[0] for line in shown[2:]] == ["ignored"] * (len(values) - 2)
    assert (
        main(["try", "--definitions", str(tmp_path / "new"), "--from", str(tmp_path / "t.jsonl"), "--show-rows"]) == 0
    )
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2] for line in said if " offset " in line] == shown


def test_each_table_of_a_topic_is_drafted_with_its_form_and_a_tombstone_is_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = SAMPLES["debezium"]
    values = [samples.insert(ROW), samples.of_other_table({"id": 1}), samples.delete(ROW), None]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps({"topic": "app.item", "value": value}) for value in values))
    assert init(tmp_path / "new", "--from", str(tmp_path / "t.jsonl")) == 0
    entities = load(read_directory(tmp_path / "new")).entities
    assert [(one.table, one.format) for one in entities.values()] == [
        ("shop.public.item", "debezium"),
        ("shop.public.other", "debezium"),
    ]
    capsys.readouterr()
    main(["try", "--definitions", str(tmp_path / "new"), "--from", str(tmp_path / "t.jsonl"), "--show-rows"])
    shown = [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines() if " offset " in line]
    assert shown == [
        "row 17: customer = Ada",
        "row 1: its key alone",
        "row 17: customer = Ada, deleted",
        f"ignored: {IGNORED_BY['control']}",
    ]


def test_init_never_changes_a_file_and_shows_what_the_source_has_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = "customer: {key: [id], columns: {id: int}}\norder: {key: [id], columns: {id: string}}\n"
    own += "order_line: {key: [order_id, number], columns: {order_id: int, number: int}}\n"
    (tmp_path / "entities.yaml").write_text(own)
    (tmp_path / "order_document.yaml").write_text("product: mine\nroot: order\n")
    assert init(tmp_path, "--from", str(ORDERS), "--root", "order") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:3] == [f"--- {tmp_path / 'entities.yaml'}", "+++ the source", "+ # guess: 2 types by the values"
                                    " of 2 records without a schema"]  # fmt: skip
    assert "  customer:\n+     name: string\n+     country: string\n" in out
    assert "!     id: string here, int in the source" in out
    assert "stays as it is" in err
    assert (tmp_path / "entities.yaml").read_text() == own
    assert (tmp_path / "order_document.yaml").read_text() == "product: mine\nroot: order\n"
    assert init(tmp_path, "--from", str(ORDERS), "--check") == 1


def test_check_is_content_with_a_file_that_has_all_and_writes_nothing(tmp_path: Path) -> None:
    assert init(tmp_path, "--from", str(ORDERS), "--check") == 1
    assert list(tmp_path.iterdir()) == []
    assert init(tmp_path, "--from", str(ORDERS)) == 0
    assert init(tmp_path, "--from", str(ORDERS), "--check") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is no source: give --database URL, --from FILE, or --bootstrap-servers"),
        (
            ["--database", "postgresql://u:secret@h/d", "--topic-prefix", "app"],
            "the address holds a password; leave it",
        ),
        (["--database", "postgresql://u@h/d"], "--topic-prefix is missing: give the connector's topic.prefix"),
        (["--database", "oracle://u@h/d", "--topic-prefix", "app"], "write postgresql://USER@HOST/DATABASE, or mysql"),
        (["--database", "mysql://u@h", "--topic-prefix", "app"], "the address names no database"),
        (["--database", "env:NOWHERE", "--topic-prefix", "app"], "the variable NOWHERE is not set"),
        (["--database", "postgresql://u@h/d", "--from", "x"], "--database and --from are two sources"),
        (["--database", "postgresql://u@h/d", "--topic-prefix", "a", "--password", "x"], "holds the password itself"),
        (["--from", str(ORDERS), "--root", "ordr"], "--root: the source has no entity 'ordr' with a key; did you mean"),
        (["--from", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
    ],
)
def test_a_wrong_source_is_named_with_its_cure(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STATESTORE_BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    assert init(tmp_path, *words) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        (["log"], "the source shows no entity: nothing shows the keys of log; "),
        (["a.x y", "b.x_y"], "the entity `x_y` would be a.x y and b.x_y; give only one of them as the source"),
    ],
)
def test_a_source_that_makes_no_file_that_loads_is_refused(
    topics: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = {"x": 1} if len(topics) > 1 else None
    records = tmp_path / "t.jsonl"
    records.write_text("\n".join(json.dumps({"topic": topic, "key": key, "value": {"x": 1}}) for topic in topics))
    assert init(tmp_path / "d", "--from", str(records)) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_a_missing_driver_of_mysql_is_named_with_its_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pymysql", None)
    assert init(tmp_path, "--database", "mysql://u@h/d", "--topic-prefix", "app") == 1
    assert (
        "the driver PyMySQL of MySQL and MariaDB is missing: pip install 'statestore[mysql]'" in capsys.readouterr().err
    )


def test_topics_of_a_broker_below_the_prefix_are_drafted(tmp_path: Path) -> None:
    cluster = AdminClient({"test.mock.num.brokers": 1, "bootstrap.servers": "ignored:1"})
    (broker,) = cluster.list_topics().brokers.values()
    address = f"{broker.host}:{broker.port}"
    outbox = KafkaOutbox(address, {})
    for topic in ("app.user", "other.user", "statestore.rejects"):
        outbox.produce(Message(topic, b'{"id":1}', b'{"id":1,"name":"Ada"}'), 0, 0)
    outbox.flush()
    assert init(tmp_path, "--bootstrap-servers", address, "--topic-prefix", "app") == 0
    (user,) = load(read_directory(tmp_path)).entities.values()
    assert (user.name, user.topic, user.key, list(user.columns)) == ("user", "app.user", ("id",), ["id", "name"])


def test_subjects_of_a_schema_registry_are_drafted_without_a_record(tmp_path: Path) -> None:
    require_schema_packages()
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
    date = {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}
    price = {"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 12}
    row = {"type": "record", "name": "Value", "fields": [
        {"name": "id", "type": "int"}, {"name": "at", "type": ["null", date]}, {"name": "price", "type": price},
        {"name": "name", "type": "string", "doc": "in full"},
    ]}  # fmt: skip
    after = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]}]
    envelope = {"type": "record", "name": "Envelope", "fields": [*after, {"name": "op", "type": "string"}]}
    with registry_stub() as registry:
        registry.add(key, subject="app.user-key")
        registry.add(envelope, subject="app.user-value")
        registry.add({"type": "object", "properties": {"id": {"type": "integer"}}}, "JSON", subject="app.plain-value")
        registry.add('syntax = "proto3";', "PROTOBUF", subject="app.proto-value")
        settings = tmp_path / "s.toml"
        settings.write_text(f'[schema_registry]\nurl = "{registry.url}"\n')
        assert init(tmp_path / "d", "--settings", str(settings)) == 0
    text = (tmp_path / "d" / "entities.yaml").read_text()
    found = load({"entities.yaml": text}).entities
    assert list(found) == ["plain", "user"]
    assert {name: str(kind) for name, kind in found["user"].columns.items()} == {
        "id": "int", "at": "timestamp(us)", "price": "decimal", "name": "string",
    }  # fmt: skip
    assert found["user"].key == ("id",)
    assert "key: [id]  # guess: by its name: no schema names the columns of the key" in text
    assert "# the schemas of topic app.proto cannot be read: PROTOBUF needs a record" in text
