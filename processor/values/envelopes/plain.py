"""The plain row: the record is the row itself, and null deletes it.

Read, not captured, on 2026-11-27, of the sinks and the source that write such rows:
https://materialize.com/docs/sql/create-sink/kafka/ (ENVELOPE UPSERT), https://docs.risingwave.com/integrations/destinations/apache-kafka
(FORMAT UPSERT), https://docs.confluent.io/kafka-connectors/jdbc/current/source-connector/overview.html
"""

from typing import Any, Final, Literal

from processor.values.entity import Entity
from processor.values.envelopes.delete_flags import is_flagged, is_truncate, unsaid_delete
from processor.values.envelopes.kind import Envelope, Images, Payload, RowImage, field_schemas
from processor.values.values import PLAIN as PLAIN_TEXT


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    return "row"


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    if is_truncate(payload, entity.deleted):
        return "truncate"
    gone = is_flagged(payload, entity.deleted)
    refusal = None if gone else unsaid_delete(payload, entity)
    return RowImage(payload, gone, field_schemas(schema), refusal=refusal)


PLAIN: Final = Envelope(
    name="plain",
    system="no connector",
    wraps=False,
    members=frozenset(),
    recognise=_recognise,
    read=_read,
    wrap=lambda row, table: row,
    reading=PLAIN_TEXT,
    sample='{"id": 1}',
    deletes="null, or [`deleted`](#deleted)",
    transactions="none",
)
