"""Debezium's records become changes: envelopes, flattened records, schemas, and the output of a live Debezium."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from processor.engine.protocol.decode import decode
from processor.values.record import UNAVAILABLE, AbsentColumns, Change, Ignored, Truncated
from processor.values.recorded_topics import read_records
from tests.unit.engine.protocol.decoding import ITEM, STAR, USER, change, decoded, entity, envelope, reason, with_schema

SAMPLES = Path(__file__).parents[3] / "data" / "debezium"
PRECISE = replace(ITEM, decimals="bytes")

# Envelopes


@pytest.mark.parametrize("op", ["c", "u", "r"])
def test_an_envelope_gives_the_row_after_the_change(op: str) -> None:
    row = {"id": 7, "amount": "BNI=", "bio": None, "on": 7306, "j": '{"a":1}', "extra": [1]}
    assert change(PRECISE, {"id": 7}, envelope(op, before={"id": 8}, after=row)) == (
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
def test_a_truncate_is_no_change_and_an_entity_may_ignore_it(value: Any) -> None:
    for choice in ("refuse", "delete"):
        assert isinstance(decoded(replace(ITEM, truncate=choice), None, value), Truncated)
    result = decoded(replace(ITEM, truncate="ignore"), None, value)
    assert isinstance(result, Ignored)
    assert result.why == "truncate"


PAIR = entity("pair", "tenant id", "tenant string, id int, n int, note string")
MOVED = {"tenant": "t", "id": 2, "n": 1, "note": "x"}
UNSENT = "__debezium_unavailable_value"


@pytest.mark.parametrize(
    ("before", "former"),
    [
        ({"tenant": "t", "id": 1, "n": 1}, ("t", 1)),
        ({"tenant": "s", "id": 2}, ("s", 2)),
        ({"id": 1}, ("t", 1)),
        ({"tenant": "t", "id": 1, "n": "no number"}, ("t", 1)),
        ({"tenant": "t", "id": 2.0}, None),
        ({"n": 7}, None),
        ({"tenant": None, "id": 1}, None),
        ({"tenant": UNSENT, "id": 1}, None),
        ({"tenant": 5, "id": 1}, None),
        (None, None),
    ],
    ids=[
        "whole", "the other part", "a part alone", "a value that does not fit", "the same key in another form",
        "without the key", "null", "not sent", "no key", "no old image",
    ],
)  # fmt: skip
def test_an_update_names_the_key_that_the_row_had_where_its_old_image_shows_it(before: Any, former: Any) -> None:
    """Else a row that stays would lose the values that this record does not send."""
    result = decoded(PAIR, None, envelope("u", before=before, after=MOVED | {"note": UNSENT}))
    assert isinstance(result, Change), result
    assert (result.former, result.key) == (former, ("t", 2))
    assert result.row is not None
    assert result.row["note"] is UNAVAILABLE
    assert [(other.key, other.row, other.former) for other in result.others] == (
        [(former, None, None)] if former else []
    )


def test_a_key_in_another_form_is_the_same_key() -> None:
    at = entity("at", "at", "at timestamp, n int")
    result = decoded(
        at, None, envelope("u", before={"at": "2015-01-01T01:00:00+01:00"}, after={"at": "2015-01-01T00:00:00Z"})
    )
    assert isinstance(result, Change), result
    assert (result.key, result.former, result.others) == (("2015-01-01T00:00:00Z",), None, ())


def test_the_delete_of_a_former_key_lacks_no_column() -> None:
    """So a record that moves a row counts once among those that lack a column."""
    result = decoded(PAIR, None, envelope("u", before={"tenant": "t", "id": 1}, after={"tenant": "t", "id": 2, "n": 1}))
    assert isinstance(result, Change), result
    assert result.absent == AbsentColumns(("note",), True)
    assert [other.absent for other in result.others] == [None]


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
    after = {"id": 7, "bio": "b", column: placeholder}
    assert change(ITEM, {"id": 7}, envelope("u", after=after))[1][column] is UNAVAILABLE


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


# Flattened records


def test_a_flattened_record_loses_debeziums_members_but_not_declared_ones() -> None:
    flat = entity("flat", "id", "id int, amount decimal(12,2), __table string", decimals="bytes")
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
    assert change(ITEM, None, {"id": 7, "bio": "b", "__mine": 1})[1]["__mine"] == 1


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
        entity = LIVE.get(record.topic)
        result = decode(record, entity and replace(entity, decimals="text" if sample == "flattened" else "bytes"))
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
