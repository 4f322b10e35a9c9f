"""Records become changes, or a reason: all shapes, every rule of the contract, and any bytes."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.records.column_types import parse_type
from processor.records.entity import Entity, RecordFormat
from processor.records.record import UNAVAILABLE, Change, Decoded, Ignored, Record, Rejected, Truncated
from processor.records.recorded_topics import read_records
from processor.steps.decode import decode

SAMPLES = Path(__file__).parents[2] / "data" / "debezium"


def entity(name: str, key: str, columns: str, format: RecordFormat | None = None) -> Entity:
    """`columns`: `id int, at timestamp(ms)`."""
    pairs = (column.strip().rsplit(" ", 1) for column in columns.split(", "))
    types = {name: parse_type(text) for name, text in pairs}
    return Entity(name=name, topic=name, key=tuple(key.split()), columns=types, format=format)


USER = entity("user", "email", "id int, email string, username string, at timestamp")
STAR = entity("star", "owner repo", "owner string, repo string, n int")
ITEM = entity("item", "id", "id int, amount decimal(12,2), bio string, tags string[], at timestamp, j json, on date")


def raw(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def decoded(entity: Entity | None, key: Any, value: Any) -> Decoded:
    record = Record(topic="t", partition=0, offset=0, key=raw(key), value=raw(value))
    return decode(record, entity)


def change(entity: Entity, key: Any, value: Any) -> tuple[tuple[Any, ...], Any]:
    result = decoded(entity, key, value)
    assert isinstance(result, Change), result
    assert result.entity == entity.name
    return result.key, None if result.row is None else dict(result.row)


def reason(entity: Entity, key: Any, value: Any) -> str:
    result = decoded(entity, key, value)
    assert isinstance(result, Rejected), result
    assert "\n" not in result.reason
    return result.reason


def envelope(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"table": "t"}, "transaction": None, "op": op, "ts_ms": 1}


def with_schema(payload: Any, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": fields}, "payload": payload}


# Plain rows


def test_a_plain_row_is_a_change_with_declared_columns_first_and_the_others_unchanged() -> None:
    row = b'{"more":{"b":1.50},"username":"a","email":"a@x","id":1.0,"at":"2015-01-01T01:00:00+01:00"}'
    key, image = change(USER, {"email": "a@x"}, row)
    assert key == ("a@x",)
    assert list(image) == ["id", "email", "username", "at", "more"]
    assert image == {
        "id": 1,
        "email": "a@x",
        "username": "a",
        "at": "2015-01-01T00:00:00Z",
        "more": {"b": Decimal("1.50")},
    }


def test_declared_columns_that_the_row_lacks_are_null() -> None:
    assert change(USER, None, {"email": "a"})[1] == {"id": None, "email": "a", "username": None, "at": None}


@pytest.mark.parametrize("value", [None, b"null", {"schema": None, "payload": None}])
def test_null_deletes_by_the_kafka_key(value: Any) -> None:
    assert change(STAR, {"owner": "o", "repo": "r"}, value) == (("o", "r"), None)


def test_a_topic_that_no_entity_names_is_ignored() -> None:
    result = decoded(None, b"\xff", b"\xff")
    assert isinstance(result, Ignored)
    assert result.why == "unknown topic"


def test_columns_may_have_the_names_of_debeziums_members() -> None:
    odd = entity("odd", "id", "id int, op string, schema string, payload string, ts_ms int")
    assert change(odd, None, {"id": 1, "op": "u", "before": 5}) == (
        (1,),
        {"id": 1, "op": "u", "schema": None, "payload": None, "ts_ms": None, "before": 5},
    )
    assert change(odd, {"id": 1}, {"schema": None, "payload": None})[1] is not None
    assert change(odd, {"id": 1}, {"ts_ms": 5})[0] == (1,)


# The key


@pytest.mark.parametrize(
    "key",
    [
        {"email": "a"},
        {"email": "a", "other": []},
        b'"a"',
        b"a",
        None,
        b"null",
        {"other": 1},
        with_schema({"email": "a"}, []),
    ],
)
def test_the_key_is_an_object_a_bare_value_plain_text_or_part_of_the_row(key: Any) -> None:
    assert change(USER, key, {"email": "a"})[0] == ("a",)


@pytest.mark.parametrize(
    ("key", "email"), [(b"42", "42"), (b"true", "true"), (b"1.50", "1.50"), (b"a b", "a b"), (b"NaN", "NaN")]
)
def test_plain_text_is_the_key_when_its_one_column_is_a_string(key: bytes, email: str) -> None:
    assert change(USER, key, None) == ((email,), None)


def test_a_bare_value_with_a_schema_is_the_key_of_one_column() -> None:
    key = {"schema": {"type": "int64", "name": "io.debezium.time.Timestamp"}, "payload": 1420070400000}
    at = entity("at", "at", "at timestamp")
    assert change(at, key, None) == (("2015-01-01T00:00:00Z",), None)


def test_parts_that_the_kafka_key_lacks_come_from_the_row_and_the_other_way_round() -> None:
    assert change(STAR, {"owner": "o"}, {"repo": "r", "n": 1}) == (("o", "r"), {"owner": "o", "repo": "r", "n": 1})


def test_key_and_row_are_compared_by_canonical_value() -> None:
    assert change(ITEM, b'{"id":7.0}', {"id": 7})[0] == (7,)


@pytest.mark.parametrize(
    ("entity", "key", "value", "expected"),
    [
        (USER, {"email": "a"}, {"email": "b"}, "key part 'email' is text 'a' in the Kafka key and text 'b' in the row"),
        (USER, {"email": "a"}, {"email": None}, "key part 'email' is null in the row"),
        (USER, {"email": None}, {"email": "a"}, "key part 'email': expected string, found null"),
        (USER, {"email": 1}, {"email": "a"}, "key part 'email': expected string, found number 1"),
        (USER, None, {"id": 1}, "key part 'email' is missing"),
        (USER, None, None, "key part 'email' is missing"),
        (STAR, {"owner": "o"}, None, "key part 'repo' is missing"),
        (STAR, b'"o"', {"owner": "o", "repo": "r"}, "key: expected an object with owner, repo, found text 'o'"),
        (STAR, b"o/r", {}, "key: not JSON: expecting value at character 1"),
        (USER, b"{oops", {}, "key: not JSON: expecting property name enclosed in double quotes at character 2"),
        (USER, b"", {}, "key: not JSON: expecting value at character 1"),
        (USER, b"\xff", {"email": "a"}, "key: not UTF-8 at byte 1"),
        (ITEM, b'"7"', {"id": 7}, "key part 'id': expected int, found text '7'"),
        (ITEM, envelope("u"), {"id": 7}, None),
    ],
)
def test_a_key_that_is_missing_or_broken_or_differs_is_a_dead_letter(
    entity: Entity, key: Any, value: Any, expected: Any
) -> None:
    if expected is None:
        assert change(entity, key, value)[0] == (7,)
    else:
        assert reason(entity, key, value) == expected


# Values that break the contract


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"", "value: not JSON: expecting value at character 1"),
        (b"{", "value: not JSON: expecting property name enclosed in double quotes at character 2"),
        (b'{"id":NaN}', "value: not JSON: NaN"),
        (b'{"id":-Infinity}', "value: not JSON: -Infinity"),
        (b'{"id":"\xff"}', "value: not UTF-8 at byte 8"),
        (b'{"id":7,"x":' + b"1" * 5000 + b"}", "value: not JSON: a number of too many digits"),
        (b'{"id":7,"x":' + b"[" * 100_000, "value: nested more than 200 levels"),
        (b'{"id":7,"x":"\\udc00"}', "value: not Unicode: half of a surrogate pair"),
        ([7], "expected a row as an object, found an array"),
        ("a", "expected a row as an object, found text 'a'"),
        (5, "expected a row as an object, found number 5"),
        ({"id": "7"}, "column 'id': expected int, found text '7'"),
        ({"id": 7, "bio": 1}, "column 'bio': expected string, found number 1"),
        ({"id": 7, "tags": ["a", 1]}, "column 'tags': element 2: expected string[], found number 1"),
        ({"id": 7, "amount": "BNI="}, "column 'amount': expected decimal(12,2), found text 'BNI='"),
        ({"id": 7, "at": "x" * 99}, f"column 'at': expected timestamp, found text '{'x' * 59}…'"),
        (
            {"id": 7, "bio": "x" * 400_000},
            "the row is 400,072 bytes; DynamoDB keeps at most 409,600 an item, its keys included",
        ),
    ],
)
def test_a_value_that_breaks_the_contract_is_a_dead_letter_with_the_reason(value: Any, expected: str) -> None:
    assert reason(ITEM, {"id": 7}, value) == expected


def test_the_last_of_two_members_with_one_name_counts() -> None:
    assert change(ITEM, None, b'{"id":1,"id":7}')[0] == (7,)


def test_a_large_row_below_the_limit_is_a_change() -> None:
    assert change(ITEM, {"id": 7}, {"id": 7, "bio": "x" * 390_000})[0] == (7,)


# Debezium


@pytest.mark.parametrize("op", ["c", "u", "r"])
def test_an_envelope_gives_the_row_after_the_change(op: str) -> None:
    row = {"id": 7, "amount": "BNI=", "bio": None, "on": 7306, "j": '{"a":1}', "extra": [1]}
    assert change(ITEM, {"id": 7}, envelope(op, before={"id": 8}, after=row)) == (
        (7,),
        {
            "id": 7,
            "amount": Decimal("12.34"),
            "bio": None,
            "tags": None,
            "at": None,
            "j": '{"a":1}',
            "on": "1990-01-02",
            "extra": [1],
        },
    )


@pytest.mark.parametrize("before", [None, {"id": 7, "bio": None}, {"id": 7, "bio": "b", "amount": "BNI="}])
def test_a_delete_needs_no_more_of_the_old_row_than_its_key(before: Any) -> None:
    assert change(ITEM, {"id": 7}, envelope("d", before=before)) == ((7,), None)


def test_a_delete_takes_parts_that_the_kafka_key_lacks_from_the_old_row() -> None:
    assert change(STAR, {"owner": "o"}, envelope("d", before={"owner": None, "repo": "r"})) == (("o", "r"), None)
    assert "'repo' is missing" in reason(STAR, {"owner": "o"}, envelope("d", before={"repo": None}))
    assert "'owner' is text 'o' in the Kafka key" in reason(STAR, {"owner": "o"}, envelope("d", before={"owner": "p"}))


@pytest.mark.parametrize(
    "value",
    [
        {"op": "m", "source": {}, "message": {"prefix": "p", "content": "YQ=="}},
        {"status": "BEGIN", "id": "1:2", "event_count": None, "data_collections": None, "ts_ms": 1},
        {"source": {}, "databaseName": "d", "ddl": "CREATE TABLE", "tableChanges": []},
        {"ts_ms": 1795214323797},
        {"id": 7, "__deleted": "false", "__op": "m"},
    ],
)
def test_a_record_that_changes_no_row_is_a_control(value: Any) -> None:
    result = decoded(ITEM, None, value)
    assert isinstance(result, Ignored)
    assert result.why == "control"


@pytest.mark.parametrize(
    "value",
    [
        envelope("t"),
        {"op": "t", "source": {}},
        {"schema": None, "payload": envelope("t")},
        {"id": 7, "__deleted": "false", "__op": "t"},
    ],
)
def test_a_truncate_is_refused_unless_the_entity_ignores_it(value: Any) -> None:
    assert isinstance(decoded(ITEM, None, value), Truncated)
    result = decoded(replace(ITEM, truncate="ignore"), None, value)
    assert isinstance(result, Ignored)
    assert result.why == "truncate"


def test_an_envelope_without_a_row_or_with_an_unknown_op_is_a_dead_letter() -> None:
    assert reason(ITEM, {"id": 7}, envelope("u")) == "expected a row as an object in 'after', found null"
    assert (
        reason(ITEM, {"id": 7}, envelope("u", after="{}")) == "expected a row as an object in 'after', found text '{}'"
    )
    assert "with op c, u, r, d, t or m, found text 'x'" in reason(ITEM, {"id": 7}, envelope("x", after={"id": 7}))


@pytest.mark.parametrize(
    "placeholder",
    [
        "__debezium_unavailable_value",
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        ["__debezium_unavailable_value"],
        list(b"__debezium_unavailable_value"),
        {"__debezium_unavailable_value": "__debezium_unavailable_value"},
    ],
)
@pytest.mark.parametrize("column", ["bio", "tags", "amount", "j", "undeclared"])
def test_a_value_that_debezium_did_not_read_is_unavailable(column: str, placeholder: Any) -> None:
    assert change(ITEM, {"id": 7}, envelope("u", after={"id": 7, column: placeholder}))[1][column] is UNAVAILABLE


def test_a_key_column_that_is_unavailable_comes_from_the_kafka_key() -> None:
    after = {"email": "__debezium_unavailable_value"}
    assert change(USER, {"email": "a"}, envelope("u", after=after))[1]["email"] == "a"
    assert reason(USER, None, envelope("u", after=after)) == "key part 'email' is missing"


@pytest.mark.parametrize(
    ("column", "schema", "value", "expected"),
    [
        (
            "amount",
            {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "3"}},
            "BNI=",
            Decimal("1.234"),
        ),
        ("amount", {"name": "io.debezium.data.VariableScaleDecimal"}, {"scale": 1, "value": "Nw=="}, Decimal("5.5")),
        ("amount", {"type": "string"}, "1000", Decimal("1000")),
        ("at", {"name": "io.debezium.time.Timestamp"}, 1, "1970-01-01T00:00:00.001Z"),
        ("at", {"name": "io.debezium.time.MicroTimestamp"}, 1, "1970-01-01T00:00:00.000001Z"),
        ("at", {"name": "io.debezium.time.NanoTimestamp"}, 1, "1970-01-01T00:00:00.000000001Z"),
        ("at", {"name": "org.apache.kafka.connect.data.Timestamp"}, 1, "1970-01-01T00:00:00.001Z"),
        ("on", {"name": "io.debezium.time.Date"}, 0, "1970-01-01"),
        ("j", {"name": "io.debezium.data.Json"}, '{"a": 1.50}', {"a": Decimal("1.50")}),
        ("j", {"type": "string"}, '{"a": 1}', '{"a": 1}'),
        ("bio", {"type": "bytes"}, "BNI=", "BNI="),
        ("tags", {"type": "array", "items": {"type": "string"}}, ["a"], ["a"]),
    ],
)
def test_a_schema_says_how_debezium_encoded_the_values(
    column: str, schema: dict[str, Any], value: Any, expected: Any
) -> None:
    fields = [{"field": "id", "type": "int32"}, {"field": column} | schema]
    row = {"id": 7, column: value}
    enveloped = with_schema(envelope("u", after=row), [{"field": "after", "type": "struct", "fields": fields}])
    key = with_schema({"id": 7}, fields[:1])
    assert change(ITEM, key, enveloped)[1][column] == expected
    assert change(ITEM, {"id": 7}, with_schema(row, fields))[1][column] == expected


def test_a_flattened_record_loses_debeziums_members_but_not_declared_ones() -> None:
    flat = entity("flat", "id", "id int, amount decimal(12,2), __table string")
    value = {
        "id": 7,
        "amount": "BNI=",
        "__deleted": "false",
        "__op": "u",
        "__table": "t",
        "__source_custom": 1,
        "_x": 2,
    }
    assert change(flat, None, value)[1] == {"id": 7, "amount": Decimal("12.34"), "__table": "t", "_x": 2}


@pytest.mark.parametrize(
    "marks", [{"__deleted": "true"}, {"__deleted": True}, {"__op": "d"}, {"__deleted": "true", "__op": "d"}]
)
def test_a_flattened_delete_is_a_delete(marks: dict[str, Any]) -> None:
    assert change(STAR, None, {"owner": "o", "repo": "r", "n": None} | marks) == (("o", "r"), None)


def test_members_with_underscores_do_not_make_a_flattened_record() -> None:
    assert change(ITEM, None, {"id": 7, "__mine": 1})[1]["__mine"] == 1


# Pinned formats


def test_a_pinned_format_is_not_guessed() -> None:
    plain = entity("plain", "id", "id int, amount decimal(12,2)", format="plain")
    assert change(plain, {"id": 7}, envelope("d", after={"id": 8}))[1]["after"] == {"id": 8}
    assert change(plain, {"id": 7}, {"__deleted": "true"})[1]["__deleted"] == "true"
    debezium = entity("debezium", "id", "id int", format="debezium")
    assert "expected a Debezium envelope" in reason(debezium, {"id": 7}, {"id": 7})
    assert change(debezium, {"id": 7}, None) == ((7,), None)
    flattened = entity("flattened", "id", "id int, amount decimal(12,2)", format="flattened")
    assert change(flattened, None, {"id": 7, "amount": "BNI=", "__x": 1}) == (
        (7,),
        {"id": 7, "amount": Decimal("12.34")},
    )


# Any bytes

ENTITIES = [
    USER,
    STAR,
    ITEM,
    *(entity("e", "id", "id decimal(9,2), j json", format=f) for f in ("debezium", "flattened")),
]
names = st.sampled_from(
    [
        "id",
        "email",
        "owner",
        "repo",
        "j",
        "at",
        "amount",
        "op",
        "before",
        "after",
        "source",
        "schema",
        "payload",
        "__deleted",
        "__op",
        "fields",
        "field",
        "name",
        "type",
        "parameters",
        "scale",
        "items",
        "value",
        "ts_ms",
    ]
)
words = st.sampled_from(
    ["c", "u", "d", "t", "struct", "array", "org.apache.kafka.connect.data.Decimal", "true", "BNI=", "2"]
)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=6),
    max_leaves=25,
)
blobs = st.none() | st.binary() | documents.map(lambda value: json.dumps(value).encode())


@given(st.sampled_from(ENTITIES), blobs, blobs)
def test_decode_never_raises_and_gives_the_same_result_twice(
    entity: Entity, key: bytes | None, value: bytes | None
) -> None:
    record = Record(topic="t", partition=0, offset=0, key=key, value=value)
    result = decode(record, entity)
    assert result == decode(record, entity)
    assert result.record is record
    if isinstance(result, Rejected):
        assert "\n" not in result.reason
        assert 0 < len(result.reason) < 400
    if isinstance(result, Change):
        assert None not in result.key
        assert UNAVAILABLE not in result.key


# A live Debezium's output

USERS = "id int, name string, balance decimal(12,2), born date, at timestamp, j json, u string, arr string[]"
LIVE = {
    "app.public.users": entity("users", "id", USERS),
    "app.public.orders": entity("orders", "id", "id int, user_id int, amount decimal, note string"),
}


def last_rows(sample: str) -> tuple[dict[tuple[str, Any], Any], dict[str, int]]:
    """The last row of each key, with unavailable values of earlier rows, and the number of each outcome."""
    rows: dict[tuple[str, Any], Any] = {}
    outcomes: dict[str, int] = {}
    for record in read_records(str(SAMPLES / f"{sample}.jsonl")):
        result = decode(record, LIVE.get(record.topic))
        outcome = type(result).__name__ if not isinstance(result, Ignored) else result.why
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if isinstance(result, Change):
            at = (result.entity, *result.key)
            old = rows.pop(at, {})
            if result.row is not None:
                rows[at] = {name: old[name] if value is UNAVAILABLE else value for name, value in result.row.items()}
    return rows, outcomes


ANN_B = {
    "id": 1,
    "name": "Ann B",
    "balance": Decimal("12.34"),
    "born": "1990-01-02",
    "u": "7f000101-0000-4000-8000-000000000001",
    "arr": ["x", "y"],
}


@pytest.mark.parametrize(
    ("sample", "at", "j", "outcomes"),
    [
        ("envelope", "2026-11-20T22:38:37.758449Z", '{"a": 1}', {"Change": 12, "unknown topic": 16}),
        ("envelope-with-schema", "2026-11-20T22:40:04.482569Z", {"a": 1}, {"Change": 12, "Truncated": 1}),
        ("flattened", "2026-11-20T22:39:45.895767Z", '{"a": 1}', {"Change": 9}),
    ],
)
def test_three_forms_of_one_history_end_in_the_same_rows(
    sample: str, at: str, j: Any, outcomes: dict[str, int]
) -> None:
    assert last_rows(sample) == ({("users", 1): ANN_B | {"at": at, "j": j}}, outcomes)


def test_toast_key_changes_and_updates_in_one_transaction_end_in_the_right_rows() -> None:
    rows, outcomes = last_rows("transaction-toast-pkchange")
    assert outcomes == {"Change": 13, "unknown topic": 8}
    bio = rows[("users", 1)].pop("bio")
    assert len(bio) == 20_000
    empty = dict.fromkeys(["balance", "born", "j", "u", "arr", "bio"])
    assert rows == {
        ("users", 1): ANN_B | {"name": "t2", "at": "2026-11-20T23:10:44.066693Z", "j": '{"a": 1}'},
        ("users", 2): empty | {"id": 2, "name": "again", "at": "2026-11-20T23:10:50.082608Z"},
        ("users", 30): empty | {"id": 30, "name": "C", "at": "2026-11-20T23:10:44.065929Z"},
        ("users", 4): empty | {"id": 4, "name": "old", "at": "2026-11-20T23:10:50.084619Z"},
    }
