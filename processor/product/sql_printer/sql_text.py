"""Writes parts of a PostgreSQL query: names, literals, types, and values for json functions."""

from hashlib import sha256
from textwrap import indent

from processor.product.expressions.function import timestamp_text
from processor.records.entity import ColumnType

_SQL_TYPES = {
    "int": "numeric",  # a source's unsigned 64-bit integers do not fit bigint
    "string": "text",
    "float": "double precision",
    "decimal": "numeric",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamptz",
    "json": "jsonb",
}
_SYSTEM_COLUMNS = {"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"}
_MAX_NAME_BYTES = 63
_MAX_MEMBERS = 50  # json_build_object takes 100 arguments, two for each member


def sortable(expression: str, column: ColumnType) -> str:
    """A column for ORDER BY. Text is ordered by code point, whatever the database's collation is."""
    return f'{expression} COLLATE "C"' if column.name == "string" else expression


def as_json(expression: str, column: ColumnType) -> str:
    """A column as an argument of PostgreSQL's json functions."""
    if column.name != "timestamp":
        return expression
    if not column.array:
        return timestamp_text(expression)
    elements = (
        f"SELECT json_agg({timestamp_text('e.v')} ORDER BY e.n) FROM unnest({expression}) WITH ORDINALITY AS e(v, n)"
    )
    return f"CASE WHEN {expression} IS NOT NULL THEN coalesce(({elements}), '[]') END"


def json_object(members: list[tuple[str, str]]) -> str:
    """A json object of (name, expression) members in their order; any number of members."""
    if len(members) <= _MAX_MEMBERS:
        pairs = ",\n".join(f"{literal(name)}, {value}" for name, value in members)
        return f"json_build_object(\n{indent(pairs, '  ')}\n)"
    rows = ",\n".join(f"({n}, {literal(name)}, to_json({value}))" for n, (name, value) in enumerate(members))
    values = f"VALUES\n{indent(rows, '  ')}"
    return subquery(f"SELECT json_object_agg(m.k, m.v ORDER BY m.n)\nFROM {subquery(values)} AS m(n, k, v)")


def subquery(text: str) -> str:
    """A query in parentheses."""
    return f"(\n{indent(text, '  ')}\n)"


def sql_type(column: ColumnType) -> str:
    """The PostgreSQL type of a column."""
    return _SQL_TYPES[column.name] + ("[]" if column.array else "")


def table_name(name: str, schema: str | None) -> str:
    """The table of an entity, quoted."""
    return quote(sql_name(name)) if schema is None else f"{quote(schema)}.{quote(sql_name(name))}"


def sql_name(name: str) -> str:
    """The name of a column or a table in PostgreSQL: the same name, unless PostgreSQL would refuse it or cut it. Then the name
    has a hash at its end, so that different names stay different."""
    if name not in _SYSTEM_COLUMNS and len(name.encode()) <= _MAX_NAME_BYTES:
        return name
    head = name.encode()[: _MAX_NAME_BYTES - 17].decode(errors="ignore")
    return f"{head}~{sha256(name.encode()).hexdigest()[:16]}"


def quote(identifier: str) -> str:
    """An identifier in double quotes."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in single quotes (standard_conforming_strings, PostgreSQL's default)."""
    return "'" + text.replace("'", "''") + "'"
