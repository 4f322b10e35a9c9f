"""A MariaDB table with a column of each type, and rows with values that need care. `COLUMNS`: name, type, value (SQL)."""

from typing import Final

MODES: Final = {
    time: {
        "time.precision.mode": time,
        "decimal.handling.mode": decimal,
        "bigint.unsigned.handling.mode": unsigned,
        "binary.handling.mode": binary,
    }
    for time, decimal, unsigned, binary in (
        ("adaptive_time_microseconds", "precise", "long", "bytes"),
        ("connect", "string", "precise", "base64"),
        ("isostring", "double", "long", "hex"),
        ("nanoseconds", "string", "precise", "base64-url-safe"),
    )
}
"""The settings of each capture."""

COLUMNS: Final = (
    ("flag", "boolean", "true"),
    ("tiny1", "tinyint(1)", "0"),
    ("tiny", "tinyint", "-128"),
    ("tiny_u", "tinyint unsigned", "255"),
    ("small_u", "smallint unsigned", "65535"),
    ("medium", "mediumint", "-8388608"),
    ("whole", "int", "2147483647"),
    ("whole_u", "int unsigned", "4294967295"),
    ("big", "bigint", "-9223372036854775808"),
    ("big_u", "bigint unsigned", "18446744073709551615"),
    ("single", "float", "1.1"),
    ("double", "double", "0.1"),
    ("price", "decimal(12,2)", "12.34"),
    ("long_number", "decimal(38,0)", "12345678901234567890123456789012345678"),
    ("bit1", "bit(1)", "b'1'"),
    ("bits", "bit(10)", "b'1000000001'"),
    ("char", "char(5)", "'ab'"),
    ("varchar", "varchar(20)", "'Zoë 中 🙂'"),
    ("text", "text", "'long text'"),
    ("binary", "binary(4)", "x'00ff'"),
    ("varbinary", "varbinary(8)", "x'00fffb'"),
    ("blob", "blob", "x'00fffb'"),
    ("date", "date", "'2026-11-20'"),
    ("time0", "time", "'22:38:37'"),
    ("time6", "time(6)", "'-122:38:37.758449'"),
    ("at0", "datetime", "'2026-11-20 22:38:37'"),
    ("at3", "datetime(3)", "'2026-11-20 22:38:37.758'"),
    ("at6", "datetime(6)", "'2026-11-20 22:38:37.758449'"),
    ("moment", "timestamp null", "'2026-11-20 22:38:37'"),
    ("moment6", "timestamp(6) null", "'2026-11-20 22:38:37.758449'"),
    ("year", "year", "2026"),
    ("json", "json", """'{"b": 1.50, "a": [1, null]}'"""),
    ("mood", "enum('sad','happy')", "'happy'"),
    ("moods", "set('sad','happy')", "'sad,happy'"),
    ("point", "point", "point(1.5, 2)"),
    ("shape", "geometry", "st_geomfromtext('linestring(0 0, 1 2)')"),
)

SPECIAL: Final = (
    ("date", "'0000-00-00'"),
    ("date", "'2026-00-10'"),
    ("at6", "'0000-00-00 00:00:00'"),
    ("moment", "'0000-00-00 00:00:00'"),
    ("at6", "'9999-12-31 23:59:59.999999'"),
    ("at6", "'0001-01-01 00:00:00'"),
    ("year", "'0000'"),
    ("time0", "'838:59:59'"),
    ("mood", "''"),
    ("moods", "''"),
    ("price", "-0.01"),
    ("price", "1000"),
)
"""A row each, in which this column alone has a value. The server accepts zero dates, because its `sql_mode` is empty."""


def create_table() -> str:
    """The statement that makes the table."""
    columns = ", ".join(f"`{name}` {sql_type}" for name, sql_type, _ in COLUMNS)
    return f"create table sample (id int primary key, {columns});"


def insert_sample(key: int) -> str:
    """The statement that stores a row with all the values."""
    names, values = ", ".join(f"`{name}`" for name, _, _ in COLUMNS), ", ".join(value for _, _, value in COLUMNS)
    return f"insert into sample (id, {names}) values ({key}, {values});"


def insert_special(first: int) -> list[str]:
    """The statements that store the special values, each in a row of its own."""
    return [f"insert into sample (id, `{c}`) values ({k}, {v});" for k, (c, v) in enumerate(SPECIAL, start=first)]
