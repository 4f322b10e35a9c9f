"""The cluster of Kafka and its topics: those that the job reads, those that it publishes to, and the one for dead letters.

And the schema registry of Avro and Protobuf, where the settings name one, with the products that need it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from processor.engine.protocol.epochs import entities_of, last_topic, topic_readers
from processor.environment.settings.resolve import resolve_schema_registry
from processor.errors import BoundaryError
from processor.finding import Checks, Finding, NothingToCheck, failure, is_this_machine, ok, warning
from processor.job.kafka.schemas import avro_products, open_client, registration_refusal
from processor.tools.doctor.context import KAFKA, CheckContext, shown_address, unreachable
from processor.tools.doctor.table import existing_registry, need_definitions
from processor.values.dead_letters import SMALLEST_LIMIT
from processor.values.record import MAX_MESSAGE_BYTES
from registry.model import EpochBoundary

if TYPE_CHECKING:
    from processor.job.kafka.admin import TopicState

READ, WRITTEN = Checks(), Checks()
"""Of what the job reads, and of what it writes. The check of the records that it reads comes between the two."""
DAY = 86_400_000
SAFE_STOP_DAYS = 3
"""A job that fails on a Friday evening may stop until Monday: a topic should keep its records and its deletes longer."""
READ_RIGHTS, WRITE_RIGHTS = ("READ", "DESCRIBE"), ("WRITE", "READ", "DESCRIBE")


@READ.check("kafka login", "the settings of [kafka]", cure=KAFKA, needs=("kafka",))
def check_login_to_kafka(around: CheckContext) -> Iterator[Finding]:
    """Whether a broker takes the settings of [kafka]."""
    brokers = around.kafka.cluster().brokers
    protocol = dict(around.settings.kafka).get("security.protocol", "PLAINTEXT")
    if protocol.endswith("PLAINTEXT") and not all(is_this_machine(host) for host, _ in brokers):
        yield warning(f"security.protocol is {protocol}: others on the way can read the records", "use SSL or SASL_SSL")
    else:
        yield ok(f"the cluster takes the settings, security.protocol {protocol}")


@READ.check("brokers", "the way to each broker", cure=KAFKA, needs=("kafka login",))
def check_brokers(around: CheckContext) -> Iterator[Finding]:
    """The way to each broker of the cluster, by the address that the broker itself gives to clients."""
    brokers = around.kafka.cluster().brokers
    wrong = list(unreachable(around, brokers, "`advertised.listeners` of this broker, or the network"))
    yield from wrong or [ok(f"{len(brokers)} in reach: {', '.join(map(shown_address, brokers))}")]


@READ.check("transactions", "the broker's limit for transactions", cure=KAFKA, needs=("kafka login",))
def check_cluster(around: CheckContext) -> Iterator[Finding]:
    """The broker's limit for transactions, and the user's rights in the cluster."""
    cluster, seconds = around.kafka.cluster(), around.settings.transaction_seconds
    if "transaction.max.timeout.ms" not in cluster.config:
        text = "Kafka does not show transaction.max.timeout.ms to this user"
        yield warning(text, "allow DESCRIBE_CONFIGS on the cluster, or compare it with --transaction-seconds yourself")
    elif (most := int(cluster.config["transaction.max.timeout.ms"]) // 1000) < seconds:
        text = f"transaction.max.timeout.ms of the broker allows {most} s, and transaction_seconds is {seconds}"
        yield failure(text, f"--transaction-seconds {most}, or raise transaction.max.timeout.ms")
    else:
        yield ok(f"transactions of {seconds} s are allowed; Kafka shows no rights of transactional ids")


@READ.check("source topics", "the topics of entities", cure=KAFKA, needs=("kafka login", "definitions"))
def check_sources(around: CheckContext) -> Iterator[Finding]:
    """The topics of the entities."""
    need_definitions(around)
    readers = topic_readers({name: one.entity.topic for name, one in around.plan.entities.items()})
    topics, days = around.kafka.topics(sorted(readers)), around.settings.marker_days
    found: list[tuple[str, Finding]] = []
    for name, reader in sorted(readers.items()):
        topic = topics.get(name)
        if topic is None:
            wrong = [_missing_source(around, name, reader)]
        else:
            wrong = _changed(around, name, reader, topic) or _hidden(topic, READ_RIGHTS)
            truncates = [one for entity in entities_of(reader) for one in _truncate_findings(around, entity, topic)]
            wrong = wrong or [*truncates, *_source_findings(topic, days)]
        found += ((name, finding) for finding in wrong)
    yield from _grouped(found)


@WRITTEN.check("product topics", "the topics of products", cure=KAFKA, needs=("kafka login", "definitions"))
def check_products(around: CheckContext) -> Iterator[Finding]:
    """The topics of the products."""
    need_definitions(around)
    names = sorted({product.product.topic for product in around.plan.products.values()})
    topics = around.kafka.topics(names)
    if not names:
        raise NothingToCheck("there is no product")
    yield from _grouped(
        (name, finding) for name in names for finding in _own_findings(topics.get(name), _product_findings)
    )


@WRITTEN.check("dead letters", "the topic for dead letters", cure=KAFKA, needs=("kafka login",))
def check_dead_letters(around: CheckContext) -> Iterator[Finding]:
    """The topic for dead letters."""
    name = around.settings.dead_letter_topic
    topic = around.kafka.topics([name]).get(name)
    yield from _grouped((name, finding) for finding in _own_findings(topic, _dead_letter_findings))


@WRITTEN.check("landings", "the processes of `land`", cure=KAFKA, needs=("kafka login", "registry"))
def check_landings(around: CheckContext) -> Iterator[Finding]:
    """The landings of documents."""
    from processor.job.landing.landing import PREFIX, landings_of

    existing_registry(around)
    found = landings_of(around.registry.landings.all(), around.kafka.groups(PREFIX))
    if not found:
        raise NothingToCheck("there is no landing")
    for one in found:
        behind = "an unknown number of messages" if one.behind is None else f"{one.behind:,} messages"
        if one.processes or one.behind == 0:
            yield ok(f"{one.product} lands in {one.place}, {behind} behind")
        else:
            remove = f"`statestore land {one.product} --remove {one.id}`" if one.id else "delete its group in Kafka"
            text = f"{one.product} does not land in {one.place}: {behind} wait"
            yield warning(text, f"start `statestore land` again, or {remove}")


def _grouped(found: Iterable[tuple[str, Finding]]) -> Iterator[Finding]:
    """The findings with the names of their topics; one finding for topics that have the same."""
    names: dict[Finding, list[str]] = {}
    for name, finding in found:
        names.setdefault(finding, []).append(name)
    for finding, same in names.items():
        yield replace(finding, text=f"{', '.join(same)}: {finding.text}")


def _own_findings(topic: "TopicState | None", look: "Callable[[TopicState], Iterable[Finding]]") -> Iterable[Finding]:
    """The findings of a topic that the job writes to, and creates where it is missing."""
    if topic is None:
        return [ok("does not exist yet: the job creates it, if Kafka allows it")]
    return _hidden(topic, WRITE_RIGHTS) or look(topic)


def _hidden(topic: "TopicState", needed: Iterable[str]) -> list[Finding]:
    """The finding of a topic that this user may not use, or whose settings this user does not see."""
    lacking = [right for right in needed if topic.rights is not None and right not in topic.rights]
    if lacking:
        rights = ", ".join(lacking)
        return [failure(f"this user lacks {rights}", f"give this user an ACL that allows {rights}")]
    if not topic.config:
        return [warning("Kafka does not show the settings to this user", "allow DESCRIBE_CONFIGS on the topic")]
    return []


def _missing_source(around: CheckContext, name: str, reader: str) -> Finding:
    boundaries = _boundaries(around, name, reader)
    if any(last_topic(boundaries, entity) == name for entity in entities_of(reader)):
        cure = f"create it again, `statestore epoch {name}`, and start with a new --checkpoint"
        return failure(f"the topic is gone, and entity {reader} has read it", cure)
    return warning("does not exist: the job reads it once it is there", "create it, or correct `topic` of the entity")


def _boundaries(around: CheckContext, name: str, reader: str) -> Sequence[EpochBoundary]:
    """What the registry recorded of a topic; nothing without one."""
    return around.registry.epochs([name], entities_of(reader)) if around.registry.state().exists else ()


def _changed(around: CheckContext, name: str, reader: str, topic: "TopicState") -> list[Finding]:
    """The finding of a topic that is not the recorded one."""
    from processor.job.kafka.admin import TopicDescription
    from processor.job.run.topics import new_boundaries

    if not topic.partitions:  # a topic that this user may not see
        return []
    try:
        boundaries = _boundaries(around, name, reader)
        new_boundaries(name, TopicDescription(topic.id, topic.partitions), reader, boundaries)
    except BoundaryError as error:
        what, _, cure = str(error).partition(": ")
        return [failure(what, cure)]
    return []


def _truncate_findings(around: CheckContext, entity: str, topic: "TopicState") -> Iterator[Finding]:
    """Whether the job can follow a truncate: of several partitions, no order is known."""
    if around.plan.entities[entity].entity.truncate == "delete" and topic.partitions > 1:
        text = (
            f"has {topic.partitions} partitions, and entity {entity} has `truncate: delete`: a truncate stops the job"
        )
        yield warning(text, "let the connector write the table to a topic of one partition, or set `truncate: ignore`")


def _source_findings(topic: "TopicState", marker_days: int) -> list[Finding]:
    """Whether the topic outlasts a stop of the job, and the delete markers outlast a topic that is read again."""
    deletes, compacts = _policy(topic.config)
    kept, tombstones = _days(topic.config, "retention.ms"), _days(topic.config, "delete.retention.ms")
    found: list[Finding] = []
    if deletes and kept < SAFE_STOP_DAYS:
        text = f"keeps records for {_shown(kept)}: a job that stops for longer loses changes, and fails"
        found.append(warning(text, f"raise its retention.ms to {SAFE_STOP_DAYS * DAY} or more"))
    if compacts and tombstones < SAFE_STOP_DAYS:
        text = f"keeps tombstones for {_shown(tombstones)}: a job that stops for longer misses deletes"
        found.append(warning(text, f"raise its delete.retention.ms to {SAFE_STOP_DAYS * DAY} or more"))
    if deletes and not compacts and kept > marker_days:
        text = (
            f"keeps records for {_shown(kept)}, and delete markers live for {marker_days} days: a job that reads "
            "the topic again may show deleted rows for a while"
        )
        found.append(warning(text, f"set its cleanup.policy=compact, or its retention.ms below {marker_days} days"))
    policy = f"{topic.config.get('cleanup.policy', '')}{f', {_shown(kept)}' if deletes else ''}"
    return found or [ok(f"{topic.partitions} partitions, {policy}")]


def _product_findings(topic: "TopicState") -> list[Finding]:
    """Whether the topic keeps the last document of each root, and takes large ones."""
    deletes, compacts = _policy(topic.config)
    kept, largest = _days(topic.config, "retention.ms"), _largest(topic)
    found: list[Finding] = []
    if deletes and kept != float("inf"):
        text = f"deletes documents after {_shown(kept)}: a consumer that starts later does not get them"
        found.append(failure(text, "set its cleanup.policy=compact"))
    elif not compacts:
        found.append(warning("is not compacted: it keeps every message, and grows", "set its cleanup.policy=compact"))
    if largest < MAX_MESSAGE_BYTES:
        text = f"takes messages up to {largest} bytes: a larger document becomes a dead letter"
        found.append(warning(text, f"set its max.message.bytes={MAX_MESSAGE_BYTES}"))
    return found or [ok(f"{topic.partitions} partitions, compact")]


def _dead_letter_findings(topic: "TopicState") -> Iterator[Finding]:
    """Whether the topic keeps each dead letter until a person replays it."""
    _, compacts = _policy(topic.config)
    kept, largest = _days(topic.config, "retention.ms"), _largest(topic)
    if compacts:
        text = "is compacted: a dead letter replaces the one before of the same key, which is lost"
        yield failure(text, "set its cleanup.policy=delete and retention.ms=-1")
    elif largest < SMALLEST_LIMIT:
        text = f"takes messages up to {largest} bytes: too few for a dead letter, and the job does not start"
        yield failure(text, f"set its max.message.bytes={MAX_MESSAGE_BYTES}")
    elif kept != float("inf"):
        yield warning(f"deletes dead letters after {_shown(kept)}, replayed or not", "set its retention.ms=-1")
    else:
        yield ok("not compacted, kept for ever")


def _largest(topic: "TopicState") -> int:
    """The bytes of the largest message that the topic takes."""
    return int(topic.config.get("max.message.bytes", MAX_MESSAGE_BYTES))


def _policy(config: Mapping[str, str]) -> tuple[bool, bool]:
    """Whether the topic deletes old records, and whether it is compacted."""
    policies = [one.strip() for one in config.get("cleanup.policy", "").split(",")]
    return "delete" in policies, "compact" in policies


def _days(config: Mapping[str, str], name: str) -> float:
    """A time of the topic's settings in days; infinite where it has none, or -1."""
    found = int(config.get(name, -1))
    return float("inf") if found < 0 else found / DAY


def _shown(days: float) -> str:
    return "ever" if days == float("inf") else f"{days:g} day{'' if days == 1 else 's'}"


FORMATS = Checks()
SCHEMAS = "correct [schema_registry] in the settings file (docs/kafka.md#a-schema-registry), or start the registry"


@FORMATS.check("schemas", "the registry of Avro and Protobuf", cure=SCHEMAS)
def check_schema_registry(around: CheckContext) -> Iterator[Finding]:
    """Whether the registry takes the settings, and the packages of the formats are here."""
    access = resolve_schema_registry(around.settings.schema_registry)
    if not access:
        yield ok("the settings name none, so the job reads JSON without a registry")
        return
    client = open_client(access)
    try:
        yield ok(client.probe())
    finally:
        client.close()


@FORMATS.check(
    "avro products", "whether Avro documents have a registry", cure=SCHEMAS, needs=("definitions", "schemas")
)
def check_avro_products(around: CheckContext) -> Iterator[Finding]:
    """Whether the products whose documents are Avro have a registry for their schemas."""
    need_definitions(around)
    products = avro_products(around.plan)
    if not products:
        yield ok("the documents of all products are JSON")
        return
    names = ", ".join(sorted(product.name for product in products))
    if refusal := registration_refusal(around.settings.schema_registry):
        yield failure(f"{names}: {refusal}", SCHEMAS)
    elif around.settings.schema_registry:
        yield ok(f"the job registers the schemas of {names}")
    else:
        yield failure(
            f"the documents of {names} are Avro, and the settings name no schema registry: the job stops these products",
            "give [schema_registry] in the settings file (docs/kafka.md#a-schema-registry)",
        )
