"""A PostgreSQL table with a column of each type, and rows with values that need care.

`COLUMNS`: name, type, value (an SQL expression). The extensions hstore, citext, ltree and isn belong to PostgreSQL's contrib.
"""

from typing import Final

MODES: Final = {
    time: {
        "time.precision.mode": time,
        "decimal.handling.mode": decimal,
        "interval.handling.mode": interval,
        "hstore.handling.mode": hstore,
        "binary.handling.mode": binary,
        "include.unknown.datatypes": unknown,
    }
    for time, decimal, interval, hstore, binary, unknown in (
        ("adaptive", "precise", "numeric", "json", "bytes", "true"),
        ("adaptive_time_microseconds", "string", "string", "map", "base64", "false"),
        ("connect", "double", "numeric", "json", "base64-url-safe", "false"),
        ("isostring", "string", "string", "map", "hex", "false"),
        ("microseconds", "precise", "numeric", "json", "bytes", "false"),
        ("nanoseconds", "precise", "numeric", "json", "bytes", "false"),
    )
}
"""The settings of each capture."""

COLUMNS: Final = (
    ("bool", "boolean", "true"),
    ("small", "smallint", "-32768"),
    ("whole", "integer", "2147483647"),
    ("big", "bigint", "9223372036854775807"),
    ("oid", "oid", "4294967295"),
    ("single", "real", "1.1"),
    ("double", "double precision", "0.1"),
    ("price", "numeric(12,2)", "12.34"),
    ("long_number", "numeric(38,0)", "12345678901234567890123456789012345678"),
    ("long_fraction", "numeric(38,10)", "-1234567890123456789012345678.0123456789"),
    ("free", "numeric", "5.50"),
    ("money", "money", "'1234.50'"),
    ("text", "text", "'Zoë 中 🙂'"),
    ("varchar", "varchar(20)", "'abc'"),
    ("char", "char(5)", "'ab'"),
    ("citext", "citext", "'MixEd'"),
    ("isbn", "isbn", "'978-0-393-04002-9'"),
    ("bytea", "bytea", r"'\x00fffb'"),
    ("bit1", "bit(1)", "B'1'"),
    ("bits", "bit(10)", "B'1000000001'"),
    ("varbits", "bit varying(12)", "B'101'"),
    ("date", "date", "'2026-11-20'"),
    ("time0", "time(0)", "'22:38:37'"),
    ("time3", "time(3)", "'22:38:37.758'"),
    ("time6", "time", "'22:38:37.758449'"),
    ("timetz", "timetz", "'22:38:37.758449+02'"),
    ("at0", "timestamp(0)", "'2026-11-20 22:38:37'"),
    ("at3", "timestamp(3)", "'2026-11-20 22:38:37.758'"),
    ("at6", "timestamp", "'2026-11-20 22:38:37.758449'"),
    ("moment", "timestamptz", "'2026-11-20 22:38:37.758449+02'"),
    ("span", "interval", "'1 year 2 months 3 days 04:05:06.789'"),
    ("uuid", "uuid", "'7f000101-0000-4000-8000-000000000001'"),
    ("json", "json", """'{"b": 1.50, "a": [1, null]}'"""),
    ("jsonb", "jsonb", """'{"b": 1.50, "a": [1, null]}'"""),
    ("json_text", "jsonb", """'"42"'"""),
    ("xml", "xml", "'<a>1</a>'"),
    ("hstore", "hstore", "'a=>1, b=>NULL'"),
    ("ltree", "ltree", "'top.science'"),
    ("inet", "inet", "'10.0.0.1/24'"),
    ("cidr", "cidr", "'10.0.0.0/8'"),
    ("mac", "macaddr", "'08:00:2b:01:02:03'"),
    ("mac8", "macaddr8", "'08:00:2b:01:02:03:04:05'"),
    ("mood", "mood", "'happy'"),
    ("positive", "positive", "7"),
    ("short_price", "short_price", "1.25"),
    ("point", "point", "'(1.5,2)'"),
    ("box", "box", "'(2,2),(1,1)'"),
    ("pair", "pair", "row(1, 'a')"),
    ("words", "tsvector", "'a fat cat'"),
    ("lsn", "pg_lsn", "'16/B374D848'"),
    ("int_range", "int4range", "'[1,5)'"),
    ("big_range", "int8range", "'[1,5)'"),
    ("num_range", "numrange", "'[1.5,2.5]'"),
    ("date_range", "daterange", "'[2026-11-20,2026-11-25)'"),
    ("ts_range", "tsrange", "'[2026-11-20 01:00,)'"),
    ("tstz_range", "tstzrange", "'[2026-11-20 01:00+00,)'"),
    ("ints", "integer[]", "'{1,NULL,3}'"),
    ("bigs", "bigint[]", "'{9223372036854775807}'"),
    ("texts", "text[]", """'{a,NULL,"b,c"}'"""),
    ("bools", "boolean[]", "'{t,f}'"),
    ("doubles", "double precision[]", "'{0.1,2}'"),
    ("prices", "numeric(8,2)[]", "'{1.25,NULL}'"),
    ("frees", "numeric[]", "'{1.5}'"),
    ("uuids", "uuid[]", "'{7f000101-0000-4000-8000-000000000001}'"),
    ("dates", "date[]", "'{2026-11-20}'"),
    ("ats", "timestamp[]", "'{2026-11-20 22:38:37.758449}'"),
    ("moments", "timestamptz[]", "'{2026-11-20 22:38:37.758449+02}'"),
    ("jsons", "jsonb[]", """array['{"a": 1}'::jsonb]"""),
    ("moods", "mood[]", "'{happy}'"),
    ("inets", "inet[]", "'{10.0.0.1}'"),
    ("grid", "integer[][]", "'{{1,2},{3,4}}'"),
)

TYPES: Final = """
create extension hstore; create extension citext; create extension ltree; create extension isn;
create type mood as enum ('sad', 'happy');
create type pair as (a int, b text);
create domain positive as int check (value > 0);
create domain short_price as numeric(6,2);
"""

SPECIAL: Final = (
    ("single", "'NaN'"),
    ("double", "'NaN'"),
    ("double", "'Infinity'"),
    ("double", "'-Infinity'"),
    ("double", "1e308"),
    ("price", "'NaN'"),
    ("free", "'NaN'"),
    ("free", "'Infinity'"),
    ("free", "12345678901234567890123456789012345678901234567890.5"),
    ("free", "1e-20"),
    ("price", "-0.01"),
    ("price", "1000"),
    ("date", "'infinity'"),
    ("date", "'-infinity'"),
    ("date", "'0001-01-01'"),
    ("date", "'0044-03-15 BC'"),
    ("date", "'9999-12-31'"),
    ("date", "'10000-01-01'"),
    ("at6", "'infinity'"),
    ("at6", "'-infinity'"),
    ("at6", "'1969-12-31 23:59:59.999999'"),
    ("at6", "'0001-01-01 00:00:00'"),
    ("at6", "'10000-01-01 00:00:00'"),
    ("moment", "'infinity'"),
    ("moment", "'-infinity'"),
    ("moment", "'10000-01-01 00:00:00+00'"),
    ("moment", "'0044-03-15 12:00:00+00 BC'"),
    ("time6", "'24:00:00'"),
    ("span", "'-1 month -00:00:00.000001'"),
    ("jsonb", "'null'"),
    ("jsonb", "'1e400'"),
    ("text", "'__debezium_unavailable_value'"),
)
"""A row each, in which this column alone has a value."""


def create_table() -> str:
    """The statements that make the types and the table."""
    columns = ", ".join(f"{name} {sql_type}" for name, sql_type, _ in COLUMNS)
    return f"{TYPES} create table sample (id int primary key, {columns});"


def insert_sample(key: int) -> str:
    """The statement that stores a row with all the values."""
    names, values = ", ".join(name for name, _, _ in COLUMNS), ", ".join(value for _, _, value in COLUMNS)
    return f"insert into sample (id, {names}) values ({key}, {values});"


def insert_special(first: int) -> list[str]:
    """The statements that store the special values, each in a row of its own."""
    return [f"insert into sample (id, {c}) values ({k}, {v});" for k, (c, v) in enumerate(SPECIAL, start=first)]
