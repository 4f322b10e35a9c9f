"""The properties of Debezium's connector: those of docs/debezium.md, for an engine without Kafka Connect."""

from urllib.parse import urlsplit

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
