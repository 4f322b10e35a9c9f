"""The ends of transactions among recorded records."""

from typing import Any

from processor.engine.rounds.trial import RecordedEnds
from processor.values.framing import CONFLUENT, Framed, Part, SchemedValue
from processor.values.record import Record
from processor.values.source_transaction import TransactionEnd

END: dict[str, Any] = {
    "status": "END",
    "id": "7:1",
    "data_collections": [{"data_collection": "public.orders", "event_count": 2}],
}


class KnownSchema:
    """A schema registry with one schema, of which each value is the end."""

    framing = CONFLUENT

    def fetch(self, record: Record) -> None:
        assert CONFLUENT.in_bytes(record.value or b"") == Framed(9, 5)

    def read(self, record: Record, part: Part) -> SchemedValue:
        return SchemedValue(payload=END, schema={}, avro=True)


def record(value: bytes | None) -> Record:
    return Record(topic="app.transaction", partition=0, offset=0, key=None, value=value)


def test_an_end_that_a_schema_registry_describes_counts() -> None:
    ends = RecordedEnds(KnownSchema())
    ends.take(record(b"\x00\x00\x00\x00\x09..."))
    assert ends.ends("app.transaction", 0.0) == [TransactionEnd("7", {"public.orders": 2})]
    assert ends.ends("app.transaction", 0.0) == []


def test_a_record_that_is_no_end_is_passed_over() -> None:
    ends = RecordedEnds()
    for value in (None, b"no JSON", b'{"status":"BEGIN","id":"7:1"}', b"[1]"):
        ends.take(record(value))
    assert ends.ends("app.transaction", 0.0) == []
