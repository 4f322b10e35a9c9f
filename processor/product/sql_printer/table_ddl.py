"""CREATE TABLE for an entity: the table that a product's query reads."""

from processor.product.sql_printer.sql_text import quote, sql_name, sql_type, table_name
from processor.records.entity import Entity


def table_ddl(entity: Entity, schema: str | None = None) -> str:
    """CREATE TABLE for the entity's declared columns. A `decimal(p,s)` column keeps every digit, as the store does. Keys are not
    null, but the table has no primary key: PostgreSQL's index refuses texts of over 2,704 bytes."""
    columns = [
        f"{quote(sql_name(name))} {sql_type(column)}{' NOT NULL' if name in entity.key else ''}"
        for name, column in entity.columns.items()
    ]
    body = ",\n  ".join(columns)
    return f"CREATE TABLE {table_name(entity.name, schema)} (\n  {body}\n)"
