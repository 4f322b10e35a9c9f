"""Topics, groups and brokers: made, described, measured. `ClusterProbe` looks for a person who checks a set-up."""

from collections.abc import Iterable, Mapping, Sequence
from time import sleep
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicCollection, TopicPartition
from confluent_kafka import KafkaError as ClientError
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from processor.engine.plan.plan import Plan
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError
from processor.job.kafka.client import (
    TIMEOUT,
    check_access,
    client_error,
    client_errors,
    make_admin,
    make_consumer,
    watermarks,
)
from processor.job.kafka.reader import read_sample
from processor.values.record import MAX_MESSAGE_BYTES, Record

ATTEMPTS = 5
"""So often the broker is asked about a topic that it does not know, or that has no leader; a second apart."""
KAFKA_DEFAULT_BYTES = 1_048_588
"""Kafka's own default of `max.message.bytes`."""
UNKNOWN: Final = ClientError.UNKNOWN_TOPIC_OR_PART
NOT_ALLOWED = (ClientError.TOPIC_AUTHORIZATION_FAILED, ClientError.CLUSTER_AUTHORIZATION_FAILED)
NO_LEADER = (ClientError.NOT_LEADER_FOR_PARTITION, ClientError.LEADER_NOT_AVAILABLE)


class TopicDescription(NamedTuple):
    """A topic as the broker describes it. The id changes when the topic is deleted and created again."""

    id: str
    partitions: int


class Admin:
    """Topics: made, looked at, measured."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str]) -> None:
        self._bootstrap, self._extra = bootstrap, extra
        check_access(bootstrap, extra)
        self._admin = make_admin(bootstrap, extra)

    def names(self, seconds: float = TIMEOUT) -> frozenset[str]:
        """The names of all topics that this user may see, without Kafka's own. `seconds`: the longest wait."""
        with client_errors(f"cannot list the topics at {self._bootstrap}"):
            found = self._admin.list_topics(timeout=seconds).topics
        return frozenset(name for name in found if not name.startswith("__"))

    def cluster(self) -> str:
        """The id of the cluster, which outlasts its brokers."""
        with client_errors(f"cannot reach the cluster at {self._bootstrap}"):
            found = self._admin.list_topics(timeout=TIMEOUT)
        return str(found.cluster_id or "")

    def topics(self, names: Sequence[str], seconds: float = TIMEOUT) -> dict[str, TopicDescription]:
        """The topics among `names` that exist. `seconds`: the longest wait."""
        found: dict[str, TopicDescription] = {}
        wanted = TopicCollection([*dict.fromkeys(names)])
        for name, future in self._admin.describe_topics(wanted, request_timeout=seconds).items():
            with client_errors(f"cannot describe topic {name} at {self._bootstrap}", [UNKNOWN]):
                description = future.result()
                found[name] = TopicDescription(str(description.topic_id), len(description.partitions))
        return found

    def ensure(self, names: Iterable[str], *, partitions: int, compacted: bool) -> None:
        """Makes the topics that are missing; those that are there stay as they are. What is not compacted is kept for good."""
        config = {"max.message.bytes": str(MAX_MESSAGE_BYTES)}
        config |= {"cleanup.policy": "compact"} if compacted else {"retention.ms": "-1"}
        wanted = [NewTopic(name, num_partitions=partitions, config=config) for name in dict.fromkeys(names)]
        if not wanted:
            return
        for name, future in self._admin.create_topics(wanted, request_timeout=TIMEOUT).items():
            try:
                future.result()
            except KafkaException as error:
                code = error.args[0].code()
                # the broker refuses a client without the right to create, also where the topic exists
                exists = code == ClientError.TOPIC_AUTHORIZATION_FAILED and self.topics([name])
                if code != ClientError.TOPIC_ALREADY_EXISTS and not exists:
                    raise client_error(error.args[0], f"cannot create topic {name} at {self._bootstrap}") from None

    def message_limit(self, topic: str) -> int:
        """The most bytes of a message of the topic that a job sends: by Kafka's default where this job may not ask."""
        config = self.configs([topic]).get(topic)
        return min(KAFKA_DEFAULT_BYTES if config is None else int(config["max.message.bytes"]), MAX_MESSAGE_BYTES)

    def retentions(self, topics: Iterable[str]) -> dict[str, float]:
        """For how many seconds the broker keeps the records of each topic, by their time. Leaves out topics whose records no age
        ends, and those whose settings Kafka does not show to this job. A limit of bytes may end records earlier.

        The broker deletes old records by `retention.ms` where `cleanup.policy` has `delete`; -1 is no limit. Read on 2026-11-27:
        https://kafka.apache.org/37/generated/topic_config.html. Captured: both settings, from the embedded broker.
        """
        ends = {
            topic: int(config["retention.ms"]) / 1000
            for topic, config in self.configs(topics, ASK_SECONDS).items()
            if "delete" in config["cleanup.policy"].split(",")
        }
        return {topic: seconds for topic, seconds in ends.items() if seconds >= 0}

    def configs(self, topics: Iterable[str], seconds: float = TIMEOUT) -> dict[str, Mapping[str, str]]:
        """The configuration of each topic, without those that this job may not see. Asks again for a while about a topic that the
        broker does not know: it may just have been made. `seconds`: the longest wait for an answer."""
        found: dict[str, Mapping[str, str]] = {}
        waiting = sorted(set(topics))
        for attempt in range(1, ATTEMPTS + 1):
            if attempt > 1:
                sleep(1)
            asked = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in waiting]
            ignored = NOT_ALLOWED if attempt == ATTEMPTS else (*NOT_ALLOWED, UNKNOWN)
            waiting = []
            for resource, future in self._admin.describe_configs(asked, request_timeout=seconds).items():
                what = f"cannot describe topic {resource.name} at {self._bootstrap}"
                with client_errors(what, ignored) as codes:
                    found[resource.name] = {name: entry.value for name, entry in future.result().items()}
                if UNKNOWN in codes:
                    waiting.append(resource.name)
            if not waiting:
                break
        return found

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Removes the records of a topic before an offset, in each partition."""
        request = [TopicPartition(topic, p, offset) for p, offset in sorted(offsets.items())]
        for future in self._admin.delete_records(request, request_timeout=TIMEOUT).values():
            with client_errors(f"cannot delete records of topic {topic} at {self._bootstrap}"):
                future.result()

    def begins(self, topic: str) -> dict[int, int]:
        """Where each partition of the topic begins: the first offset that retention has left."""
        return {p: begin for p, (begin, _) in self.watermarks(topic).items()}

    def ends(self, topic: str) -> dict[int, int]:
        """Where each partition of the topic ends, behind open transactions too: the offset that its next record gets."""
        return {p: end for p, (_, end) in self.watermarks(topic).items()}

    def stable_ends(self, topic: str) -> dict[int, int]:
        """Where each partition of the topic ends for readers of committed records: before the first open transaction."""
        return {p: end for p, (_, end) in self.watermarks(topic, isolation="read_committed").items()}

    def watermarks(self, topic: str, isolation: str = "read_uncommitted") -> dict[int, tuple[int, int]]:
        """Where each partition of the topic begins and ends. Asks again for a while where a partition has no leader: it may just
        have been made, or its broker may have ended. `isolation`: of the reader that asks."""
        consumer = make_consumer(self._bootstrap, self._extra, isolation=isolation)
        marks: dict[int, tuple[int, int]] | None = None
        attempt = 0
        try:
            while marks is None:
                attempt += 1
                ignored = NO_LEADER if attempt < ATTEMPTS else ()
                with client_errors(f"cannot read topic {topic} at {self._bootstrap}", ignored) as codes:
                    marks = watermarks(consumer, topic, self._bootstrap)
                if codes:
                    sleep(1)
            return marks
        finally:
            consumer.close()


ASK_SECONDS: Final = 5.0
"""The longest wait for an answer."""


class GroupState(NamedTuple):
    """A group. `members`: its processes; `topic`: that it reads; `behind`: how many offsets it has not committed; `notes`: that
    its processes stored with their offsets."""

    name: str
    members: int
    topic: str
    behind: int
    notes: tuple[str, ...]


def group_states(bootstrap: str, extra: Mapping[str, str], prefix: str) -> list[GroupState]:
    """The groups whose names begin so, for each topic that is there and that they read. Raises KafkaError."""
    client = make_admin(bootstrap, extra)
    with client_errors(f"cannot list groups at {bootstrap}"):
        listed = client.list_consumer_groups(request_timeout=ASK_SECONDS).result().valid
        names = sorted(one.group_id for one in listed if one.group_id.startswith(prefix))
        described = client.describe_consumer_groups(names, request_timeout=ASK_SECONDS) if names else {}
        members = {name: len(future.result().members) for name, future in described.items()}
        stored = {name: _offsets(client, name) for name in names}
    admin, states = Admin(bootstrap, extra), []
    for topic in admin.topics(sorted({one.topic for offsets in stored.values() for one in offsets})):
        ends = admin.stable_ends(topic)
        for name, offsets in stored.items():
            known = {one.partition: one for one in offsets if one.topic == topic}
            behind = sum(max(0, end - (known[one].offset if one in known else 0)) for one, end in ends.items())
            notes = tuple(one.metadata for one in known.values() if one.metadata)
            states += [GroupState(name, members[name], topic, behind, notes)] if known else []
    return states


def delete_group(bootstrap: str, extra: Mapping[str, str], name: str) -> None:
    """Removes a group without processes, if there is one. Raises KafkaError."""
    client = make_admin(bootstrap, extra)
    with client_errors(f"cannot delete group {name} at {bootstrap}", [ClientError.GROUP_ID_NOT_FOUND]):
        client.delete_consumer_groups([name], request_timeout=ASK_SECONDS)[name].result()


def _offsets(client: AdminClient, name: str) -> list[Any]:
    """The offsets that a group has stored."""
    asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)], request_timeout=ASK_SECONDS)
    return [one for one in asked[name].result().topic_partitions if one.offset >= 0]


def ask_limit(settings: Settings, topic: str) -> int:
    """The most bytes of a message of a topic that refused a larger one."""
    return Admin(settings.bootstrap_servers, dict(settings.kafka)).message_limit(topic)


def message_limits(plan: Plan, configs: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
    """Product -> the most bytes of a message of its topic, by the configuration of the topics that the job may see."""
    topics = {name: product.product.topic for name, product in plan.products.items()}
    return {
        name: min(int(configs[topic]["max.message.bytes"]), MAX_MESSAGE_BYTES)
        for name, topic in topics.items()
        if topic in configs
    }


def product_partitions(admin: Admin, plan: Plan) -> dict[str, int]:
    """Product -> the partitions of its topic. Raises KafkaError where a product needs them, and the broker does not say them."""
    topics = {name: product.product.topic for name, product in plan.products.items()}
    needed = {topics[name] for name, product in plan.products.items() if product.product.partition_by}
    for _ in range(DESCRIBE_TRIES):
        found = admin.topics([*topics.values()])
        if needed <= found.keys():
            return {name: found[topic].partitions for name, topic in topics.items() if topic in found}
        sleep(0.5)  # the brokers tell each other of a new topic
    raise KafkaError(
        f"the broker does not describe topic {min(needed - found.keys())}, whose product has `partition_by`"
    )


DESCRIBE_TRIES: Final = 10
PROBE_SECONDS: Final = 10.0


class TopicState(NamedTuple):
    """A topic as it is. `id`: changes when the topic is created again. `config`: its settings; empty where Kafka does not show
    them to this user. `rights`: the operations that this user may do, in Kafka's names; None where Kafka does not show them."""

    id: str
    partitions: int
    config: Mapping[str, str]
    rights: frozenset[str] | None


HIDDEN = TopicState("", 0, {}, frozenset())
"""A topic that this user may not see."""


class ClusterState(NamedTuple):
    """The brokers by the addresses that they give to clients; the settings of one of them as in `TopicState`."""

    brokers: tuple[tuple[str, int], ...]
    config: Mapping[str, str]


class ClusterProbe:
    """Looks at a cluster. Raises SettingError, KafkaError where no broker takes these settings."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str]) -> None:
        self._bootstrap, self._extra = bootstrap, extra
        check_access(bootstrap, extra)
        self._admin = make_admin(bootstrap, extra)

    def cluster(self) -> ClusterState:
        """The brokers. Raises KafkaError."""
        with client_errors(f"cannot describe the cluster at {self._bootstrap}"):
            nodes = self._admin.describe_cluster(request_timeout=PROBE_SECONDS).result().nodes
        config = self._config(ConfigResource(ConfigResource.Type.BROKER, str(nodes[0].id)))
        return ClusterState(tuple((node.host, node.port) for node in nodes), config)

    def topics(self, names: Sequence[str]) -> dict[str, TopicState]:
        """The topics among `names` that exist. Raises KafkaError."""
        if not names:
            return {}
        answers = self._admin.describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=PROBE_SECONDS
        )
        found: dict[str, TopicState] = {}
        for name, future in answers.items():
            what = f"cannot describe topic {name} at {self._bootstrap}"
            with client_errors(what, (*NOT_ALLOWED, UNKNOWN)) as codes:
                one = future.result()
                config = self._config(ConfigResource(ConfigResource.Type.TOPIC, name))
                found[name] = TopicState(str(one.topic_id), len(one.partitions), config, _rights(one))
            if codes and UNKNOWN not in codes:
                found[name] = HIDDEN
        return found

    def last_records(self, topic: str, most: int) -> list[Record]:
        """The last records of a topic, about `most`. Raises KafkaError."""
        return read_sample(self._bootstrap, self._extra, topic, most)

    def groups(self, prefix: str) -> list[GroupState]:
        """The groups of consumers whose names begin so. Raises KafkaError."""
        return group_states(self._bootstrap, self._extra, prefix)

    def _config(self, resource: ConfigResource) -> dict[str, str]:
        found: dict[str, str] = {}
        future = self._admin.describe_configs([resource], request_timeout=PROBE_SECONDS)[resource]
        with client_errors(f"cannot describe {resource.name} at {self._bootstrap}", NOT_ALLOWED):
            found |= {name: str(entry.value) for name, entry in future.result().items() if entry.value is not None}
        return found


def _rights(described: Any) -> frozenset[str] | None:
    operations = described.authorized_operations
    return None if operations is None else frozenset(operation.name for operation in operations)
