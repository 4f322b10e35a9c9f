"""The ends of transactions among recorded records: the feed of a trial."""

from collections import defaultdict
from dataclasses import dataclass, field

from processor.values.framing import NO_SCHEMAS, FramedReader, bare_value
from processor.values.record import Record
from processor.values.source_transaction import TransactionEnd, read_transaction_end


@dataclass(slots=True)
class RecordedEnds:
    """Gives each end once, in the order of the records. `schemas`: of records that a schema registry describes."""

    schemas: FramedReader = NO_SCHEMAS
    _waiting: dict[str, list[TransactionEnd]] = field(default_factory=lambda: defaultdict(list))

    def take(self, record: Record) -> None:
        """Takes a record of a transaction topic."""
        if (end := read_transaction_end(bare_value(record, self.schemas))) is not None:
            self._waiting[record.topic].append(end)

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        """The ends that came since the last call."""
        return self._waiting.pop(topic, [])

    def close(self) -> None:
        return None
