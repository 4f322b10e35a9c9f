"""Puts the files of a release (tests/data/releases) into a table, a registry, topics and a checkpoint."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import open_store
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.values.record import Message, Record
from processor.values.recorded_topics import read_records
from registry.repository import Registry
from registry.repository import connection as schema_module
from registry.tables import metadata
from tests.integration.job.plain_client import plain_client
from tests.releases.release import wire_items


def restore(release: Path, settings: Settings, registry: Registry) -> list[Record]:
    """Restores all parts of a release. Returns the records of the topics that its job read."""
    records = list(read_records(str(release / "topics.jsonl")))
    _produce(settings, records)
    _produce(settings, list(read_records(str(release / "documents.jsonl"))))
    ids = {name: one.id for name, one in Admin(settings.bootstrap_servers, {}).topics(list(_topics(records))).items()}
    with registry._database.transaction(migrates=True) as connection:
        restore_registry(connection, settings.registry_schema, release, ids)
    store = open_store(settings)
    store.create(settings.slots)
    created = store.created
    store.close()
    client = plain_client(settings)
    for item in wire_items(release):
        if "created" in item:  # another time would be that of a restored table
            item["created"] = {"N": str(created)}
        client.put_item(TableName=settings.table, Item=item)
    client.close()
    shutil.copytree(release / "checkpoint", settings.checkpoint)
    return records


def restore_registry(connection: Connection, schema: str, release: Path, topic_ids: Mapping[str, str]) -> None:
    """Makes the schema of the release, and fills its tables. `topic_ids`: of the broker, in place of those of the release."""
    stored = json.loads((release / "registry.json").read_text(encoding="utf-8"))
    for boundary in stored["epochs"]:
        boundary["topic_id"] = topic_ids.get(boundary["topic"], boundary["topic_id"])
    connection.execute(text(f'CREATE SCHEMA "{schema}"'))
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(schema_module._MIGRATIONS).replace("%", "%%"))
    command.upgrade(config, stored.pop("revision"))
    connection.execute(text("SET LOCAL session_replication_role = replica"))  # no trigger of an edit runs
    for name, rows in stored.items():
        put = f"INSERT INTO {name} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::{name}, :rows)"
        connection.execute(text(f"DELETE FROM {name}"))
        connection.execute(text(put), {"rows": json.dumps(rows)})
    for table in metadata.sorted_tables:
        for column in table.columns:
            if column.identity is not None and table.name in stored:
                last = f"(SELECT max({column.name}) FROM {table.name})"
                sequence = f"pg_get_serial_sequence('{table.name}', '{column.name}')"
                connection.execute(text(f"SELECT setval({sequence}, {last})"))


def _produce(settings: Settings, records: list[Record]) -> None:
    """Makes the topics, and produces the records into their partitions. Offsets that a transaction left out are closed up."""
    Admin(settings.bootstrap_servers, {}).ensure(sorted(_topics(records)), partitions=2, compacted=False)
    outbox = KafkaOutbox(settings.bootstrap_servers, {})
    for one in records:
        message = Message(topic=one.topic, key=one.key, value=one.value, headers=one.headers)
        outbox.produce(message, one.partition, one.timestamp)
    outbox.flush()


def _topics(records: list[Record]) -> set[str]:
    return {record.topic for record in records}
