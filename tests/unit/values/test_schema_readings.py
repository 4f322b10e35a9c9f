"""Each declared type with each type that a schema can name: the record decides, or it is a dead letter."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from processor.values.connect_schema import NAMED_TYPES, connect_schema, schema_reading
from processor.values.entity import parse_type
from processor.values.record import Change, Rejected
from processor.values.values import converter
from tests.unit.engine.protocol.decoding import change, decoded, entity, envelope, reason, with_schema

CONNECT, TIME, DATA = "org.apache.kafka.connect.data.", "io.debezium.time.", "io.debezium.data."
NUMBERS = ("int", "float", "decimal", "decimal(10,2)")
TIMESTAMPS = ("timestamp", "timestamp(ms)", "timestamp(us)", "timestamp(ns)")
DECLARED = (*NUMBERS, "bool", "date", *TIMESTAMPS, "string", "json")
SMALL, BASE64 = 20513, "BNI="
"""A number that is a day, a time, and milliseconds; bytes of 1234."""


@dataclass(frozen=True, kw_only=True)
class SchemaType:
    """A type of a schema with a value. `taken`: declared type -> the value in the document. The other types refuse it; the reason
    says what the schema names, if it names a type."""

    name: str = ""
    kind: str
    value: Any
    taken: dict[str, Any]
    more: tuple[tuple[str, Any], ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": self.kind} | ({"name": self.name} if self.name else {}) | dict(self.more)


def of(types: tuple[str, ...], value: Any) -> dict[str, Any]:
    return dict.fromkeys(types, value)


def numbers(name: str, value: Any, taken: dict[str, Any]) -> SchemaType:
    return SchemaType(name=name, kind="int64", value=value, taken=taken)


def texts(name: str, value: str, *types: str) -> SchemaType:
    return SchemaType(name=name, kind="string", value=value, taken=of((*types, "string"), value))


SCALE_0 = (("parameters", {"scale": "0"}),)
NUMBER = of(("float", "decimal", "decimal(10,2)"), Decimal("12.34"))
SCHEMAS = [
    numbers(f"{TIME}Timestamp", SMALL, of(TIMESTAMPS, "1970-01-01T00:00:20.513Z")),
    numbers(f"{CONNECT}Timestamp", SMALL, of(TIMESTAMPS, "1970-01-01T00:00:20.513Z")),
    numbers(f"{TIME}MicroTimestamp", SMALL, of(TIMESTAMPS, "1970-01-01T00:00:00.020513Z")),
    numbers(f"{TIME}NanoTimestamp", SMALL, of(TIMESTAMPS, "1970-01-01T00:00:00.000020513Z")),
    numbers(f"{TIME}Date", SMALL, {"date": "2026-03-01"}),
    numbers(f"{CONNECT}Date", SMALL, {"date": "2026-03-01"}),
    *(
        numbers(name, SMALL, {"int": SMALL})
        for name in (*(f"{TIME}{one}" for one in ("Time", "MicroTime", "NanoTime", "Year")), f"{CONNECT}Time")
    ),
    numbers(f"{TIME}MicroDuration", SMALL, {"int": SMALL}),
    numbers(f"{TIME}NanoDuration", SMALL, {"int": SMALL}),
    texts(f"{TIME}ZonedTimestamp", "2026-03-01T00:00:00Z", *TIMESTAMPS),
    texts(f"{TIME}IsoTimestamp", "2026-03-01T00:00:00Z", *TIMESTAMPS),
    texts(f"{TIME}IsoDate", "2026-03-01", "date"),
    texts(f"{TIME}ZonedTime", "2026-03-01"),
    texts(f"{TIME}IsoTime", "2026-03-01T00:00:00Z"),
    texts(f"{TIME}Interval", "1234"),
    *(texts(f"{DATA}{name}", "1234") for name in ("Uuid", "Xml", "Ltree", "Enum", "EnumSet", "TsVector")),
    SchemaType(name=f"{DATA}Json", kind="string", value="1234", taken={"string": "1234", "json": 1234}),
    SchemaType(name=f"{CONNECT}Decimal", kind="bytes", value=BASE64, taken=of(NUMBERS, 1234), more=SCALE_0),
    SchemaType(name=f"{DATA}VariableScaleDecimal", kind="struct", value={"scale": 2, "value": BASE64}, taken=NUMBER),
    SchemaType(name=f"{DATA}Bits", kind="bytes", value="1234", taken={"string": "1234"}),
    SchemaType(kind="bytes", value="1234", taken={"string": "1234"}),
    SchemaType(kind="string", value="1234", taken=of(("float", "decimal", "decimal(10,2)"), 1234) | {"string": "1234"}),
    SchemaType(
        kind="int64",
        value=SMALL,
        taken=of(NUMBERS, SMALL)
        | {
            "date": "2026-03-01",
            "timestamp(ms)": "1970-01-01T00:00:20.513Z",
            "timestamp(us)": "1970-01-01T00:00:00.020513Z",
            "timestamp(ns)": "1970-01-01T00:00:00.000020513Z",
        },
    ),
    SchemaType(kind="boolean", value=True, taken={"bool": True}),
]
PAIRS = [(one, declared) for one in SCHEMAS for declared in DECLARED]


def results(one: SchemaType, declared: str) -> Iterator[Any]:
    """The value in the row, or the reason: of a column of the type, then of an array of it."""
    for array in (False, True):
        table = entity("t", "id", f"id int, x {declared}{'[]' if array else ''}")
        field = {"type": "array", "items": one.schema} if array else one.schema
        fields = [{"field": "id", "type": "int32"}, field | {"field": "x"}]
        row = envelope("u", after={"id": 7, "x": [one.value] if array else one.value})
        found = decoded(table, None, with_schema(row, [{"field": "after", "type": "struct", "fields": fields}]))
        if isinstance(found, Rejected):
            yield found.reason
        else:
            assert isinstance(found, Change)
            assert found.row is not None
            yield found.row["x"][0] if array else found.row["x"]


@pytest.mark.parametrize(("one", "declared"), PAIRS, ids=lambda x: x if isinstance(x, str) else x.name or x.kind)
def test_the_record_decides_or_is_a_dead_letter(one: SchemaType, declared: str) -> None:
    taken = {"json": one.value} | one.taken
    for found in results(one, declared):
        if declared in taken:
            assert (found, type(found) is str) == (taken[declared], type(taken[declared]) is str)
        else:
            assert f": expected {declared}" in str(found)
            named = one.name or ("bytes" if one.kind == "bytes" else "")
            assert f"its schema says {named}: declare" in str(found) or not named


def test_each_type_that_the_code_names_is_in_the_table() -> None:
    assert NAMED_TYPES.keys() <= {one.name for one in SCHEMAS}


def test_the_declared_unit_counts_where_the_schema_names_none_and_never_for_text_in_a_schema() -> None:
    table = entity("t", "id", "id int, x timestamp(us)")
    field = {"field": "x", "type": "string", "name": f"{TIME}ZonedTimestamp"}
    assert "expected timestamp(us), found number 5" in reason(table, None, with_schema({"id": 7, "x": 5}, [field]))
    assert change(table, None, with_schema({"id": 7, "x": 5}, [{"field": "id", "type": "int32"}]))[1]["x"][-2:] == "5Z"


def test_a_column_that_its_schema_leaves_out_is_read_as_without_a_schema() -> None:
    fields = [{"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int32"}]}]
    row = envelope("u", after={"id": 7, "x": "1000"})
    table = entity("t", "id", "id int, x decimal(10,2)")
    assert "it may be a number or Debezium's bytes" in reason(table, None, with_schema(row, fields))
    for form, expected in (("text", Decimal(1000)), ("bytes", Decimal("-26672.12"))):
        table = entity("t", "id", "id int, x decimal(10,2)", decimals=form)  # type: ignore[arg-type]
        assert change(table, None, with_schema(row, fields))[1]["x"] == expected


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("text", "1234", Decimal(1234)),
        ("text", "12345", Decimal(12345)),
        ("text", "12.34", Decimal("12.34")),
        ("text", 12, Decimal(12)),
        ("text", "free", "found text 'free'"),
        ("text", "BNI=", "found text 'BNI='"),
        ("bytes", "BNI=", Decimal("12.34")),
        ("bytes", "1000", Decimal("-26672.12")),
        ("bytes", 12, Decimal(12)),
        ("bytes", {"scale": 1, "value": "Nw=="}, Decimal("5.5")),
        ("bytes", "12.34", "found text '12.34' (not Debezium's bytes)"),
        ("bytes", "12345", "found text '12345' (not Debezium's bytes)"),
        (None, "12345", Decimal(12345)),
        (None, "12.34", Decimal("12.34")),
        (None, 12, Decimal(12)),
        (None, "1234", "declare `decimals: text` or `decimals: bytes`, or send schemas"),
        (None, "BNI=", Decimal("12.34")),
    ],
)
@pytest.mark.parametrize("shape", ["envelope", "flattened"])
def test_the_entity_says_how_its_decimals_arrive_and_nothing_guesses(
    shape: str, form: Any, value: Any, expected: Any
) -> None:
    table = entity("t", "id", "id int, x decimal(10,2), other decimal(10,2)", decimals=form)
    row = {"id": 7, "x": value}
    record = envelope("u", after=row) if shape == "envelope" else row | {"__deleted": "false"}
    if isinstance(expected, str):
        assert expected in reason(table, None, record)
    else:
        assert change(table, None, record)[1]["x"] == expected
    named = entity("t", "id", "id int, x decimal(10,2), other decimal(10,2)", decimals={"x": form} if form else {})
    assert repr(decoded(named, None, record)) == repr(decoded(table, None, record))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "union"},
        {"type": "union", "branches": {}},
        {"type": "union", "branches": []},
        {"type": "union", "branches": [1, None, "x"]},
        {"type": "union", "branches": [{"type": "union", "branches": [[]]}]},
        {"type": "array", "items": {"type": "union"}},
    ],
)
def test_a_schema_that_no_writer_makes_is_refused_and_never_raises(schema: dict[str, Any]) -> None:
    record = with_schema({"id": 7, "x": 5}, [schema | {"field": "x"}])
    assert "its schema says one of several types" in reason(entity("t", "id", "id int, x int"), None, record)
    assert change(entity("t", "id", "id int, x json"), None, record)[1]["x"] == 5


def test_text_in_an_int_column_has_no_form_of_decimals() -> None:
    why = reason(entity("t", "id", "id int, x int"), None, envelope("u", after={"id": 7, "x": "1000"}))
    assert why == "column 'x': expected int, found text '1000'"


def test_a_plain_row_has_numbers_in_its_text_unless_the_entity_says_bytes() -> None:
    assert change(entity("t", "id", "id int, x decimal"), None, {"id": 7, "x": "1234"})[1]["x"] == 1234
    table = entity("t", "id", "id int, x decimal(10,2)", decimals="bytes")
    assert change(table, None, {"id": 7, "x": "1000"})[1]["x"] == Decimal("-26672.12")


def test_a_choice_of_a_json_schema_is_read_only_where_all_its_branches_agree() -> None:
    digits, date = {"type": "string"}, {"type": "integer", "title": f"{CONNECT}Date", "connect.type": "int32"}
    millis = {"type": "integer", "title": f"{CONNECT}Timestamp", "connect.type": "int64"}
    columns = {"x": [{"type": "null"}, date, millis], "y": [digits, {"type": "number"}]}
    made = {"type": "object", "properties": {name: {"oneOf": branches} for name, branches in columns.items()}}
    fields = {field["field"]: field for field in connect_schema(made)["fields"]}
    for declared in ("date", "timestamp(ms)", "int"):
        with pytest.raises(ValueError, match="its schema says one of several types: declare json"):
            converter(parse_type(declared), schema_reading(fields["x"], parse_type(declared)))(SMALL)
    assert converter(parse_type("json"), schema_reading(fields["x"], parse_type("json")))(SMALL) == SMALL
    assert converter(parse_type("decimal"), schema_reading(fields["y"], parse_type("decimal")))("1234") == 1234
