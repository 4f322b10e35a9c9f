"""The envelopes of other systems, which must not be read as rows: each by members that no other format has.

A row of the table recognises one envelope. The entity wins over the table: if it declares all `members` as columns, the record is
a row. The job does not read these formats yet: a record of them is a dead letter that names its format.

Promise: the members of the value alone decide, so a record has one format in every batch.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from processor.values.reasons import Mismatch

Payload = Mapping[str, Any]


class ForeignFormat(NamedTuple):
    """A format. `members`: the members that each of its records has, the rarest first. `looks`: whether a value with these
    members is of the format. `rows`: the paths to its rows: an object, or an array of objects."""

    name: str
    members: tuple[str, ...]
    looks: Callable[[Payload], bool]
    rows: tuple[str, ...] = ()


def foreign_format(payload: Payload, columns: Collection[str]) -> ForeignFormat | None:
    """The format of a record's value; None for a row, and for an envelope that the table lacks. `columns`: those that the entity
    declares."""
    found = [place for trigger in TRIGGERS.intersection(payload) for place in _PLACES[trigger]]
    for known in (FOREIGN_FORMATS[place] for place in sorted(found)):
        present = all(name in payload for name in known.members)
        if present and not all(name in columns for name in known.members) and known.looks(payload):
            return known
    return None


def rows_at(payload: Payload, paths: Iterable[str]) -> Iterator[Payload]:
    """The rows at these paths of a value, as far as they are there."""
    for path in paths:
        found = _at(payload, path)
        yield from (row for row in (found if type(found) is list else [found]) if type(row) is dict)


def refuse_foreign(payload: Payload, columns: Collection[str]) -> None:
    """Raises Mismatch for a value in one of the formats."""
    known = foreign_format(payload, columns)
    if known is not None:
        shown = ", ".join(known.members)
        raise Mismatch(
            f"an envelope of {known.name} ({shown}), which statestore does not read: let the connector or a transform "
            f"write rows or Debezium's envelope; if {shown} are columns of the table, declare them",
            "other-format",
        )


def _at(value: Any, path: str) -> Any:
    """What is at a path of members; None where nothing is."""
    for step in path.split("."):
        value = value.get(step) if type(value) is dict else None
    return value


def _any(payload: Payload) -> bool:
    return True


def _has(*paths: str) -> Callable[[Payload], bool]:
    """Whether something other than null is at each path."""
    return lambda payload: all(_at(payload, path) is not None for path in paths)


def _says(path: str, *texts: str) -> Callable[[Payload], bool]:
    """Whether one of the texts is at the path."""
    return lambda payload: _at(payload, path) in texts


def _only(*names: str) -> Callable[[Payload], bool]:
    """Whether the value has no other members than these, and its images of rows are objects or null."""
    return lambda payload: payload.keys() <= set(names) and _has_images(payload)


def _has_images(payload: Payload) -> bool:
    images = [payload[name] for name in ("before", "after") if name in payload]
    return bool(images) and all(image is None or type(image) is dict for image in images)


def _is_flattened_envelope(payload: Payload) -> bool:
    sides = ("after_", "before_", "after.", "before.")
    return payload["op"] in ("c", "u", "d", "r") and any(name.startswith(sides) for name in payload)


def _is_ticdc_open(payload: Payload) -> bool:
    cells = [cell for row in payload.values() if type(row) is dict for cell in row.values()]
    return payload.keys() <= {"u", "d", "p"} and bool(cells) and all(type(one) is dict and "t" in one for one in cells)


def _is_wal2json(payload: Payload) -> bool:
    changes = payload["change"]
    return type(changes) is list and all(type(one) is dict and "kind" in one for one in changes)


_OUTBOX: Final = frozenset({"payload", "eventType", "eventId", "aggregateType", "aggregateId", "timestamp"})
_ACTIONS: Final = ("insert", "update", "delete", "read")
_EVENTS: Final = ("INSERT", "UPDATE", "DELETE", "MANUAL")
_SIDES: Final = ("after", "before")
FOREIGN_FORMATS: Final[tuple[ForeignFormat, ...]] = (
    ForeignFormat("Striim", ("metadata", "data"), _has("metadata.OperationName"), ("data", "before")),
    ForeignFormat("TiCDC (simple)", ("commitTs", "type", "version"), _any, ("data", "old")),
    ForeignFormat("TiCDC (open protocol)", ("u",), _is_ticdc_open),
    ForeignFormat("TiCDC (open protocol)", ("d",), _is_ticdc_open),
    ForeignFormat("Qlik Replicate", ("headers", "data"), _has("headers.operation"), ("data", "beforeData")),
    ForeignFormat("Qlik Replicate", ("beforeData", "data"), _any, ("data", "beforeData")),
    ForeignFormat("Qlik Replicate", ("message",), _has("message.data", "message.headers"), ("message.data",)),
    ForeignFormat("Materialize", ("after", "before"), _only(*_SIDES, "transaction"), _SIDES),
    ForeignFormat("Debezium made flat by the transform Flatten", ("op",), _is_flattened_envelope),
    ForeignFormat("an outbox", ("eventType", "payload"), lambda payload: payload.keys() <= _OUTBOX, ("payload",)),
    ForeignFormat("MongoDB change streams", ("operationType", "ns"), _any, ("fullDocument",)),
    ForeignFormat("wal2json", ("change",), _is_wal2json),
    ForeignFormat("wal2json", ("action", "columns", "table"), _says("action", "I", "U", "D")),
    ForeignFormat("wal2json", ("action", "identity", "table"), _says("action", "I", "U", "D")),
    ForeignFormat("DynamoDB Streams", ("dynamodb",), _has("dynamodb.Keys")),
    ForeignFormat("Amazon EventBridge", ("detail-type", "detail"), _any, ("detail",)),
    ForeignFormat("Airbyte", ("_airbyte_data",), _any, ("_airbyte_data",)),
    ForeignFormat("Singer or Airbyte", ("record", "type"), _says("type", "RECORD"), ("record", "record.data")),
    ForeignFormat("Supabase", ("record", "old_record", "type"), _says("type", *_EVENTS), ("record", "old_record")),
    ForeignFormat("Sequin", ("record", "action"), _says("action", *_ACTIONS), ("record",)),
    ForeignFormat("Hasura", ("event", "table"), _says("event.op", *_EVENTS), ("event.data.new", "event.data.old")),
)
"""The formats, by the documentation of each system. The first that fits counts, so the narrower come first."""
TRIGGERS: Final = frozenset(known.members[0] for known in FOREIGN_FORMATS)
"""A value without any of these members is in none of the formats."""
_PLACES: Final = {
    trigger: [place for place, known in enumerate(FOREIGN_FORMATS) if known.members[0] == trigger]
    for trigger in TRIGGERS
}
"""Trigger -> the places of its formats in the table."""
