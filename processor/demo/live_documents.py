"""The documents of a live run: those of the topics, and those of the product's SQL over the application's own tables."""

from collections.abc import Iterator

from processor.definitions.load import load, read_directory
from processor.demo.connector import PREFIX
from processor.demo.live import LiveParts
from processor.demo.report import differing_keys
from processor.inspect.oracle import source_oracle
from processor.kafka.admin import Admin
from processor.kafka.reader import read_topic
from processor.records.record import Record
from processor.settings.settings import Settings

CLOSING_TOPIC = f"{PREFIX}.public.closing"


class LiveDocuments:
    """Reads the topics of the products. `fresh` returns each message once."""

    def __init__(self, parts: LiveParts) -> None:
        self._parts = parts
        self.definitions = load(read_directory(parts.example))
        self._next: dict[str, dict[int, int]] = {p.topic: {} for p in self.definitions.products.values()}

    def fresh(self) -> Iterator[Record]:
        """The messages since the last call, of topics that exist."""
        for topic in Admin(self._parts.bootstrap, {}).topics(list(self._next)):
            begins = self._next[topic]
            for record in read_topic(self._parts.bootstrap, {}, topic, begins):
                begins[record.partition] = record.offset + 1
                yield record

    def is_closed(self) -> bool:
        """Whether Debezium has sent the row that the application writes last, and so all changes before it."""
        return self._count(CLOSING_TOPIC) > 0

    def dead_letters(self) -> int:
        """How many records the job refused."""
        return self._count(Settings().rejects_topic)

    def compare(self) -> tuple[int, list[str]]:
        """How many documents the products' SQL gives over the application's own tables, and which published ones differ."""
        count, wrong = 0, []
        with source_oracle(self._parts.source, "public", self.definitions.entities) as tables:
            for name, product in self.definitions.products.items():
                truth = tables.documents(product)
                published = read_topic(self._parts.bootstrap, {}, product.topic)
                count += len(truth)
                wrong += [f"{name} {key}" for key in differing_keys(published, truth)]
        return count, wrong

    def _count(self, topic: str) -> int:
        """The records of a topic, 0 if there is no such topic."""
        found = Admin(self._parts.bootstrap, {}).topics([topic])
        return sum(1 for name in found for _ in read_topic(self._parts.bootstrap, {}, name))
