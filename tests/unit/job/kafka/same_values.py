"""Columns as Kafka Connect writes them: by its JsonConverter and by Confluent's AvroConverter, with the same values."""

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

CONNECT = "org.apache.kafka.connect.data."
DEBEZIUM = "io.debezium."


class Column(NamedTuple):
    """`declared`: its type; `connect`, `avro`: its schemas; `values`: of Avro's reader; `json`: such a value in JSON."""

    name: str
    declared: str
    connect: dict[str, Any]
    avro: Any
    values: list[Any]
    json: Callable[[Any], Any] = lambda value: value


def semantic(base: str, connect_name: str, /, **more: Any) -> dict[str, Any]:
    return {"type": base, "connect.version": 1, "connect.name": connect_name, **more}


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def unscaled(number: int) -> bytes:
    size = ((number if number >= 0 else ~number).bit_length() // 8) + 1
    return number.to_bytes(size, "big", signed=True)


def decimal(name: str, declared: str, scale: int, numbers: list[int]) -> Column:
    parameters = {"scale": str(scale), "connect.decimal.precision": "38"}
    more = {"scale": scale, "precision": 38, "connect.parameters": parameters, "logicalType": "decimal"}
    connect = {"type": "bytes", "name": f"{CONNECT}Decimal", "parameters": parameters}
    avro = semantic("bytes", f"{CONNECT}Decimal", **more)
    return Column(name, declared, connect, avro, [unscaled(number) for number in numbers], base64_of)


def named(column: str, declared: str, base: tuple[str, str], name: str, values: list[Any], logical: str = "") -> Column:
    """A column whose schema has a name. `base`: its type by Kafka Connect, and in Avro."""
    more = {"logicalType": logical} if logical else {}
    return Column(column, declared, {"type": base[0], "name": name}, semantic(base[1], name, **more), values)


LONG, INT, TEXT = ("int64", "long"), ("int32", "int"), ("string", "string")
ENUM = {"allowed": "new,done"}
ARRAY = {"type": "array", "items": ["null", "string"]}
POINT = f"{DEBEZIUM}data.geometry.Point"
POINT_FIELDS = [
    {"name": "x", "type": "double"},
    {"name": "y", "type": "double"},
    {"name": "wkb", "type": ["null", "bytes"], "default": None},
    {"name": "srid", "type": ["null", "int"], "default": None},
]
VARIABLE = f"{DEBEZIUM}data.VariableScaleDecimal"

COLUMNS = [
    Column("small", "int", {"type": "int16"}, {"type": "int", "connect.type": "int16"}, [-32768, 0, 7]),
    Column("n32", "int", {"type": "int32"}, "int", [-(2**31), 2**31 - 1]),
    Column("n64", "int", {"type": "int64"}, "long", [-(2**63), 2**63 - 1, 0]),
    Column("flag", "bool", {"type": "boolean"}, "boolean", [True, False]),
    Column("word", "string", {"type": "string"}, "string", ["", "a", "ü€😀", "x" * 300]),
    Column("f64", "float", {"type": "double"}, "double", [0.1, -1e100, 5.0, 1e-9]),
    Column("f32", "float", {"type": "float"}, "float", [0.5, 0.25, -1024.0]),
    Column("raw", "string", {"type": "bytes"}, "bytes", [b"", b"\0\xff\x10"], base64_of),
    decimal("price", "decimal", 2, [0, 1234, -1, 10**37, -(10**37), 255]),
    decimal("whole", "int", 0, [0, -129, 2**62]),
    decimal("shift", "decimal", -2, [12]),
    named("day", "date", INT, f"{DEBEZIUM}time.Date", [0, -719162, 19000]),
    named("day2", "date", INT, f"{CONNECT}Date", [19000], "date"),
    named("at_ms", "timestamp", LONG, f"{DEBEZIUM}time.Timestamp", [0, 1795214323797, -1]),
    named("at_us", "timestamp", LONG, f"{DEBEZIUM}time.MicroTimestamp", [1795214323797123, -62135596800000000]),
    named("at_ns", "timestamp", LONG, f"{DEBEZIUM}time.NanoTimestamp", [1795214323797123456]),
    named("at_connect", "timestamp", LONG, f"{CONNECT}Timestamp", [1795214323797], "timestamp-millis"),
    named("at_zone", "timestamp", TEXT, f"{DEBEZIUM}time.ZonedTimestamp", ["2026-11-20T22:38:37.758449Z"]),
    named("at_iso", "timestamp", TEXT, f"{DEBEZIUM}time.IsoTimestamp", ["2026-11-20T22:38:37.758449Z"]),
    named("time_us", "int", LONG, f"{DEBEZIUM}time.MicroTime", [86399999999]),
    named("time_ms", "int", INT, f"{CONNECT}Time", [86399999], "time-millis"),
    named("time_zone", "string", TEXT, f"{DEBEZIUM}time.ZonedTime", ["22:38:37.758449Z"]),
    named("span", "string", TEXT, f"{DEBEZIUM}time.Interval", ["P1Y2M3DT4H5M6.78S"]),
    named("span_us", "int", LONG, f"{DEBEZIUM}time.MicroDuration", [37091106000000]),
    named("year", "int", INT, f"{DEBEZIUM}time.Year", [2026]),
    named("id_", "string", TEXT, f"{DEBEZIUM}data.Uuid", ["0190f3d4-7d1c-7b1e-8f5a-3f1d2c4b5a69"]),
    named("doc", "json", TEXT, f"{DEBEZIUM}data.Json", ['{"a":[1,2.50,null]}', "1.0", "null"]),
    named("xml", "string", TEXT, f"{DEBEZIUM}data.Xml", ["<a/>"]),
    named("tree", "string", TEXT, f"{DEBEZIUM}data.Ltree", ["a.b"]),
    Column(
        "kind",
        "string",
        {"type": "string", "name": f"{DEBEZIUM}data.Enum", "parameters": ENUM},
        semantic("string", f"{DEBEZIUM}data.Enum", **{"connect.parameters": ENUM}),
        ["new", "done"],
    ),
    Column(
        "symbol",
        "string",
        {"type": "string"},
        {"type": "enum", "name": "S", "symbols": ["NEW", "DONE"]},
        ["NEW", "DONE"],
    ),
    Column("tags", "string[]", {"type": "array", "items": {"type": "string"}}, ARRAY, [[], ["a", None, "b"]]),
    Column(
        "prices",
        "decimal[]",
        {"type": "array", "items": {"type": "bytes", "name": f"{CONNECT}Decimal", "parameters": {"scale": "1"}}},
        {
            "type": "array",
            "items": [
                "null",
                semantic("bytes", f"{CONNECT}Decimal", **{"connect.parameters": {"scale": "1"}, "scale": 1}),
            ],
        },
        [[unscaled(15), None]],
        lambda values: [None if value is None else base64_of(value) for value in values],
    ),
    Column(
        "moments",
        "timestamp[]",
        {"type": "array", "items": {"type": "int64", "name": f"{DEBEZIUM}time.MicroTimestamp"}},
        {"type": "array", "items": semantic("long", f"{DEBEZIUM}time.MicroTimestamp")},
        [[1795214323797123]],
    ),
    Column("pairs", "json", {"type": "map"}, {"type": "map", "values": ["null", "string"]}, [{"a": "1", "b": None}]),
    Column(
        "amount",
        "decimal",
        {"type": "struct", "name": VARIABLE},
        semantic(
            "record", VARIABLE, name="V", fields=[{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}]
        ),
        [{"scale": 3, "value": unscaled(12345)}, {"scale": -1, "value": unscaled(-5)}],
        lambda value: value | {"value": base64_of(value["value"])},
    ),
    Column(
        "place",
        "json",
        {"type": "struct", "name": POINT},
        semantic("record", POINT, name="Point", fields=POINT_FIELDS),
        [{"x": 1.5, "y": -2.25, "wkb": b"\1", "srid": None}],
        lambda value: value | {"wkb": base64_of(value["wkb"])},
    ),
    Column(
        "bits",
        "string",
        {"type": "bytes", "name": f"{DEBEZIUM}data.Bits"},
        semantic("bytes", f"{DEBEZIUM}data.Bits"),
        [b"\5"],
        base64_of,
    ),
]
