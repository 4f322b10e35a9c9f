"""What each kind says by its own rules: keys, numbers and times as text, columns that were not sent, data inside an event."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from processor.engine.rounds.decoding import shown_keys
from processor.values.entity import DeleteFlag, Entity
from processor.values.envelopes.kinds import FORMATS
from processor.values.record import UNAVAILABLE, Change, Ignored, Record, Rejected, Truncated
from processor.values.source_transaction import SourceTransaction
from tests.unit.engine.protocol.decoding import change, decoded, entity, envelope, raw, reason
from tests.unit.values.envelopes.samples import SAMPLES, Dms, GoldenGate

ORDER = entity("orders", "id", "id int, customer string, qty int")
LINE = entity("line", "no place", "no int, place string, qty int")
ROW = {"id": 17, "customer": "Ann", "qty": 2}
DMS, GOLDENGATE = Dms(), GoldenGate()
EVENT = {"id": "e-1", "source": "/db", "specversion": "1.0", "type": "row.changed", "time": "2026-01-01T00:00:00Z"}


def is_refused(table: Entity, key: Any, value: Any) -> str:
    """The code of the dead letter."""
    result = decoded(table, key, value)
    assert isinstance(result, Rejected), result
    return result.code


@pytest.mark.parametrize("key", [None, b"17", b"shop.orders.17", b"shop.orders", b"99", b"\xff", {"customer": "Ann"}])
@pytest.mark.parametrize("kind", [DMS, GOLDENGATE], ids=["dms", "goldengate"])
def test_a_kafka_key_that_chooses_the_partition_is_no_key_of_the_row(kind: Any, key: Any) -> None:
    assert change(ORDER, key, kind.insert(ROW)) == ((17,), ROW)
    assert change(ORDER, key, kind.delete(ROW)) == ((17,), None)
    place = {"no": 1, "place": "x", "qty": 2}
    assert change(LINE, key, kind.insert(place)) == ((1, "x"), place)


@pytest.mark.parametrize("kind", [DMS, GOLDENGATE], ids=["dms", "goldengate"])
def test_a_row_without_its_key_is_a_dead_letter_whatever_the_kafka_key_is(kind: Any) -> None:
    row = kind.insert(ROW)
    side = "data" if "data" in row else "after"
    for wrong, code in (({"customer": "Ann"}, "key-missing"), ({**ROW, "id": None}, "key-null")):
        assert is_refused(ORDER, b"17", {**row, side: wrong}) == code


@pytest.mark.parametrize("name", ["dms", "goldengate"])
@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        ("int", "42", 42),
        ("int", "-9223372036854775808", -(2**63)),
        ("int", "12345678901234567890123456789012345678", 12345678901234567890123456789012345678),
        ("decimal(12,2)", "1234", Decimal(1234)),
        ("decimal", "12.50", Decimal("12.5")),
        ("float", "1e3", Decimal(1000)),
        ("bool", "true", True),
        ("bool", "F", False),
        ("bool", "1", True),
        ("bool", 0, False),
        ("date", "2026-03-01", "2026-03-01"),
        ("date", "2026-03-01 00:00:00", "2026-03-01"),
        ("date", "2026-03-01T00:00:00.000000Z", "2026-03-01"),
        ("timestamp", "2026-03-01 09:00:00.250000", "2026-03-01T09:00:00.25Z"),
        ("timestamp", "2026-03-01:09:00:00", "2026-03-01T09:00:00Z"),
        ("timestamp", "2026-03-01T09:00:00+01:00", "2026-03-01T08:00:00Z"),
        ("string", "0x00ff", "0x00ff"),
        ("json(text)", '{"a": 1}', {"a": 1}),
        ("int[]", "[1, 2]", [1, 2]),
    ],
)
def test_text_is_read_as_the_declared_type(name: str, column: str, text: Any, value: Any) -> None:
    for decimals in (None, "text"):
        table = replace(entity("t", "id", f"id int, v {column}"), decimals=decimals)
        assert change(table, None, SAMPLES[name].insert({"id": "7", "v": text})) == ((7,), {"id": 7, "v": value})


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("int", "x"), ("int", "1.5"), ("int", ""), ("int", "NaN"), ("int", "1e400"), ("int", "0x11"),
        ("bool", "yes"), ("bool", ""), ("bool", "2"), ("decimal", "12,5"), ("decimal", "AQ=="),
        ("date", "2026-03-01 09:00:00"), ("date", "00:00:00"), ("timestamp", "2026-03-01:9"), ("timestamp", 1772352000000),
        ("timestamp", "0000-00-00 00:00:00"), ("date", "2026-02-30 00:00:00"),
    ],
)  # fmt: skip
def test_text_of_another_type_is_a_dead_letter(column: str, text: Any) -> None:
    table = entity("t", "id", f"id int, v {column}")
    for kind in (DMS, GOLDENGATE):
        assert is_refused(table, None, kind.insert({"id": 7, "v": text})) in ("column-type", "column-range")


def test_text_of_an_integer_stays_a_dead_letter_in_a_plain_row_and_in_debezium() -> None:
    for value in ({**ROW, "qty": "2"}, envelope("c", after={**ROW, "qty": "2"})):
        assert is_refused(ORDER, None, value) == "column-type"


def test_dms_names_its_operations_and_record_types() -> None:
    for operation in ("load", "read", "insert", "create", "update", "delete"):
        assert isinstance(decoded(ORDER, None, DMS.message(operation, data=ROW)), Change)
    for operation in ("truncate-table", "TruncateTable"):
        assert isinstance(decoded(ORDER, None, DMS.message(operation, "control")), Truncated)
    assert isinstance(decoded(ORDER, None, DMS.message("RenameTable", "control")), Ignored)
    assert "found text 'merge'" in reason(ORDER, None, DMS.message("merge", data=ROW))
    assert is_refused(ORDER, None, DMS.message("insert", "metric", data=ROW)) == "unknown-op"
    assert is_refused(ORDER, None, DMS.message("insert", data=None)) == "row-missing"
    truncated = DMS.message("truncate-table", "control", table="other")
    assert decoded(replace(ORDER, table="item"), None, truncated).why == "other table"  # type: ignore[union-attr]


def test_dms_shows_the_former_key_only_with_a_before_image() -> None:
    update = DMS.update({**ROW, "id": 16}, ROW)
    assert decoded(ORDER, b"17", update).former == (16,)  # type: ignore[union-attr]
    others: tuple[Any, ...] = (None, {}, {"customer": "x"}, {"id": 17}, {"id": "x"}, [])
    for before in others:
        assert decoded(ORDER, b"17", {**update, "before-image": before}).former is None  # type: ignore[union-attr]


def test_an_update_of_goldengate_keeps_the_declared_columns_that_it_lacks() -> None:
    update = GOLDENGATE.message("U", before={"id": 17, "qty": 1}, after={"id": 17, "qty": 2})
    assert change(ORDER, None, update) == ((17,), {"id": 17, "customer": UNAVAILABLE, "qty": 2})
    assert change(replace(ORDER, absent={"customer": "null"}), None, update)[1] == {**ROW, "customer": None}
    assert decoded(ORDER, None, update).absent is None  # type: ignore[union-attr]
    insert = GOLDENGATE.message("I", after={"id": 17, "qty": 2})
    assert change(ORDER, None, insert)[1] == {**ROW, "customer": None}


def test_an_update_of_goldengate_that_changes_the_key_needs_every_declared_column() -> None:
    for before, after in (({"id": 16}, ROW), ({**ROW, "id": 16}, {"id": 17}), ({"id": "16", "qty": 1}, ROW)):
        moved = decoded(ORDER, None, GOLDENGATE.message("U", before=before, after=after))
        assert isinstance(moved, Change), moved
        assert (moved.key, moved.former, moved.row) == ((17,), (16,), ROW)
    update = GOLDENGATE.message("U", before={"id": 16}, after={"id": 17, "qty": 1})
    assert is_refused(ORDER, None, update) == "not-sent"
    assert "lacks customer" in reason(ORDER, None, update)


def test_an_update_of_goldengate_without_any_declared_column_changes_none() -> None:
    after = {"id": 17, "undeclared": 1}
    update = GOLDENGATE.message("U", "SHOP.ORDERS", after=after)
    assert change(ORDER, None, update)[1] == {"id": 17, "customer": UNAVAILABLE, "qty": UNAVAILABLE, "undeclared": 1}
    assert is_refused(ORDER, None, GOLDENGATE.message("U", "SHOP.PEOPLE", after=after)) == "other-table"
    assert is_refused(ORDER, None, GOLDENGATE.message("I", "SHOP.ORDERS", after=after)) == "other-format"


def test_goldengate_names_the_columns_that_its_trail_lacks() -> None:
    flags = {"id_isMissing": False, "customer_isMissing": True, "qty_isMissing": False}
    update = GOLDENGATE.message("U", before=None, after={**ROW, "customer": None, **flags})
    assert change(ORDER, None, update)[1] == {**ROW, "customer": UNAVAILABLE}
    delete = GOLDENGATE.message("D", before={**dict.fromkeys(ROW), "id": 17, **flags}, after=None)
    assert change(ORDER, None, delete) == ((17,), None)
    kept = entity("t", "id", "id int, v string, v_isMissing bool")
    row = {"id": 1, "v": "a", "v_isMissing": True}
    assert change(kept, None, GOLDENGATE.message("I", after=row))[1] == row


def test_the_full_name_of_a_table_of_goldengate_picks_its_records() -> None:
    insert = GOLDENGATE.message("I", "PDB.SHOP.ORDERS", after=ROW)
    for table in ("ORDERS", "SHOP.ORDERS", "PDB.ORDERS", "PDB.SHOP.ORDERS"):
        assert isinstance(decoded(replace(ORDER, table=table), None, insert), Change)
    assert isinstance(decoded(replace(ORDER, table="OTHER.ORDERS"), None, insert), Ignored)


def test_an_array_is_the_key_of_cockroach_in_its_order() -> None:
    row = {"no": 1, "place": "x", "qty": 2}
    assert change(LINE, [1, "x"], {"after": row, "updated": "1.0"}) == ((1, "x"), row)
    for delete in ({"after": None}, {"after": None, "key": [1, "x"]}, {"after": None, "before": row, "updated": "1.0"}):
        assert change(LINE, [1, "x"], delete) == ((1, "x"), None)
    assert change(LINE, None, {"after": None, "key": [1, "x"]}) == ((1, "x"), None)
    assert change(replace(LINE, format="cockroach"), [1, "x"], None) == ((1, "x"), None)
    assert change(ORDER, [17], {"after": None}) == ((17,), None)


@pytest.mark.parametrize("key", [["x", 1], [1], [1, "x", 2], [], [None, "x"], [[1], "x"], [2, "x"], 1])
def test_an_array_that_is_not_the_key_is_a_dead_letter(key: Any) -> None:
    row = {"no": 1, "place": "x", "qty": 2}
    result = decoded(LINE, key, {"after": row, "updated": "1.0"})
    assert isinstance(result, Rejected)
    assert result.code in ("key-shape", "key-type", "key-differs")


def test_an_array_is_no_key_in_other_kinds() -> None:
    assert is_refused(ORDER, [17], ROW) == "key-type"
    assert is_refused(LINE, [1, "x"], envelope("d", before={"no": 1, "place": "x"})) == "key-shape"


def test_images_alone_are_of_cockroach_where_the_entity_says_it() -> None:
    value = {"before": ROW, "after": {**ROW, "qty": 3}}
    assert is_refused(ORDER, [17], value) == "other-format"
    assert change(replace(ORDER, format="cockroach"), [17], value) == ((17,), {**ROW, "qty": 3})
    enriched = {"op": "u", "after": ROW, "source": {"database_name": "shop"}, "ts_ns": 1}
    assert change(ORDER, {"id": 17}, enriched) == ((17,), ROW)


@pytest.mark.parametrize("inside", ["debezium", "dms", "goldengate", "cockroach", "flattened", "maxwell", "canal"])
def test_an_event_may_hold_the_envelope_of_another_kind(inside: str) -> None:
    samples = SAMPLES[inside]
    for pinned in (None, "cloudevents"):
        table = replace(ORDER, format=pinned)
        for data in (samples.insert(ROW), {"schema": None, "payload": samples.insert(ROW)}):
            assert change(table, None, {**EVENT, "data": data}) == ((17,), ROW)
        assert change(table, {"id": 17}, {**EVENT, "data": samples.delete(ROW)}) == ((17,), None)
        for control in samples.controls():
            assert isinstance(decoded(table, None, {**EVENT, "data": control}), Ignored)


def test_an_event_of_debezium_may_have_a_schema_and_the_whole_envelope() -> None:
    fields = [
        {"field": "id", "type": "int64"},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    ]
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": fields}]}
    table = entity("t", "id", "id int, at timestamp")
    data = {"schema": schema, "payload": {"before": None, "after": {"id": 1, "at": 1772352000000000}}}
    expected = ((1,), {"id": 1, "at": "2026-03-01T08:00:00Z"})
    assert change(table, None, {**EVENT, "iodebeziumop": "c", "data": data}) == expected
    table = replace(ORDER, transactions="shop.transaction")
    source = {"connector": "postgresql", "db": "d", "schema": "public", "table": "item"}
    whole = {**envelope("c", after=ROW), "source": source, "transaction": {"id": "7:1", "data_collection_order": 1}}
    assert decoded(table, None, {**EVENT, "iodebeziumop": "c", "data": whole}).transaction == SourceTransaction(
        "7", "public.item", 1
    )


def test_an_event_of_debezium_without_its_attributes_says_the_operation_by_its_images() -> None:
    event = {**EVENT, "type": "io.debezium.connector.mysql.DataChangeEvent"}
    assert change(ORDER, {"id": 17}, {**event, "data": {"before": None, "after": ROW}}) == ((17,), ROW)
    assert change(ORDER, {"id": 17}, {**event, "data": {"before": ROW, "after": None}}) == ((17,), None)
    moved = decoded(ORDER, {"id": 17}, {**event, "data": {"before": {**ROW, "id": 16}, "after": ROW}})
    assert moved.former == (16,)  # type: ignore[union-attr]
    assert is_refused(ORDER, None, {**EVENT, "data": {"before": None, "after": ROW}}) == "other-format"
    assert is_refused(ORDER, None, {**event, "data": {"before": None, "after": None}}) == "other-format"


def test_an_event_whose_data_is_a_row_needs_the_word_of_the_entity() -> None:
    event = {**EVENT, "data": ROW}
    assert "pin `format: cloudevents`" in reason(ORDER, None, event)
    assert change(replace(ORDER, format="cloudevents"), None, event) == ((17,), ROW)
    flagged = replace(ORDER, format="cloudevents", deleted=(DeleteFlag("gone"),))
    assert change(flagged, None, {**EVENT, "data": {**ROW, "gone": True}}) == ((17,), None)


@pytest.mark.parametrize("more", [{"data_base64": "e30="}, {"data": "AAAAAAE="}, {"data": None}, {}, {"data": [ROW]}])
def test_an_event_without_data_as_an_object_is_a_dead_letter(more: Any) -> None:
    for operation in ({}, {"iodebeziumop": "c"}):
        for pinned in (None, "cloudevents"):
            assert (
                is_refused(replace(ORDER, format=pinned), {"id": 17}, {**EVENT, **operation, **more}) == "row-missing"
            )


def test_described_rows_lose_the_members_of_their_flags() -> None:
    table = replace(ORDER, format="row", deleted=(DeleteFlag("op_type", ("D",), ("T",)), DeleteFlag("_cdc.op", ("D",))))
    assert change(table, None, {**ROW, "op_type": "U", "_cdc": {"op": "U", "ts": 1}}) == ((17,), ROW)
    assert change(table, None, {**ROW, "_cdc": {"op": "D"}}) == ((17,), None)
    assert isinstance(decoded(table, None, {"op_type": "T", "table": "ORDERS", "scn": 5}), Truncated)
    assert is_refused(table, None, {**ROW, "op_type": "d"}) == "delete-unsaid"
    declared = replace(
        entity("t", "id", "id int, op_type string"), format="row", deleted=(DeleteFlag("op_type", ("D",)),)
    )
    assert change(declared, None, {"id": 1, "op_type": "I"}) == ((1,), {"id": 1, "op_type": "I"})
    plain = replace(table, format="plain")
    assert change(plain, None, {**ROW, "op_type": "U"}) == ((17,), {**ROW, "op_type": "U"})
    assert isinstance(decoded(plain, None, {"op_type": "T"}), Truncated)


def test_described_rows_of_airbyte_are_those_inside() -> None:
    table = replace(ORDER, format="row", deleted=(DeleteFlag("_ab_cdc_deleted_at"),))
    value = {"_airbyte_raw_id": "x", "_airbyte_extracted_at": 1, "_airbyte_data": {**ROW, "_ab_cdc_deleted_at": None}}
    assert change(table, None, value) == ((17,), ROW)
    gone = {**value, "_airbyte_data": {**ROW, "_ab_cdc_deleted_at": "2026-03-01T09:00:00Z"}}
    assert change(table, None, gone) == ((17,), None)
    assert is_refused(table, {"id": 17}, {**value, "_airbyte_data": "{}"}) == "other-format"


@pytest.mark.parametrize("pinned", ["debezium", "dms", "goldengate", "cockroach", "cloudevents"])
@pytest.mark.parametrize("other", ["debezium", "dms", "goldengate", "cockroach", "cloudevents"])
def test_an_envelope_of_another_kind_than_the_pinned_one_is_named(pinned: str, other: str) -> None:
    why = reason(replace(ORDER, format=pinned), None, SAMPLES[other].insert(ROW)) if pinned != other else ""
    assert (
        pinned == other or f"an envelope of {FORMATS[other].system}, and entity orders pins `format: {pinned}`" in why
    )


@pytest.mark.parametrize("name", ["dms", "goldengate", "cockroach", "cloudevents"])
def test_a_refused_record_of_a_kind_shows_the_key_of_its_row(name: str) -> None:
    value = SAMPLES[name].insert({**ROW, "qty": {"no": "number"}})
    for key in (None, b"{"):
        record = Record(topic="t", partition=0, offset=0, key=raw(key), value=raw(value))
        assert isinstance(decoded(ORDER, key, value), Rejected)
        assert shown_keys(record, ORDER) == {(17,)}
    unknown = DMS.message("merge", data=ROW)
    assert shown_keys(Record(topic="t", partition=0, offset=0, key=None, value=raw(unknown)), ORDER) == {(17,)}


def test_the_array_of_a_refused_record_of_cockroach_shows_its_key() -> None:
    value = raw({"after": None, "before": 5, "updated": "1.0"})
    assert shown_keys(Record(topic="t", partition=0, offset=0, key=b"[17]", value=value), ORDER) == {(17,)}
