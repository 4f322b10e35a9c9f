"""A kind of envelope as one value: how a record of it is recognised, and what its members say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from processor.values.connect_schema import UNKNOWN_REFERENCE, Schemas
from processor.values.entity import Entity
from processor.values.reasons import Mismatch
from processor.values.record import Value
from processor.values.source_transaction import SourceTransaction
from processor.values.values import PLAIN, Reading

Payload = Mapping[str, Value]
"""The value of a record, an object, without the envelope of its schema."""


KeyForm = Literal["parts", "array", "none"]
"""`parts`: the parts of the row's key by name, or the value of the only one. `array`: the parts in the order of the key, or as in
`parts`. `none`: it says nothing of the row, as a system may choose it for the partition alone."""


class RowImage(NamedTuple):
    """The row of a record."""

    row: Mapping[str, Value]
    """The new image; for a delete, the known columns of the old one."""
    deleted: bool = False
    schemas: Schemas | None = None
    """None: the record came without a schema, and its text is read by `reading`."""
    reading: Reading = PLAIN
    before: Mapping[str, Value] | None = None
    """The old image of an update, where the record has one."""
    refusal: Mismatch | None = None
    """Why the job must not store the row."""
    keys: KeyForm = "parts"
    """What the Kafka key of the record is."""
    partial: bool = False
    """Whether the record lacks the columns that did not change: their stored values stay."""


class RowImages(NamedTuple):
    """Several rows of one record, in its order. The Kafka key is not read: each row has its own key."""

    images: tuple[RowImage, ...]


NoImage = Literal["control", "truncate", "other table"]
"""A record without an image of a row. `control`: it changes no row (heartbeat, transaction, DDL, message). `truncate`: the source
emptied the table. `other table`: the entity names its `table`, and the record names another."""
Images = RowImage | RowImages | NoImage


def row_images(images: Images) -> tuple[RowImage, ...]:
    """The rows of a record; empty where it has none."""
    return images.images if isinstance(images, RowImages) else (images,) if isinstance(images, RowImage) else ()


def _no_tables(payload: Payload) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A kind of envelope."""

    name: str
    """The word of `format` in an entity."""
    system: str
    """The system that writes it, for errors."""
    wraps: bool
    """Whether the row is inside a member. Else the record is the row."""
    members: frozenset[str]
    """Each record of the kind has one of these; empty: the kind takes what no other kind takes."""
    recognise: Callable[[Payload, Entity], Literal["row", "control"] | None]
    """What a record of the kind is; None for a record of another kind. A column that the entity declares shows no kind."""
    read: Callable[[Payload, Any, Entity], Images]
    """The images, from the value, its schema and the entity. Raises ValueError for a value that the kind does not have."""
    wrap: Callable[[Payload, str], Value]
    """The value of a record that inserts a row into a table; empty: it names none."""
    reading: Reading
    """How to read text where no schema says it."""
    tables: Callable[[Payload], tuple[str, ...]] = _no_tables
    """The names of the table that a record states: alone, then with its schema, its database, and both."""
    transaction: Callable[[Payload], SourceTransaction | None] = lambda payload: None
    """The transaction that a record names."""
    keys: KeyForm = "parts"
    """What the Kafka key of a delete without a value is."""
    key_columns: Callable[[Payload], tuple[str, ...]] = lambda payload: ()
    """The columns of the key that a record names, also a control message."""
    partitioned_by: Callable[[Payload], str] = lambda payload: ""
    """What the Kafka key of a record of a row is, where the record says it: the system may choose it by more than one rule."""
    rows: tuple[str, ...] = ()
    """The paths to its rows, also in a value that breaks the contract."""
    operation: str = ""
    """The member that says each delete; empty: an entity may say it by `deleted`."""
    sample: str
    """A value, for the page of definitions."""
    deletes: str
    """What says a delete, for the page."""
    transactions: str
    """What names the transaction of a record, for the page."""

    @property
    def names_table(self) -> bool:
        """Whether records of the kind can name their table."""
        return self.tables is not _no_tables


def table_names(source: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a table that Debezium describes by `db`, `schema` and `table`. Empty where it names none."""
    return place_names(source.get("table") or source.get("collection"), source.get("schema"), source.get("db"))


def names_in(text: Any) -> tuple[str, ...]:
    """The names of a table in one text: `orders`, `shop.orders`, `db.shop.orders`. Empty where it is no text."""
    place, _, table = text.rpartition(".") if type(text) is str else ("", "", "")
    database, _, schema = place.rpartition(".")
    return place_names(table, schema, database)


def place_names(table: Any, schema: Any = "", database: Any = "") -> tuple[str, ...]:
    """The names of a table: alone, then with its schema, its database, and both. Empty where `table` is no text."""
    if type(table) is not str or not table:
        return ()
    schema, database = (text if type(text) is str else "" for text in (schema, database))
    places = ("", schema, database, f"{database}.{schema}" if database and schema else "")
    return tuple(dict.fromkeys(f"{place}.{table}" if place else table for place in places))


def place_of(table: str) -> dict[str, str]:
    """The place of a table, `orders` or `db.shop.orders`, as Debezium describes it."""
    place, _, name = table.rpartition(".")
    database, _, schema = place.rpartition(".")
    return {"db": database, "schema": schema, "table": name}


def field_schemas(schema: Any) -> dict[str, Mapping[str, Any]] | None:
    """The schemas of the fields of a struct; None for another schema. Raises Mismatch for a reference that leads nowhere."""
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == UNKNOWN_REFERENCE:
        text = f"the schema of the row is $ref {schema.get('name')!r}, which is neither in its document nor a reference of it"
        raise Mismatch(text, "schema-missing")
    if not isinstance(schema.get("fields"), list):
        return None
    fields = (field for field in schema["fields"] if isinstance(field, dict))
    return {field["field"]: field for field in fields if isinstance(field.get("field"), str)}
