"""Transaction metadata: whether its topic is there, and whether records name their transactions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from processor.findings.finding import Finding, failure, ok, warning
from processor.records import canonical_json
from processor.records.change_formats import unwrap
from processor.records.entity import Entity
from processor.records.framing import is_framed
from processor.records.record import Record
from processor.records.source_transaction import read_transaction

if TYPE_CHECKING:
    from processor.kafka.cluster_probe import TopicState

SETTING = "provide.transaction.metadata=true"
STREAMED = ("c", "u", "d")
FLATTENED = "transaction.id, transaction.data_collection_order, source.schema (or source.db) and source.table"


def topic_findings(entities: Iterable[Entity], topics: "Mapping[str, TopicState]") -> Iterator[Finding]:
    """Of the topics that entities name in `transactions`."""
    for name in sorted({entity.transactions for entity in entities} - {""}):
        topic = topics.get(name)
        if topic is None:
            text = f"{name}: no such topic, and `transactions` of entities names it: no transaction counts as complete"
            yield warning(text, f"set {SETTING} in the connector, or correct `transactions`")
        elif topic.rights is not None and "READ" not in topic.rights:
            text = f"{name}: this user lacks READ: no transaction counts as complete"
            yield failure(text, f"give this user an ACL that allows READ; {SETTING} fills the topic")
        else:
            yield ok(f"{name}: the topic of transactions is there")


def record_findings(entity: Entity, records: Iterable[Record]) -> Iterator[Finding]:
    """Of the newest record of an entity that must name its transaction: no tombstone, and none of a snapshot."""
    if not entity.transactions:
        return
    payloads = (_payload(record, entity) for record in sorted(records, key=lambda one: one.timestamp, reverse=True))
    newest = next((payload for payload in payloads if payload is not None), None)
    if newest is not None and read_transaction(newest) is None:
        text = f"{entity.topic}: entity {entity.name} has `transactions`, and its last record names no transaction"
        cure = f"set {SETTING} in the connector, or remove `transactions`"
        if "op" not in newest:
            cure = f"set {SETTING}, and let add.fields of ExtractNewRecordState have {FLATTENED}"
        yield warning(text, cure)


def _payload(record: Record, entity: Entity) -> Mapping[str, Any] | None:
    """The value of a JSON record of a change; None for any other."""
    if record.value is None or is_framed(record.value):
        return None
    try:
        payload, _ = unwrap(canonical_json.loads(record.value), entity)
    except ValueError:
        return None
    if type(payload) is not dict or payload.get("op", "c") not in STREAMED:
        return None
    snapshot = "__transaction_id" in payload and payload["__transaction_id"] is None
    return None if snapshot or payload.get("__op", "c") not in STREAMED else payload
