"""How the parts of a PostgreSQL query are spelt: names, literals, types, and values as json writes them."""

from textwrap import indent

from processor.model.entity import ColumnType
from processor.model.function import instant

_TYPES = {
    "int": "numeric",  # a source's unsigned 64-bit integers do not fit bigint
    "string": "text",
    "float": "double precision",
    "decimal": "numeric",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamptz",
    "json": "jsonb",
}
_MOST_MEMBERS = 50  # json_build_object takes 100 arguments, two a member


def sortable(expression: str, column: ColumnType) -> str:
    """Text is ordered by code point, whatever the database's collation is."""
    return f'{expression} COLLATE "C"' if column.name == "string" else expression


def as_json(expression: str, column: ColumnType) -> str:
    """A column as PostgreSQL's json functions are to take it."""
    if column.name != "timestamp":
        return expression
    if not column.array:
        return instant(expression)
    elements = f"SELECT json_agg({instant('e.v')} ORDER BY e.n) FROM unnest({expression}) WITH ORDINALITY AS e(v, n)"
    return f"CASE WHEN {expression} IS NOT NULL THEN coalesce(({elements}), '[]') END"


def json_object(members: list[tuple[str, str]]) -> str:
    """An object of (name, expression) members in their order, however many."""
    if len(members) <= _MOST_MEMBERS:
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
    return _TYPES[column.name] + ("[]" if column.array else "")


def table_name(name: str, schema: str | None) -> str:
    """The table of an entity, quoted."""
    return quote(name) if schema is None else f"{quote(schema)}.{quote(name)}"


def quote(identifier: str) -> str:
    """An identifier in double quotes."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in single quotes (standard_conforming_strings, PostgreSQL's default)."""
    return "'" + text.replace("'", "''") + "'"
