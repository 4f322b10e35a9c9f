"""The row of a system without an envelope, whose deletes the entity describes by `deleted`. No record shows the kind: `format:
row` of the entity names it.

    {"ID": 1, "NAME": "Ann", "op_type": "D", "scn": 5}      deleted: {column: op_type, values: [D], truncates: [T]}
    {"id": 1, "_fivetran_deleted": true}                    deleted: {column: _fivetran_deleted}
    {"_airbyte_data": {"id": 1, "_ab_cdc_deleted_at": null}, "_airbyte_emitted_at": 1}      deleted: {column: _ab_cdc_deleted_at}

Unlike `plain`, it leaves the members of `deleted` out of the row, and unwraps the row of Airbyte's destinations. So no document
shows `op_type`. It fits Confluent's connector for Oracle, GoldenGate's row formatter, Kafka Connect's JDBC source with a column
that marks deleted rows, and streams with columns as Fivetran and Airbyte write them.

Read, not captured, on 2026-11-27: https://docs.confluent.io/kafka-connectors/oracle-cdc/current/overview.html,
https://fivetran.com/docs/core-concepts/system-columns-and-tables, https://docs.airbyte.com/integrations/destinations/kafka
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from processor.values.entity import Entity
from processor.values.envelopes.kind import Images, Payload, RowImage, field_schemas
from processor.values.envelopes.plain import PLAIN
from processor.values.record import Value

_AIRBYTE: Final = "_airbyte_data"


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    return None


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    inner = payload.get(_AIRBYTE)
    if type(inner) is dict and _AIRBYTE not in entity.columns:
        payload, schema = inner, (field_schemas(schema) or {}).get(_AIRBYTE)
    image = PLAIN.read(payload, schema, entity)
    return image._replace(row=_without_flags(payload, entity)) if isinstance(image, RowImage) else image


def _without_flags(payload: Payload, entity: Entity) -> Mapping[str, Value]:
    names = {flag.column if flag.column in payload else flag.column.partition(".")[0] for flag in entity.deleted}
    return {name: value for name, value in payload.items() if name not in names or name in entity.columns}


ROW: Final = replace(
    PLAIN,
    name="row",
    recognise=_recognise,
    read=_read,
    sample='{"id": 1, "op_type": "I"}',
    deletes="[`deleted`](#deleted), or null",
)
