"""Drafts from records: keys and types as the records show them, and their guesses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from processor.engine.protocol.decode import decode
from processor.language.definitions.load import load
from processor.tools.source.draft import DraftEntity, drift_lines, entities_text, guess_references, product_text
from processor.tools.source.topics import draft_topics
from processor.values.record import Record, Rejected
from processor.values.recorded_topics import read_records

SAMPLES = Path(__file__).parents[3] / "data" / "debezium"


def record(topic: str, key: Any, value: Any) -> Record:
    data = None if key is None else key if isinstance(key, bytes) else json.dumps(key).encode()
    return Record(topic=topic, partition=0, offset=0, key=data, value=json.dumps(value).encode())


def draft(*records: Record) -> DraftEntity:
    (found,) = draft_topics(records)
    return found


def types(entity: DraftEntity) -> dict[str, str]:
    return {name: column.type for name, column in entity.columns.items()}


def test_plain_rows_show_key_and_types() -> None:
    row = {"id": 1, "n": "Ada", "on": True, "w": 1.5, "at": "2026-01-01T10:00:00Z", "d": "2026-01-01", "j": {"a": 1}}
    found = draft(record("app.users", {"id": 1}, {**row, "tags": ["x", None], "lines": [{"a": 1}], "gone": None}))
    assert (found.name, found.topic, found.key) == ("users", "app.users", ("id",))
    assert types(found) == {
        "id": "int", "n": "string", "on": "bool", "w": "decimal", "at": "timestamp", "d": "date", "j": "json",
        "tags": "string[]", "lines": "json[]", "gone": "",
    }  # fmt: skip
    assert found.note == "guess: 10 types by the values of 1 records without a schema"


def test_a_value_of_another_kind_widens_the_type() -> None:
    rows = [{"id": 1, "a": 1, "b": "x", "c": 1}, {"id": 1, "a": 1.5, "b": "2026-01-01", "c": "x"}]
    found = types(draft(*(record("t", {"id": 1}, row) for row in rows)))
    assert found == {"id": "int", "a": "decimal", "b": "string", "c": "json"}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (['{"a": 1}', "[1]"], "json(text)"),
        ([{"a": 1}, '{"a": 1}'], "json(text)"),
        (["[]", ["x"]], "json(text)"),
        (['{"a": 1}', "no json"], "string"),
        (["{a,b}"], "string"),
        ([["[1]"]], "json(text)[]"),
    ],
)
def test_text_of_a_json_object_or_array_is_drafted_as_json_and_as_a_guess(seen: list[Any], expected: str) -> None:
    found = draft(*(record("t", {"id": 1}, {"id": 1, "a": value}) for value in seen))
    assert found.columns["a"].type == expected
    assert ("string, if the source keeps it as text" in found.columns["a"].guess) == ("(text)" in expected)


@pytest.mark.parametrize(
    ("key", "row", "expected", "guess"),
    [
        (7, {"a": 7, "b": 8}, ("a",), "its values equal the Kafka key"),
        (b"octocat", {"a": "octocat"}, ("a",), "its values equal the Kafka key"),
        (b"42", {"a": "42"}, ("a",), "its values equal the Kafka key"),
        (7, {"a": 7, "b": 7}, ("a",), "the Kafka key equals each of a, b"),
        (None, {"id": 7}, ("id",), "by its name: the records have no Kafka key"),
        (None, {"a": 7}, (), ""),
        (9, {"a": 7}, (), ""),
    ],
)
def test_a_key_without_names_is_a_guess(key: Any, row: dict[str, Any], expected: tuple[str, ...], guess: str) -> None:
    found = draft(record("t", key, row))
    assert (found.key, found.key_guess) == (expected, guess)


def test_a_table_without_a_key_is_a_comment_and_the_file_still_loads() -> None:
    text = entities_text(draft_topics([record("log", None, {"a": 7}), record("t", {"id": 1}, {"id": 1})]), ["# top"])
    assert "# log: {topic: log, key: [COLUMN], columns: {COLUMN: type}}" in text
    assert list(load({"entities.yaml": text}).entities) == ["t"]


def test_controls_and_topics_that_nobody_can_read_declare_nothing() -> None:
    transaction = {"status": "END", "id": "1", "event_count": 1, "data_collections": []}
    broken = Record(topic="broken", partition=0, offset=0, key=None, value=b"{")
    (found,) = draft_topics([record("app.transaction", {"id": "1"}, transaction), broken])
    assert found.name == "broken"
    assert found.note.startswith("no record of topic broken can be read: ")
    assert not found.is_whole


def test_two_topics_with_one_last_part_keep_their_whole_names() -> None:
    found = draft_topics([record(topic, {"id": 1}, {"id": 1}) for topic in ("a.t", "b.t", "9.x y")])
    assert [entity.name for entity in found] == ["x_y", "a.t", "b.t"]


def test_a_column_named_after_an_entity_and_its_key_is_a_guessed_join() -> None:
    rows = [
        record("users", {"id": 1}, {"id": 1}),
        record("orders", {"no": 1}, {"no": 1, "user_id": 1, "users_id": "x"}),
        record("repo", {"owner": "a", "name": "b"}, {"owner": "a", "name": "b"}),
        record("star", {"n": 1}, {"n": 1, "repo_owner": "a", "repo_name": "b"}),
    ]
    drafts = guess_references(draft_topics(rows))
    found = [(e.name, r.columns, r.parent, r.parent_columns) for e in drafts for r in e.references]
    assert found == [
        ("orders", ("user_id",), "users", ("id",)),
        ("star", ("repo_owner", "repo_name"), "repo", ("owner", "name")),
    ]
    header = ["# top"]
    texts = {"entities.yaml": entities_text(drafts, header), "p.yaml": product_text(drafts, "users", 2, header)}
    (product,) = load(texts).products.values()
    assert [(join.name, join.many, join.limit) for join in product.joins] == [("orders", True, 100)]


def test_names_that_yaml_reads_otherwise_are_quoted() -> None:
    columns = {"on": 1, "null": 1, "a: b": 1, "#x": 1, "1": 1, "Zoë": 1, "quote\"'": 1}
    (found,) = draft_topics([record("yes", {"on": 1}, columns)])
    entities = load({"entities.yaml": entities_text([found], ["# top"])}).entities
    assert list(entities["yes"].columns) == list(columns)


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\ufeff", "\u200b", "\U000e0001", "\x9f", "é", "😀"])
def test_a_name_with_a_sign_that_nobody_sees_is_declared_by_its_escape(sign: str) -> None:
    (found,) = draft_topics([record("t", {"id": 1}, {"id": 1, f"a{sign}b": 1})])
    text = entities_text([found], ["# top"])
    assert all(one.isprintable() for line in text.split("\n") for one in line)
    assert list(load({"entities.yaml": text}).entities["t"].columns) == ["id", f"a{sign}b"]


@pytest.mark.parametrize("name", ["a\x01b", "a\nb", "\x7f", "a\tb", "ids[]"])
def test_a_column_whose_name_nobody_can_declare_is_a_comment(name: str) -> None:
    rows = [record("t", {"id": 1}, {"id": 1, name: 1}), record("u", {name: 1}, {name: 1, "v": 1})]
    drafts = draft_topics(rows)
    text = entities_text(drafts, ["# top"])
    assert sum("no column can have such a name" in line for line in text.splitlines()) == 1
    assert "# u, topic u: not declared, because its key has a column without a type. Write:" in text
    product = product_text(drafts, "t", 1, ["# top"])
    definitions = load({"entities.yaml": text, "p.yaml": product})
    assert {each: list(one.columns) for each, one in definitions.entities.items()} == {"t": ["id"]}


ORDINARY = [
    path
    for path in sorted(SAMPLES.glob("*.jsonl*"))
    if not path.name.startswith(("postgres-types", "postgres-evolution-schema"))
]


@pytest.mark.parametrize("path", ORDINARY, ids=lambda path: path.name.partition(".")[0])
def test_captured_records_fit_their_own_draft(path: Path) -> None:
    """A draft of all records takes each of them. The two kinds left out hold values that no type takes."""
    records = list(read_records(str(path)))
    entities = load({"entities.yaml": entities_text(draft_topics(records), ["# top"])}).entities
    by_topic = {entity.topic: entity for entity in entities.values()}
    assert by_topic
    decoded = [decode(each, by_topic[each.topic]) for each in records if each.topic in by_topic]
    assert [one for one in decoded if type(one).__name__ == "Rejected"] == []


@pytest.mark.parametrize("mode", ["adaptive", "connect", "isostring", "nanoseconds"])
def test_a_schema_gives_the_types_of_the_page(mode: str) -> None:
    (found,) = draft_topics(read_records(str(SAMPLES / f"postgres-types-{mode}-schema.jsonl.gz")))
    unit = {"adaptive": "(us)", "connect": "(ms)", "isostring": "", "nanoseconds": "(ns)"}[mode]
    some = types(found)
    assert (some["at6"], some["moment"], some["date"]) == (f"timestamp{unit}", "timestamp", "date")
    assert (some["jsonb"], some["ints"], some["uuid"], some["point"]) == ("json", "int[]", "string", "json")
    if mode in ("adaptive", "nanoseconds"):
        assert (some["price"], some["free"], some["prices"]) == ("decimal(12,2)", "decimal", "decimal(8,2)[]")
    assert found.note == ""


ORDER = {"id": 1, "customer": "Ann"}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"data": ORDER, "beforeData": None, "headers": {"operation": "INSERT"}}, "an envelope of Qlik"),
        ({"before": None, "after": ORDER}, "an envelope of Materialize"),
        ({"payload": ORDER, "eventType": "x"}, "an envelope of an outbox"),
        ({"row": ORDER, "kind": 1}, "its member 'row' has the key"),
    ],
)
def test_an_envelope_of_another_system_is_named_and_not_drafted(value: Any, name: str) -> None:
    found = draft(record("shop.orders", {"id": 1}, value))
    assert not found.is_whole
    assert found.unread
    assert name in found.note
    text = entities_text([found, draft(record("t", {"id": 1}, {"id": 1}))], ["# top"])
    assert list(load({"entities.yaml": text}).entities) == ["t"]


def drafted(*records: Record) -> str:
    return entities_text([draft(*records)], ["# top"]).partition("\n\n")[2]


DMS = {"record-type": "data", "operation": "insert", "schema-name": "shop", "table-name": "orders"}
TABLE = {"table-def": {"columns": {"id": {"type": "INT32"}}, "primary-key": ["id"]}}
GOLDENGATE = {"table": "SHOP.ORDERS", "op_type": "I", "pos": "01", "primary_keys": ["id", "customer"], "after": ORDER}
EVENT = {"specversion": "1.0", "id": "1", "source": "/debezium/postgresql/app", "type": "t", "iodebeziumop": "c"}
BODY = (
    "  topic: shop.orders\n  key: [{key}]{guess}\n  columns:\n    id: int\n    customer: string\n  format: {format}\n"
)


@pytest.mark.parametrize(
    ("records", "key", "guess", "kind"),
    [
        ([(b"shop.orders.1", {"data": ORDER, "metadata": DMS})], "id", "by its name: the Kafka key is none of the row", "dms"),
        ([(b"1", {"data": ORDER, "metadata": DMS})], "id", "its values equal the Kafka key", "dms"),
        (
            [
                (b"task", {"control": TABLE, "metadata": {**DMS, "record-type": "control", "operation": "create-table"}}),
                (b"shop.orders", {"data": ORDER, "metadata": DMS}),
            ],
            "id", "", "dms",
        ),
        ([(b"1_Ann", GOLDENGATE)], "id, customer", "", "goldengate"),
        ([([1], {"after": ORDER, "updated": "1.0"}), ([1], {"after": None, "updated": "2.0"})], "id",
         "its values equal the Kafka key", "cockroach"),
        ([(["Ann", 1], {"after": ORDER}), (None, {"resolved": "2.0"})], "customer, id", "its values equal the Kafka key",
         "cockroach"),
        ([({"id": 1}, {**EVENT, "data": {"before": None, "after": ORDER}})], "id", "", "cloudevents"),
    ],
)  # fmt: skip
def test_a_kind_is_drafted_with_its_word_and_its_key(records: Any, key: str, guess: str, kind: str) -> None:
    text = drafted(*(record("shop.orders", *one) for one in records))
    body = BODY.format(key=key, guess=f"  # guess: {guess}" if guess else "", format=kind)
    assert text.partition("orders:\n")[2] == body
    entity = load({"entities.yaml": text}).entities["orders"]
    changes = [decode(record("shop.orders", *one), entity) for one in records]
    assert not [one for one in changes if isinstance(one, Rejected)]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (["1", 2], "int"), (["1.5", 2], "decimal"), (["1", "2"], "string"), (["1", "x"], "string"), (["1", "x", 3], "json"),
        (["true", "FALSE"], "bool"), (["true", "maybe"], "string"), (["true", True], "bool"), (["true", "1"], "string"),
        (["1995-12-31:15:00:00", "2026-01-01 00:00:00"], "timestamp"), (["2026-01-01"], "date"), (['{"a": 1}'], "json(text)"),
    ],
)  # fmt: skip
def test_text_of_a_system_that_writes_all_as_text_is_drafted_by_what_else_its_column_holds(
    seen: list[Any], expected: str
) -> None:
    found = draft(*(record("t", b"t", {"data": {"id": 1, "a": value}, "metadata": DMS}) for value in seen))
    assert found.columns["a"].type == expected


def test_an_envelope_of_debezium_is_drafted_without_a_word_and_flags_inside_envelopes_are_columns() -> None:
    assert "format" not in drafted(record("t", {"id": 1}, {"op": "c", "before": None, "after": ORDER, "source": {}}))
    found = draft(record("t", b"1", {"data": {**ORDER, "_op": "D"}, "metadata": DMS}))
    assert (found.deleted, "_op" in found.columns) == ((), True)


def test_a_framing_of_another_registry_is_named() -> None:
    glue = Record(topic="t", partition=0, offset=0, key=None, value=b"\x03\x00" + bytes(16) + b"x")
    assert "framed for the AWS Glue Schema Registry" in draft(glue).note


@pytest.mark.parametrize("kind", ["canal", "maxwell"])
def test_the_records_of_a_kind_draft_its_rows_with_the_key_that_they_name(kind: str) -> None:
    lines = (SAMPLES.parent / kind / "records.jsonl").read_text().splitlines()
    key = b'{"database":"shop","table":"item","pk.id":1}' if kind == "maxwell" else None
    drafts = draft_topics(
        Record(topic="shop.item", partition=0, offset=0, key=key, value=line.encode()) for line in lines
    )
    by_table = {one.table: one for one in drafts}
    assert {"shop.boot", "shop.item", "shop.pair", "shop.sample"} <= by_table.keys()
    found = by_table["shop.item"]
    assert (found.key, found.key_guess, found.table, types(found)["id"]) == (("id",), "", "shop.item", "int")
    assert set(types(found)) == {"id", "name", "more"}
    assert "the topic has several tables: " in found.note
    assert "shop.boot, shop.item, shop.pair, shop.sample" in found.note


def test_an_operation_in_rows_becomes_the_word_of_the_entity_and_no_column() -> None:
    rows = [
        {"id": 1, "n": 1, "op_type": "I", "_cdc": {"op": "I"}},
        {"id": 1, "n": 1, "op_type": "D", "_cdc": {"op": "D"}},
    ]
    found = draft(*(record("t", {"id": 1}, row) for row in rows))
    assert types(found) == {"id": "int", "n": "int"}
    text = entities_text([found], ["# top"])
    assert "  deleted: [{column: _cdc.op, values: [D]}, {column: op_type, values: [D]}]" in text
    (entity,) = load({"entities.yaml": text}).entities.values()
    assert [decode(record("t", {"id": 1}, row), entity).row is None for row in rows] == [False, True]  # type: ignore[union-attr]


def test_an_operation_whose_deletes_were_not_seen_is_a_note_and_no_column() -> None:
    found = draft(record("t", {"id": 1}, {"id": 1, "n": 1, "_op": "I"}))
    assert types(found) == {"id": "int", "n": "int"}
    assert "_op looks like an operation: write `deleted`" in found.note


def test_each_table_of_a_topic_is_drafted_as_an_entity() -> None:
    def row(table: str, **columns: Any) -> Record:
        source = {"table": table, "schema": "public"}
        return record(
            "app.users", {"id": 1}, {"before": None, "after": {"id": 1, **columns}, "op": "c", "source": source}
        )

    found = draft_topics([row("orders", total=5), row("orders", total=6), row("users", name="Ann")])
    assert [(one.name, one.table, types(one)) for one in found] == [
        ("orders", "public.orders", {"id": "int", "total": "int"}),
        ("users", "public.users", {"id": "int", "name": "string"}),
    ]
    assert "the topic has several tables: public.orders, public.users" in found[0].note
    entities = load({"entities.yaml": entities_text(found, ["# top"])}).entities
    assert {one.topic for one in entities.values()} == {"app.users"}
    assert drift_lines(entities, found, whole=()) == []
    short = {name: replace(one, table=name) for name, one in entities.items()}
    assert drift_lines(short, found, whole=()) == []
    bare = [replace(one, table=one.table.removeprefix("public.")) for one in found]
    assert drift_lines(entities, bare, whole=()) == []
    assert drift_lines({"users": short["users"]}, found, whole=())[1] == "+ orders:"
    assert draft(row("users", name="Ann"), row("users", name="Bob")).table == ""
