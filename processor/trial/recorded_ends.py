"""The ends of transactions among recorded records: the feed of a trial."""

from collections import defaultdict
from dataclasses import dataclass, field

from processor.records import canonical_json
from processor.records.record import Record
from processor.records.source_transaction import TransactionEnd, read_transaction_end


@dataclass(slots=True)
class RecordedEnds:
    """Gives each end once, in the order of the records."""

    _waiting: dict[str, list[TransactionEnd]] = field(default_factory=lambda: defaultdict(list))

    def take(self, record: Record) -> None:
        """Takes a record of a transaction topic."""
        try:
            value = None if record.value is None else canonical_json.loads(record.value)
        except ValueError:
            return
        payload = value["payload"] if type(value) is dict and value.keys() == {"schema", "payload"} else value
        if (end := read_transaction_end(payload)) is not None:
            self._waiting[record.topic].append(end)

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        """The ends that came since the last call."""
        return self._waiting.pop(topic, [])

    def close(self) -> None:
        return None
