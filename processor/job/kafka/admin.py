"""Topics: made, looked at, measured."""

from collections.abc import Iterable, Mapping, Sequence
from time import sleep
from typing import NamedTuple

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from processor.job.kafka.check_access import check_access
from processor.job.kafka.client import TIMEOUT, client_error, list_partitions, make_consumer, setting_errors, settings
from processor.values.record import MAX_MESSAGE_BYTES

ATTEMPTS = 5
"""So often the broker is asked about a topic that it does not know, or that has no leader; a second apart."""
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
        with setting_errors():
            self._admin = AdminClient(settings(bootstrap, extra))

    def names(self, seconds: float = TIMEOUT) -> frozenset[str]:
        """The names of all topics that this user may see, without Kafka's own. `seconds`: the longest wait."""
        try:
            found = self._admin.list_topics(timeout=seconds).topics
        except KafkaException as error:
            raise client_error(error.args[0], f"cannot list the topics at {self._bootstrap}") from None
        return frozenset(name for name in found if not name.startswith("__"))

    def cluster(self) -> str:
        """The id of the cluster, which outlasts its brokers."""
        try:
            return str(self._admin.list_topics(timeout=TIMEOUT).cluster_id or "")
        except KafkaException as error:
            raise client_error(error.args[0], f"cannot reach the cluster at {self._bootstrap}") from None

    def topics(self, names: Sequence[str], seconds: float = TIMEOUT) -> dict[str, TopicDescription]:
        """The topics among `names` that exist. `seconds`: the longest wait."""
        found: dict[str, TopicDescription] = {}
        for name, future in self._admin.describe_topics(TopicCollection(list(names)), request_timeout=seconds).items():
            try:
                description = future.result()
            except KafkaException as error:
                if error.args[0].code() != ClientError.UNKNOWN_TOPIC_OR_PART:
                    raise client_error(error.args[0], f"cannot describe topic {name} at {self._bootstrap}") from None
            else:
                found[name] = TopicDescription(str(description.topic_id), len(description.partitions))
        return found

    def ensure(self, names: Iterable[str], *, partitions: int, compacted: bool) -> None:
        """Makes the topics that are missing; those that are there stay as they are. What is not compacted is kept for good."""
        config = {"max.message.bytes": str(MAX_MESSAGE_BYTES)}
        config |= {"cleanup.policy": "compact"} if compacted else {"retention.ms": "-1"}
        wanted = [NewTopic(name, num_partitions=partitions, config=config) for name in names]
        if not wanted:
            return
        for name, future in self._admin.create_topics(wanted, request_timeout=TIMEOUT).items():
            try:
                future.result()
            except KafkaException as error:
                code = error.args[0].code()
                exists = code == ClientError.TOPIC_ALREADY_EXISTS
                # the broker refuses a client without the right to create, also where the topic exists
                if not exists and not (code == ClientError.TOPIC_AUTHORIZATION_FAILED and self.topics([name])):
                    raise client_error(error.args[0], f"cannot create topic {name} at {self._bootstrap}") from None

    def max_message_bytes(self, topic: str) -> int | None:
        """The most bytes of a message of the topic; None where this job may not ask."""
        config = self.configs([topic]).get(topic)
        return None if config is None else int(config["max.message.bytes"])

    def configs(self, topics: Iterable[str]) -> dict[str, Mapping[str, str]]:
        """The configuration of each topic, without those that this job may not see. Asks again for a while about a topic that the
        broker does not know: it may just have been made."""
        found: dict[str, Mapping[str, str]] = {}
        waiting, attempt = sorted(set(topics)), 0
        while waiting:
            attempt += 1
            asked = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in waiting]
            unknown = []
            for resource, future in self._admin.describe_configs(asked, request_timeout=TIMEOUT).items():
                try:
                    found[resource.name] = {name: entry.value for name, entry in future.result().items()}
                except KafkaException as error:
                    code = error.args[0].code()
                    if code in (ClientError.TOPIC_AUTHORIZATION_FAILED, ClientError.CLUSTER_AUTHORIZATION_FAILED):
                        continue
                    if code != ClientError.UNKNOWN_TOPIC_OR_PART or attempt == ATTEMPTS:
                        raise client_error(
                            error.args[0], f"cannot describe topic {resource.name} at {self._bootstrap}"
                        ) from None
                    unknown.append(resource.name)
            waiting = unknown
            if waiting:
                sleep(1)
        return found

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Removes the records of a topic before an offset, in each partition."""
        request = [TopicPartition(topic, p, offset) for p, offset in sorted(offsets.items())]
        for future in self._admin.delete_records(request, request_timeout=TIMEOUT).values():
            try:
                future.result()
            except KafkaException as error:
                raise client_error(
                    error.args[0], f"cannot delete records of topic {topic} at {self._bootstrap}"
                ) from None

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
        consumer, attempts = make_consumer(self._bootstrap, self._extra, isolation=isolation), 0
        try:
            while True:
                try:
                    return {
                        p: consumer.get_watermark_offsets(TopicPartition(topic, p), TIMEOUT)
                        for p in list_partitions(consumer, topic, self._bootstrap)
                    }
                except KafkaException as error:
                    attempts += 1
                    if error.args[0].code() not in NO_LEADER or attempts == ATTEMPTS:
                        raise client_error(error.args[0], f"cannot read topic {topic} at {self._bootstrap}") from None
                    sleep(1)
        finally:
            consumer.close()
