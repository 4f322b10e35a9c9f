"""Topics, checkpoints and identities with one fault each, and the finding that names it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from processor.engine.protocol.identity import replace_identity
from processor.engine.rounds.decoding import write_form
from processor.errors import SettingError
from processor.job.kafka.admin import HIDDEN
from processor.values.decimal_forms import FormNote, LearnedForm
from processor.values.entity import DecimalForm, parse_type
from processor.values.record import Record
from registry.model import Binding, EpochBoundary
from statestore.memory import MemoryStore
from tests.unit.tools.doctor.broken import PART_FAULTS, Fault, set_to, settings, table
from tests.unit.tools.doctor.broken_transactions import TRANSACTION_FAULTS, USER
from tests.unit.tools.doctor.healthy import DAY, DURABLE, LANDING, TABLE, Healthy, fail

WRONG_USER = SettingError("[kafka] sasl.username, sasl.password: authentication failed")


def topic(name: str, **config: str) -> Callable[[Healthy], object]:
    return lambda around: around.kafka.configure(name, **config)


def without_topic(name: str) -> Callable[[Healthy], object]:
    return lambda around: around.kafka.found.pop(name)


def avro_product(around: Healthy) -> None:
    """The documents of a product are Avro."""
    found = around.plan.products["user_profile"]
    changed = replace(found, product=replace(found.product, format="avro"))
    around.plan = replace(around.plan, products={**around.plan.products, "user_profile": changed})


def recorded(topic_id: str, partitions: int) -> Callable[[Healthy], object]:
    """The registry has recorded the topic `user` so."""
    boundaries = [
        EpochBoundary(topic="user", topic_id=topic_id, partition=p, from_offset=0, epoch=1, entity="user")
        for p in range(partitions)
    ]
    return lambda around: setattr(around.registry, "boundaries", boundaries if around.plan else [])


def truncates_deleted(around: Healthy) -> None:
    """The entity `user` deletes its rows when the source empties its table."""
    entities = dict(around.plan.entities)
    entities["user"] = replace(entities["user"], entity=replace(entities["user"].entity, truncate="delete"))
    around.plan = replace(around.plan, entities=entities)


def settled(form: DecimalForm, *values: Any) -> Callable[[Healthy], object]:
    """A record settled the form of `price`, and the last records have these values."""

    def breaks(around: Healthy) -> None:
        priced(*values)(around)
        around.store.write(write_form(FormNote("user", "price", LearnedForm(form, "user", 1, 1, 17))))

    return breaks


def priced(*values: Any, **more: Any) -> Callable[[Healthy], object]:
    """The entity `user` has a column `price`, with these values in its last records."""

    def breaks(around: Healthy) -> None:
        entities = dict(around.plan.entities)
        user = entities["user"].entity
        columns = {**user.columns, "price": parse_type("decimal(10,2)")}
        entities["user"] = replace(entities["user"], entity=replace(user, columns=columns, **more))
        around.plan = replace(around.plan, entities=entities)
        rows = ({"before": None, "after": {**USER, "price": value}, "op": "c", "source": {}} for value in values)
        around.kafka.records["user"] = [
            Record(topic="user", partition=0, offset=n, key=None, value=json.dumps(row).encode())
            for n, row in enumerate(rows)
        ]

    return breaks


def rows(*values: Any, **more: Any) -> Callable[[Healthy], object]:
    """These values in the last records of the entity `user`, which has `more` members."""

    def breaks(around: Healthy) -> None:
        entities = dict(around.plan.entities)
        entities["user"] = replace(entities["user"], entity=replace(entities["user"].entity, **more))
        around.plan = replace(around.plan, entities=entities)
        around.kafka.records["user"] = [
            Record(topic="user", partition=0, offset=n, key=None, value=json.dumps(value).encode())
            for n, value in enumerate(values)
        ]

    return breaks


RENAMED = {"id": 1, "email": "a", "login": "ada", "registered_at": None}
"""A row of `user` whose column `username` has another name."""
RENAMED_FIELDS = [{"field": name, "type": "string"} for name in RENAMED]


def gone(around: Healthy) -> None:
    recorded("id of user", 2)(around)
    without_topic("user")(around)


def hidden(around: Healthy) -> None:
    """The job has read the topic `user`, and this user may not see it."""
    recorded("id of user", 2)(around)
    around.kafka.found["user"] = HIDDEN


def foreign_table(around: Healthy) -> None:
    around.registry.bound = Binding(identity="another", job="statestore", table="statestore")


def empty_table(around: Healthy) -> None:
    around.store = MemoryStore(20)


def restored_table(around: Healthy) -> None:
    around.store.write(replace_identity("id", created=5))
    around.table_state = replace(TABLE, created=7)


def checkpoint_file(name: str, text: str) -> Callable[[Healthy], object]:
    def breaks(around: Healthy) -> None:
        for file, content in (
            ("sources/0/0", "v1\n{}"),
            ("statestore.identity", json.dumps({"id": "id"})),
            (name, text),
        ):
            place = Path(around.settings.checkpoint, file)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)

    return breaks


def checkpoint_is_a_file(around: Healthy) -> None:
    Path(around.settings.checkpoint).write_text("")


def recorded_rows(*values: Any, **more: Any) -> Callable[[Healthy], object]:
    """The last records of `user` have these values. `more`: options of the entity."""

    def breaks(around: Healthy) -> None:
        entities = dict(around.plan.entities)
        entities["user"] = replace(entities["user"], entity=replace(entities["user"].entity, **more))
        around.plan = replace(around.plan, entities=entities)
        encoded = (value if isinstance(value, bytes) else json.dumps(value).encode() for value in values)
        around.kafka.records["user"] = [
            Record(topic="user", partition=n % 2, offset=n, key=None, value=value) for n, value in enumerate(encoded)
        ]

    return breaks


def of_table(table: str, **row: Any) -> dict[str, Any]:
    return {"before": None, "after": {"email": "a", **row}, "op": "c", "source": {"table": table}}


USER_ROW = {"email": "a", "username": "ann"}
ALL = {"id": 1, "username": "ann", "registered_at": None}
"""The other columns of a user."""
QLIK = {"data": USER_ROW, "beforeData": None, "headers": {"operation": "INSERT"}}


def of_dms(table: str, operation: str = "insert", rule: str = "schema-table") -> dict[str, object]:
    return {
        "data": {**USER_ROW, **ALL},
        "metadata": {"record-type": "data", "operation": operation, "table-name": table, "partition-key-type": rule},
    }


FORMAT_FAULTS = [
    Fault("records of Qlik", recorded_rows(QLIK, QLIK), "source records", "failure", "user: 2 of the last 2 records become "
          "dead letters of entity user: an envelope of Qlik", "let a transform write rows"),
    Fault("two tables of AWS DMS", recorded_rows(of_dms("users"), of_dms("people")),
          "source records", "warning", "its records are of the tables people, users", "write `table` in the entity"),
    Fault("two rules for the partitions of AWS DMS", recorded_rows(of_dms("users", "load", "primary-key"), of_dms("users")),
          "source records", "failure", "primary-key and schema-table choose the partitions", "partition-key-type"),
    Fault("an unknown operation of AWS DMS", recorded_rows(of_dms("users", "merge")), "source records", "failure",
          "an operation load, read, insert", "correct `format`"),
    Fault("records of Glue's registry", recorded_rows(b"\x03\x00" + bytes(16) + b"x"), "source records", "failure",
          "framed for the AWS Glue Schema Registry", "JSON"),
    Fault("records of Apicurio", recorded_rows(b"\0" + (7).to_bytes(8, "big") + b"x"), "source records", "failure",
          "framed for the Apicurio Registry", "JSON"),
    Fault("an operation in rows", recorded_rows({**USER_ROW, "op_type": "D"}), "source records", "warning",
          "op_type has a value which may say that the row is deleted", "write `deleted` in the entity"),
    Fault("rows that say deleted", recorded_rows({**USER_ROW, "is_deleted": True}), "source records", "warning",
          "user: rows have 'is_deleted', which entity user does not declare", "deleted: {column: is_deleted}"),
    Fault("two tables in a topic", recorded_rows(of_table("users", **ALL), of_table("people", **ALL)),
          "source records", "warning", "its records are of the tables people, users", "write `table` in the entity"),
    Fault("another table", recorded_rows(of_table("orders", total=5)), "source records", "warning",
          "its record is of table orders", "write `table` in the entity"),
]  # fmt: skip
FAULTS = [
    *PART_FAULTS,
    *TRANSACTION_FAULTS,
    *FORMAT_FAULTS,
    Fault("no broker named", settings(bootstrap_servers=""), "kafka", "failure", "no broker", "--bootstrap-servers"),
    Fault(
        "a broker without a port", settings(bootstrap_servers="b1:x"), "kafka", "failure", "HOST:PORT", "--bootstrap"
    ),
    Fault(
        "one broker of two",
        settings(bootstrap_servers="b1.example.org:9092,old.internal"),
        "kafka",
        "warning",
        "old.internal:9092: DNS",
        "correct",
    ),
    Fault(
        "no broker", settings(bootstrap_servers="b9.internal:1"), "kafka", "failure", "b9.internal:1: DNS", "correct"
    ),
    Fault(
        "a wrong user of Kafka",
        set_to("kafka.cluster", fail(WRONG_USER)),
        "kafka login",
        "failure",
        "sasl.username",
        "docs/kafka.md",
    ),
    Fault("Kafka without TLS", settings(kafka=()), "kafka login", "warning", "PLAINTEXT", "SASL_SSL"),
    Fault(
        "a broker behind another name",
        set_to("kafka.brokers", (("b3.internal", 9092),)),
        "brokers",
        "failure",
        "b3.internal:9092: DNS",
        "advertised.listeners",
    ),
    Fault("long transactions", settings(transaction_seconds=3600), "transactions", "failure", "900 s", "--transaction"),
    Fault("hidden brokers", set_to("kafka.config", {}), "transactions", "warning", "not show", "DESCRIBE_CONFIGS"),
    Fault("no source topic", without_topic("star"), "source topics", "warning", "star: does not exist", "create it"),
    Fault("a topic that is gone", gone, "source topics", "failure", "user: the topic is gone", "statestore epoch user"),
    Fault("a topic made again", recorded("older", 2), "source topics", "failure", "created again", "statestore epoch"),
    Fault(
        "a truncate of several partitions",
        truncates_deleted,
        "source topics",
        "warning",
        "user: has 2 partitions, and entity user has `truncate: delete`",
        "one partition",
    ),
    Fault(
        "decimals as bytes",
        priced("BNI=", "1000", None, 7),
        "source records",
        "warning",
        "user: column price of entity user arrives without a schema, as Debezium's bytes",
        "decimals: bytes",
    ),
    Fault("decimals as text", priced("12345", "1000"), "source records", "warning", "as digits", "decimals: text"),
    Fault(
        "decimals unlike the settled form",
        settled("text", "1000", "BNI="),
        "source records",
        "warning",
        "column price of entity user has `decimals: text` since the record user/1/17, and",
        "replaces",
    ),
    Fault("decimals as either", priced("1000"), "source records", "warning", "may be digits or", "handling.mode"),
    Fault("decimals as both", priced("BNI=", "1.5"), "source records", "warning", "in others", "the newer records"),
    *(
        Fault(
            f"a renamed column in {name}", rows(value), "source records", "failure", "lack column username", "`absent`"
        )
        for name, value in {
            "an envelope": {"before": None, "after": RENAMED, "op": "u", "source": {}},
            "a flattened record": {**RENAMED, "__deleted": "false"},
            "a plain row with a schema": {"schema": {"type": "struct", "fields": RENAMED_FIELDS}, "payload": RENAMED},
        }.items()
    ),
    Fault(
        "a time that no timestamp holds",
        rows({**USER_ROW, **ALL, "registered_at": "infinity"}),
        "source records",
        "warning",
        "user: 1 of the last 1 records have a value in column registered_at that timestamp cannot hold: dead letters",
        "`unrepresentable: {registered_at: null}`",
    ),
    Fault(
        "a renamed column in plain rows",
        rows(*[RENAMED] * 20),
        "source records",
        "warning",
        "20 of the last 20",
        "renamed",
    ),
    Fault("new partitions", recorded("id of user", 1), "source topics", "failure", "2 partitions", "statestore epoch"),
    Fault(
        "records for a day",
        topic("user", cleanup_policy="delete", retention_ms=DAY),
        "source topics",
        "warning",
        "keeps records for 1 day:",
        "retention.ms",
    ),
    Fault(
        "tombstones for a day",
        topic("user", delete_retention_ms=DAY),
        "source topics",
        "warning",
        "misses deletes",
        "delete.retention.ms",
    ),
    Fault(
        "records that outlast the markers",
        topic("user", cleanup_policy="delete", retention_ms="-1"),
        "source topics",
        "warning",
        "delete markers live for 30 days",
        "cleanup.policy=compact",
    ),
    Fault(
        "no right to a topic",
        lambda around: around.kafka.found.update(repo=HIDDEN),
        "source topics",
        "failure",
        "repo: this user lacks READ",
        "ACL",
    ),
    Fault("a topic that is hidden", hidden, "source topics", "failure", "user: this user lacks READ", "ACL"),
    Fault(
        "a product's topic that deletes",
        topic("user_profile", cleanup_policy="delete", retention_ms=DAY),
        "product topics",
        "failure",
        "deletes documents",
        "cleanup.policy=compact",
    ),
    Fault(
        "small messages",
        topic("user_profile", max_message_bytes="1048588"),
        "product topics",
        "warning",
        "1048588 bytes",
        "max.message.bytes=8388608",
    ),
    Fault(
        "a landing that nobody runs",
        set_to("kafka.landings", [LANDING._replace(members=0)]),
        "landings",
        "warning",
        "user_profile does not land in table p: 7 messages wait",
        "start `statestore land` again, or `statestore land user_profile --remove f00`",
    ),
    Fault(
        "a landing whose group the broker forgot",
        set_to("kafka.landings", []),
        "landings",
        "warning",
        "user_profile does not land in table p: an unknown number of messages wait",
        "start `statestore land` again, or `statestore land user_profile --remove f00`",
    ),
    Fault(
        "compacted dead letters",
        topic("statestore.rejects", cleanup_policy="compact"),
        "dead letters",
        "failure",
        "compacted",
        "retention.ms=-1",
    ),
    Fault(
        "dead letters for a day",
        topic("statestore.rejects", retention_ms=DAY),
        "dead letters",
        "warning",
        "after 1 day",
        "retention.ms=-1",
    ),
    Fault("no checkpoint", settings(checkpoint=""), "checkpoint", "failure", "no checkpoint", "--checkpoint DIR"),
    Fault("a file as checkpoint", checkpoint_is_a_file, "checkpoint", "failure", "is a file", "another --checkpoint"),
    Fault("a checkpoint of one machine", settings(spark_master="yarn"), "checkpoint", "warning", "yarn", "s3://"),
    Fault(
        "a checkpoint of a newer Spark",
        checkpoint_file("offsets/3", "v7\n"),
        "checkpoint",
        "failure",
        "offsets/3",
        "a new --checkpoint",
    ),
    Fault(
        "a checkpoint of another job",
        checkpoint_file("statestore.identity", '{"id": "other"}'),
        "identity",
        "failure",
        "is foreign",
        "--checkpoint",
    ),
    Fault("another table", foreign_table, "identity", "failure", "is foreign", "--table"),
    Fault("a table that is empty", empty_table, "identity", "failure", "is foreign", "--table"),
    Fault(
        "a table that was restored", restored_table, "identity", "failure", "`statestore run --adopt`", "--checkpoint"
    ),
    Fault("another job", settings(job="other"), "identity", "failure", "the job other is foreign", "--job"),
    Fault(
        "a schema registry that does not answer",
        settings(schema_registry=(("url", "http://127.0.0.1:1"),)),
        "schemas",
        "failure",
        "does not answer",
        "[schema_registry]",
    ),
    Fault("Avro without a registry", avro_product, "avro products", "failure", "user_profile", "[schema_registry]"),
    Fault("an old server", table(release=13), "store server", "failure", "13 is too old", "PostgreSQL 14", "postgres"),
    Fault(
        "a server that forgets",
        set_to("table.durable", DURABLE._replace(fsync=False)),
        "table commits",
        "warning",
        "fsync is off",
        "set it to on",
        "postgres",
    ),
    Fault(
        "a logged table that the setting says is unlogged",
        settings(store_unlogged=True),
        "log",
        "warning",
        "store_unlogged is true",
        "the next start of the job alters it",
        "postgres",
    ),
]
