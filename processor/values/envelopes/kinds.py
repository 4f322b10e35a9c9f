"""The kinds of envelope, and how a record's value is read by its kind.

    with a schema   {"schema": {...}, "payload": the value}     Kafka Connect's JsonConverter, key and value
    null            a delete in all kinds

A framed record, whose schema a registry keeps, comes as a `SchemedValue`. Each record shows its own kind, unless the entity pins
one. This module does not check the values of columns.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from processor.values.connect_schema import Schemas
from processor.values.entity import Entity
from processor.values.envelopes.canal import CANAL
from processor.values.envelopes.cloudevents import CLOUDEVENTS
from processor.values.envelopes.cockroach import COCKROACH
from processor.values.envelopes.debezium import DEBEZIUM
from processor.values.envelopes.delete_flags import FLAG_MEMBERS
from processor.values.envelopes.dms import DMS
from processor.values.envelopes.flattened import FLATTENED
from processor.values.envelopes.foreign import TRIGGERS, foreign_format, refuse_foreign
from processor.values.envelopes.goldengate import GOLDENGATE
from processor.values.envelopes.kind import Envelope, Images, Payload, RowImage, field_schemas
from processor.values.envelopes.maxwell import MAXWELL
from processor.values.envelopes.plain import PLAIN
from processor.values.envelopes.row import ROW
from processor.values.framing import SchemedValue
from processor.values.reasons import SHOWN_CHARACTERS, Mismatch, unexpected
from processor.values.record import SourceTransaction, Value
from processor.values.values import PLAIN as PLAIN_TEXT

ENVELOPES: Final[tuple[Envelope, ...]] = (
    DEBEZIUM, DMS, GOLDENGATE, COCKROACH, CLOUDEVENTS, MAXWELL, CANAL, FLATTENED, ROW, PLAIN,
)  # fmt: skip
"""The first that recognises a record reads it: kinds that wrap the row come before kinds that are the row. The last takes all."""
FORMATS: Final[Mapping[str, Envelope]] = {kind.name: kind for kind in ENVELOPES}
"""By the word of `format`."""
_WRAPPERS: Final = tuple(kind for kind in ENVELOPES if kind.wraps)
_WRAPPED: Final = frozenset[str]().union(*(kind.members for kind in _WRAPPERS))
_BARE: Final = tuple(kind for kind in ENVELOPES if not kind.wraps)
_IN_TRANSACTIONS: Final = tuple(kind for kind in ENVELOPES if kind.transactions != "none")
_NOT_PLAIN: Final = TRIGGERS.union(FLAG_MEMBERS, *(kind.members for kind in ENVELOPES))
SHOWN: Final = 5
"""A reason shows at most this many names of members."""


def unwrap(value: Value, entity: Entity) -> tuple[Value, Any]:
    """The value without Kafka Connect's envelope, and its schema (None without an envelope)."""
    if type(value) is SchemedValue:
        return value.payload, value.schema
    if type(value) is dict and len(value) == 2 and "payload" in value and "schema" in value:
        schema = value["schema"]
        if (schema is None or type(schema) is dict) and not {"schema", "payload"} <= entity.columns.keys():
            return value["payload"], schema
    return value, None


def read_image(value: Value, entity: Entity) -> Images:
    """The images in a record's value.

    Raises ValueError for a value of no kind, or not of the pinned one.
    """
    payload, schema = unwrap(value, entity)
    if payload is None:
        gone = FORMATS[entity.format or "debezium"]
        if entity.table and gone.names_table:
            return _without_table(entity)
        return RowImage({}, True, None, gone.reading, keys=gone.keys)
    if type(payload) is not dict:
        raise unexpected("a row as an object", payload, code="not-a-row")
    if payload.keys() == {"schema"} and "schema" not in entity.columns:
        raise unexpected("a payload next to the schema", None, code="row-missing")
    pinned = entity.format
    if pinned in (None, "plain") and not (entity.deleted or entity.table) and _NOT_PLAIN.isdisjoint(payload):
        return RowImage(payload, False, field_schemas(schema))  # as most plain rows are
    if pinned == "plain" or pinned == "row":
        return FORMATS[pinned].read(payload, schema, entity)
    kind, seen = kind_of(payload, entity)
    if seen == "control":
        return "control"
    if not kind.wraps:
        refuse_foreign(payload, entity.columns)
    own = kind if pinned is None else FORMATS[pinned]
    if own is not kind and kind.wraps and own.wraps and own.recognise(payload, entity) is None:
        what = f"an envelope of {kind.system}, and entity {entity.name} pins `format: {pinned}`"
        raise Mismatch(f"{what}: correct `format`, or leave it out", "other-format")
    stated = own.tables(payload) if entity.table else ()
    if stated and entity.table not in stated:
        return "other table"
    images = own.read(payload, schema, entity)
    if entity.table and not stated and images != "control":
        raise _no_table("the record", "let the connector name it (Debezium: `source`, or add.fields)", entity)
    return images


def _without_table(entity: Entity) -> Literal["control"]:
    """What a null value is in a topic of several tables. Where each delete has a value, null is for compaction alone."""
    if entity.format is None:
        raise _no_table(
            "a null value", "pin `format`, such as `debezium`, if each delete in the topic has a value", entity
        )
    if not FORMATS[entity.format].wraps:
        cure = "let the connector write deletes as rows (delete.tombstone.handling.mode=rewrite)"
        raise _no_table("a null value", cure, entity)
    return "control"


def _no_table(what: str, cure: str, entity: Entity) -> Mismatch:
    return Mismatch(
        f"{what} names no table, and entity {entity.name} has `table: {entity.table}`: {cure}", "other-table"
    )


def kind_of(payload: Payload, entity: Entity) -> tuple[Envelope, Literal["row", "control"]]:
    """The kind that recognises a value, and what the value is for it."""
    for kind in ENVELOPES if not _WRAPPED.isdisjoint(payload) else _BARE:
        if seen := kind.recognise(payload, entity):
            return kind, seen
    return PLAIN, "row"


def read_transaction(payload: Any) -> SourceTransaction | None:
    """The transaction in the value of a record, which comes without the envelope of its schema. None: the value names none."""
    if type(payload) is not dict:
        return None
    return next(filter(None, (kind.transaction(payload) for kind in _IN_TRANSACTIONS)), None)


def stated_tables(payload: Payload) -> tuple[str, ...]:
    """The names of the table that a record states: alone, then with its schema, its database, and both. Empty where it states
    none."""
    return next(filter(None, (kind.tables(payload) for kind in ENVELOPES)), ())


def row_value(row: Mapping[str, Value], entity: Entity) -> Value:
    """The value of a record with a new image of a row: in the format that the entity pins; else plain, or Debezium's where the
    entity names its table."""
    return FORMATS[entity.format or ("debezium" if entity.table else "plain")].wrap(row, entity.table)


def key_schemas(schema: Any, key: tuple[str, ...]) -> Schemas | None:
    """The schemas of the key's columns: the fields of a struct, else the schema itself for each key column."""
    if schema is None:
        return None
    if isinstance(schema, dict) and schema.get("type") != "struct":
        return dict.fromkeys(key, schema)
    return field_schemas(schema)


def check_row(value: Value, image: RowImage, entity: Entity) -> None:
    """Checks an image that lacks declared columns. Raises Mismatch for an unknown envelope, and for a row without any
    declared column outside the key. A row of its key alone is fine: all its columns are null."""
    row, outside = image.row, [name for name in entity.columns if name not in entity.key]
    others = [name for name in row if name not in entity.columns]
    if row and not others:
        return
    plain, bare = entity.format is None and image.reading is PLAIN_TEXT, row.keys().isdisjoint(outside)
    inner = _inner_row(row, entity) if plain or bare else ""
    if inner:
        what, cure = "an envelope that statestore does not read", "let a transform write the row alone"
        cure += "" if entity.format == "plain" else ", or pin `format: plain` if the value is a row"
        raise Mismatch(f"{what}, its member {_shown(inner)} has the row: {cure}", "other-format", f"{what}: {cure}")
    tables = stated_tables(unwrap(value, entity)[0]) if bare and image.partial else ()
    if tables and (entity.table or not _own_names(entity).isdisjoint(table.lower() for table in tables)):
        return  # no declared column changed
    if bare:
        raise _bare_row(unwrap(value, entity)[0], outside, others, entity)


def _bare_row(payload: Mapping[str, Value], outside: list[str], others: list[str], entity: Entity) -> Mismatch:
    """The reason why a row without declared columns is none of the entity: of another format, of another table, or unknown."""
    what = f"the row has none of the columns that the entity declares outside its key ({_some(outside)})"
    known, tables = foreign_format(payload, ()), stated_tables(payload)
    system = known.name if known else _other_system(payload, entity)
    if system:
        pinned = f", and entity {entity.name} pins `format: {entity.format}`" if entity.format else ""
        return Mismatch(f"{what}: it is an envelope of {system}{pinned}", "other-format")
    if tables and not entity.table and _own_names(entity).isdisjoint(table.lower() for table in tables):
        cure = "write `table` in the entity, the table whose records count, and the job ignores the others"
        return Mismatch(f"{what}, and its record is of table {_shown(tables[-1])}: {cure}", "other-table")
    cure = "correct `topic` or the columns of the entity, or let a transform write rows"
    only = _some(list(map(_shown, others)))
    return Mismatch(f"{what}, only {only}: {cure}", "other-format", f"{what}: {cure}")


def _other_system(payload: Payload, entity: Entity) -> str:
    """The system whose envelope the value is, where the entity pins another kind; else empty."""
    others = (kind for kind in _WRAPPERS if entity.format not in (None, kind.name))
    return next((kind.system for kind in others if kind.recognise(payload, entity) == "row"), "")


def _shown(name: str) -> str:
    """A name from a record, in one line; quoted where it is no word."""
    text = name if len(name) <= SHOWN_CHARACTERS else f"{name[: SHOWN_CHARACTERS - 1]}…"
    return text if text.replace(".", "_").isidentifier() else repr(text)


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "") if names else "none at all"


def _inner_row(row: Mapping[str, Value], entity: Entity) -> str:
    """The undeclared member of a row whose object, or first object of an array, has all declared columns; empty without one."""
    for name, value in row.items():
        inner = value[0] if type(value) is list and value else value
        if type(inner) is dict and name not in entity.columns and entity.columns.keys() <= inner.keys():
            return name
    return ""


def _own_names(entity: Entity) -> frozenset[str]:
    """The names that the table of an entity may have: the entity's, that of `source`, and each end of the topic."""
    parts = entity.topic.split(".")
    ends = (".".join(parts[n:]) for n in range(len(parts)))
    own = (entity.name, entity.source, entity.source.rpartition(".")[2], *ends)
    return frozenset(name.lower() for name in own if name)
