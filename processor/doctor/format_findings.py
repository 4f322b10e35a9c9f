"""Records that no entity can store as they are: other envelopes, rows of other tables, deletes that nobody declared."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from processor.findings.finding import Finding, failure, warning
from processor.records import canonical_json
from processor.records.change_formats import stated_tables, unwrap
from processor.records.entity import Entity
from processor.records.framing import is_framed
from processor.records.record import Record, Rejected
from processor.records.reject_reasons import REASONS, ReasonCode
from processor.steps.decode import decode

_CODES: tuple[ReasonCode, ...] = ("other-format", "other-registry", "other-table", "delete-unsaid")
_SOFT = ("deleted", "is_deleted", "isDeleted")
"""Columns by which a table marks rows that are still there. A transform may write the same names for a delete."""


def format_findings(entity: Entity, records: Sequence[Record]) -> Iterator[Finding]:
    """The kinds of records that become dead letters, the tables that share a topic, and flags that may be deletes."""
    found: Counter[tuple[ReasonCode, str]] = Counter()
    for record in records:
        decoded = decode(record, entity)
        if isinstance(decoded, Rejected) and decoded.code in _CODES:
            found[decoded.code, decoded.plain] += 1
    for (code, reason), count in found.items():
        text = f"{entity.topic}: {count} of the last {len(records)} records become dead letters of entity {entity.name}: {reason}"
        yield (failure if code in ("other-format", "other-registry") else warning)(text, REASONS[code].cure)
    payloads = list(_payloads(records, entity))
    tables = Counter(stated[-1] for payload in payloads if (stated := stated_tables(payload)))
    if len(tables) > 1 and not entity.table:
        text = f"{entity.topic}: its records are of the tables {', '.join(sorted(tables))}, and entity {entity.name} takes all"
        yield warning(text, "write `table` in the entity, the table whose records count; the job ignores the others")
    soft = {name for name in _SOFT if name not in entity.columns and not entity.deleted}
    for name in sorted({name for payload in payloads for name in soft if payload.get(name) in (True, 1, "true")}):
        text = f"{entity.topic}: rows have {name!r}, which entity {entity.name} does not declare, and the job stores them as rows"
        yield warning(
            text, f"declare {name} if it is a column, or write `deleted: {{column: {name}}}` if it says a delete"
        )


def _payloads(records: Iterable[Record], entity: Entity) -> Iterator[dict[str, object]]:
    """The values of the records that are JSON objects."""
    for record in records:
        try:
            value = None if record.value is None or is_framed(record.value) else canonical_json.loads(record.value)
        except ValueError:
            continue
        payload, _ = unwrap(value, entity)
        if type(payload) is dict:
            yield payload
