"""Looks at brokers and topics for a person who checks a set-up: settings, and rights as far as Kafka shows them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource

from processor.job.kafka.check_access import check_access
from processor.job.kafka.client import client_error, setting_errors, settings
from processor.job.kafka.group_states import GroupState, group_states
from processor.job.kafka.reader import read_sample
from processor.values.record import Record

SECONDS = 10.0
NOT_ALLOWED = (ClientError.TOPIC_AUTHORIZATION_FAILED, ClientError.CLUSTER_AUTHORIZATION_FAILED)


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
        with setting_errors():
            self._admin = AdminClient(settings(bootstrap, extra))

    def cluster(self) -> ClusterState:
        """The brokers. Raises KafkaError."""
        try:
            nodes = self._admin.describe_cluster(request_timeout=SECONDS).result().nodes
        except KafkaException as error:
            raise client_error(error.args[0], f"cannot describe the cluster at {self._bootstrap}") from None
        config = self._config(ConfigResource(ConfigResource.Type.BROKER, str(nodes[0].id)))
        return ClusterState(tuple((node.host, node.port) for node in nodes), config)

    def topics(self, names: Sequence[str]) -> dict[str, TopicState]:
        """The topics among `names` that exist. Raises KafkaError."""
        if not names:
            return {}
        answers = self._admin.describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=SECONDS
        )
        found: dict[str, TopicState] = {}
        for name, future in answers.items():
            try:
                one = future.result()
            except KafkaException as error:
                if error.args[0].code() in NOT_ALLOWED:
                    found[name] = HIDDEN
                elif error.args[0].code() != ClientError.UNKNOWN_TOPIC_OR_PART:
                    raise client_error(error.args[0], f"cannot describe topic {name} at {self._bootstrap}") from None
            else:
                config = self._config(ConfigResource(ConfigResource.Type.TOPIC, name))
                found[name] = TopicState(str(one.topic_id), len(one.partitions), config, _rights(one))
        return found

    def last_records(self, topic: str, most: int) -> list[Record]:
        """The last records of a topic, about `most`. Raises KafkaError."""
        return read_sample(self._bootstrap, self._extra, topic, most)

    def groups(self, prefix: str) -> list[GroupState]:
        """The groups of consumers whose names begin so. Raises KafkaError."""
        return group_states(self._bootstrap, self._extra, prefix)

    def _config(self, resource: ConfigResource) -> dict[str, str]:
        future = self._admin.describe_configs([resource], request_timeout=SECONDS)[resource]
        try:
            return {name: str(entry.value) for name, entry in future.result().items() if entry.value is not None}
        except KafkaException as error:
            if error.args[0].code() in NOT_ALLOWED:
                return {}
            raise client_error(error.args[0], f"cannot describe {resource.name} at {self._bootstrap}") from None


def _rights(described: Any) -> frozenset[str] | None:
    operations = described.authorized_operations
    return None if operations is None else frozenset(operation.name for operation in operations)
