"""Records become changes, or a reason: plain rows, keys, every rule of the contract, and any bytes."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.engine.protocol.decode import Decoder, compare_columns, decode
from processor.values.decimal_forms import NO_FORMS, ColumnForms, LearnedForm
from processor.values.entity import Entity
from processor.values.record import UNAVAILABLE, Change, Ignored, Record, Rejected
from tests.unit.engine.protocol.decoding import (
    ITEM,
    STAR,
    USER,
    change,
    decoded,
    entity,
    envelope,
    raw,
    reason,
    with_schema,
)

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


def test_a_number_is_the_key_of_a_column_of_numbers_and_no_text() -> None:
    assert change(ITEM, b"7", {"id": 7})[0] == (7,)
    assert change(ITEM, b"7", None) == ((7,), None)
    assert reason(ITEM, b"x", {"id": 7}) == "key: not JSON: expecting value at character 1"


@pytest.mark.parametrize("key", [b"{x", b"[x", b'"x', b""])
def test_text_that_begins_like_json_and_is_none_is_no_key(key: bytes) -> None:
    assert reason(USER, key, {"email": "a"}).startswith("key: not JSON: ")


def test_a_text_with_json_in_it_is_the_key_of_its_row() -> None:
    """Of a tombstone it is none: no row shows that it deletes nothing."""
    assert change(USER, b'"{\\"a\\":1}"', {"id": 1})[0] == ('{"a":1}',)


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
        (
            {"id": 7, "amount": "BNI="},
            "column 'amount': expected decimal(12,2), found text 'BNI=' (for Debezium's bytes: declare "
            "`decimals: bytes` and decimal(precision,scale), or send schemas)",
        ),
        ({"id": 7, "at": "x" * 99}, f"column 'at': expected timestamp, found text '{'x' * 59}…'"),
        (
            {"id": 7, "bio": "x" * 400_000},
            "the row is 400,072 bytes; a row has at most 400,000",
        ),
    ],
)
def test_a_value_that_breaks_the_contract_is_a_dead_letter_with_the_reason(value: Any, expected: str) -> None:
    assert reason(ITEM, {"id": 7}, value) == expected


def test_the_last_of_two_members_with_one_name_counts() -> None:
    assert change(ITEM, None, b'{"id":1,"id":7}')[0] == (7,)


def test_a_row_has_room_up_to_the_last_byte_of_its_limit() -> None:
    assert change(ITEM, {"id": 7}, {"id": 7, "bio": "x" * 399_928})[0] == (7,)
    why = reason(ITEM, {"id": 7}, {"id": 7, "bio": "x" * 399_929})
    assert why == "the row is 400,001 bytes; a row has at most 400,000"


# What depends on the entity alone


def test_an_entity_is_read_by_its_own_columns_also_at_the_place_of_one_that_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new entity may lie where a former one lay, and so may its settled forms."""
    other = entity("item", "id", "id int, amount string", decimals="text")
    forms: ColumnForms = {"amount": LearnedForm("text", "t", 0, 0, 0)}
    for stale in (Decoder(other), Decoder(ITEM, forms)):
        monkeypatch.setattr("processor.engine.protocol.decode._decoders", {(id(ITEM), id(NO_FORMS)): stale})
        assert change(ITEM, {"id": 7}, {"id": 7, "amount": 1.5})[1]["amount"] == Decimal("1.5")
        why = reason(ITEM, {"id": 7}, envelope("c", after={"id": 7, "amount": "1234"}))  # a number or its bytes
        assert why.startswith("column 'amount': ")


def test_the_memory_of_entities_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[Any, Any] = {}
    monkeypatch.setattr("processor.engine.protocol.decode._decoders", kept)
    monkeypatch.setattr("processor.engine.protocol.decode._MAX_DECODERS", 2)
    tables = [entity(f"t{n}", "id", "id int") for n in range(3)]
    for number, table in enumerate(tables):
        for _ in range(2):
            assert change(table, {"id": 7}, {"id": 7})[0] == (7,)
        assert len(kept) == (1, 2, 1)[number]


@pytest.mark.parametrize("value", [None, b"{", {"id": 7, "__deleted": "true"}, {"op": "t", "source": {}}])
def test_a_record_without_a_row_has_no_columns_to_compare(value: Any) -> None:
    assert compare_columns(Record(topic="t", partition=0, offset=0, key=None, value=raw(value)), ITEM) is None


def test_a_comparison_names_each_column_that_does_not_fit_is_missing_or_is_not_declared() -> None:
    row = {"id": "x", "amount": 1.5, "bio": 3, "tags": None, "at": "2026-01-01T00:00:00Z", "new": 1, "other": 2}
    found = compare_columns(Record(topic="t", partition=0, offset=0, key=None, value=raw(row)), ITEM)
    assert found is not None
    assert [text.split(":")[0] for text in found.refused] == ["column 'id'", "column 'bio'"]
    assert (found.missing, found.undeclared) == (("j", "on"), ("new", "other"))


# Pinned formats


def test_a_pinned_format_is_not_guessed() -> None:
    plain = entity("plain", "id", "id int, amount decimal(12,2)", format="plain")
    assert change(plain, {"id": 7}, {"amount": 1, **envelope("c", after={"id": 8})})[1]["after"] == {"id": 8}
    assert change(plain, {"id": 7}, {"amount": 1, "__deleted": "false"})[1]["__deleted"] == "false"
    debezium = entity("debezium", "id", "id int", format="debezium")
    assert "expected a Debezium envelope" in reason(debezium, {"id": 7}, {"id": 7})
    assert change(debezium, {"id": 7}, None) == ((7,), None)
    flattened = entity("flattened", "id", "id int, amount decimal(12,2)", format="flattened", decimals="bytes")
    assert change(flattened, None, {"id": 7, "amount": "BNI=", "__op": "u"}) == (
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
