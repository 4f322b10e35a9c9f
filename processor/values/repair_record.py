"""A repair from the source: a dead letter that has no refused record, but the source's row in place of a stored one that differs.

Its position is its own: epoch 0, which no topic has, and a number. It names the version of the stored row that it repairs. The
replay writes directly behind that version, and only over it. So it overtakes no newer record of the stream, and every later
record is newer. Where there is no stored row, the repair is older than every record. A truncate that comes between the comparison
and such a repair may leave a row, which the next comparison finds.
"""

from collections.abc import Mapping
from typing import Final

from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.record import Record, Value
from processor.values.reject_reasons import ReasonCode

REPAIR: Final[ReasonCode] = "source-differs"
SEEN: Final = "statestore.repair.seen"
"""The header with the version of the stored row; empty where there is none."""


def repair_record(
    entity: Entity, key: Mapping[str, Value], row: Mapping[str, Value] | None, seen: str, number: int
) -> Record:
    """The record of a repair. `row`: None deletes; `seen`: the version of the stored row. `number`: in microseconds since 1970,
    no other repair's."""
    return Record(
        topic=entity.topic,
        partition=0,
        offset=number,
        timestamp=number // 1000,
        key=canonical_json.encode(dict(key)),
        value=None if row is None else canonical_json.encode(dict(row)),
        headers=((SEEN, seen.encode()),),
    )


def seen_version(record: Record) -> str:
    """The version of the stored row that a repair compared; empty where there was none."""
    return (dict(record.headers).get(SEEN) or b"").decode()
