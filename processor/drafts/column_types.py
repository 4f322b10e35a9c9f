"""The type to declare for a column of PostgreSQL, MySQL or MariaDB, by its SQL type and the connector's settings. Pure.

docs/types.md has the whole map, and a test compares each of its rows with this module.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from processor.drafts.draft import DraftColumn
from processor.records.column_types import MAX_DIGITS

DecimalMode = Literal["precise", "string", "double"]
TimeMode = Literal["adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"]


class ConnectorModes(NamedTuple):
    """The connector's `time.precision.mode` and `decimal.handling.mode`. None: nobody said, and Debezium's default is a guess."""

    time: TimeMode | None = None
    decimal: DecimalMode | None = None


_PLAIN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("boolean", "bool", "bit(1)", "tinyint(1)"), "bool"),
    **dict.fromkeys(("smallint", "integer", "bigint", "int", "tinyint", "mediumint", "oid", "year", "smallserial"), "int"),
    **dict.fromkeys(("real", "float", "double precision", "double"), "float"),
    **dict.fromkeys(("json", "jsonb", "hstore"), "json(text)"),
    **dict.fromkeys(("point", "geometry", "geography", "linestring", "polygon"), "json"),
    **dict.fromkeys(
        (
            "text", "varchar", "character varying", "char", "character", "bpchar", "citext", "name", "isbn", "isbn13", "issn",
            "issn13", "ismn", "ean13", "upc", "bytea", "bit", "bit varying", "varbit", "timetz", "uuid", "xml", "ltree", "inet",
            "cidr", "macaddr", "macaddr8", "enum", "set", "tsvector", "int4range", "int8range", "numrange", "daterange",
            "tsrange", "tstzrange", "binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob", "tinytext",
            "mediumtext", "longtext", "nvarchar", "nchar",
        ),
        "string",
    ),
    **dict.fromkeys(("timestamptz", "timestamp with time zone"), "timestamp"),
    "date": "date",
    "interval": "int",
}  # fmt: skip
_GUESSED: Final = {
    "interval": "string with interval.handling.mode string",
    "tinyint(1)": "int where it holds other numbers than 0 and 1",
    "bigint unsigned": "with bigint.unsigned.handling.mode precise: decimal(20,0), decimals: bytes",
}
_SHAPE: Final = re.compile(r"([a-z_][a-z_0-9]*(?: [a-z]+)*?)\s*(?:\(([^()]*)\))?((?: [a-z]+)*)((?:\[\])*)")
_TO_MILLISECONDS: Final = 3
"""`adaptive` sends milliseconds up to so many digits of the second, and microseconds above."""
_FULL: Final = 6


def declared_type(sql_type: str, modes: ConnectorModes, *, mysql: bool = False) -> DraftColumn:
    """The column to declare for a type as SQL writes it: `numeric(12, 2)`, `timestamp(3) without time zone`, `integer[]`. The
    schema of an extension's type, `extensions.citext`, says nothing."""
    written = sql_type if mysql else sql_type.rpartition(".")[2]
    found = _SHAPE.fullmatch(written.lower().replace(" unsigned", "").replace(" zerofill", ""))
    if found is None:
        return _unknown(sql_type)
    name, arguments, zone, array = found[1], re.sub(r"\s", "", found[2] or ""), found[3].strip(), found[4]
    name = f"{name} {zone}".removesuffix(" without time zone") if zone else name
    column = _scalar(name, arguments, modes, mysql)
    if " unsigned" in sql_type.lower() and name == "bigint":
        column = column._replace(guess=_GUESSED["bigint unsigned"])
    if not column.type:
        return _unknown(sql_type)
    return column._replace(type=f"{column.type}[]") if array else column


def _scalar(name: str, arguments: str, modes: ConnectorModes, mysql: bool) -> DraftColumn:
    exact = f"{name}({arguments})"
    if exact in _PLAIN and (mysql or name != "tinyint"):
        return DraftColumn(_PLAIN[exact], _GUESSED.get(exact, ""))
    match name:
        case "numeric" | "decimal" | "dec":
            return DraftColumn(_decimal(arguments, mysql))
        case "money":
            return DraftColumn(_decimal("19,2", mysql), "" if modes.decimal else "other fractions than 2 digits")
        case "timestamp" if mysql:
            return DraftColumn("timestamp")
        case "timestamp" | "datetime":
            return _timestamp(arguments, modes, 0 if mysql else _FULL)
        case "time" | "time without time zone":
            time = "string" if modes.time == "isostring" else "int"
            return DraftColumn(time, "" if modes.time else "string with time.precision.mode isostring")
        case "time with time zone":
            return DraftColumn("string")
    return DraftColumn(_PLAIN.get(name, ""), _GUESSED.get(name, ""))


def _decimal(arguments: str, mysql: bool) -> str:
    """`decimal(p,s)` where the source has a scale: bytes need it in records without a schema, and so does text in expressions."""
    precision, _, scale = (arguments or ("10,0" if mysql else "")).partition(",")
    if not precision.isdecimal() or not (scale or "0").isdecimal():
        return "decimal"
    fits = 1 <= int(precision) <= MAX_DIGITS and int(scale or 0) <= int(precision)
    return f"decimal({precision},{scale or 0})" if fits else "decimal"


def _timestamp(arguments: str, modes: ConnectorModes, default: int) -> DraftColumn:
    digits = int(arguments) if arguments.isdecimal() else default
    adaptive = "ms" if digits <= _TO_MILLISECONDS else "us"
    match modes.time:
        case "isostring":
            return DraftColumn("timestamp")
        case "connect":
            return DraftColumn("timestamp(ms)")
        case "nanoseconds":
            return DraftColumn("timestamp(ns)")
        case "microseconds":
            return DraftColumn("timestamp(us)")
        case None:
            return DraftColumn(f"timestamp({adaptive})", "the unit, by Debezium's default time.precision.mode")
    return DraftColumn(f"timestamp({adaptive})")


def _unknown(sql_type: str) -> DraftColumn:
    return DraftColumn(
        "", f"{sql_type or 'this type'}: look at a record, then declare it; undeclared it passes through"
    )
