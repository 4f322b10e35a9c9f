"""How far groups of consumers are, as the broker knows it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka import KafkaError as ClientError
from confluent_kafka.admin import AdminClient

from processor.job.kafka.admin import Admin
from processor.job.kafka.client import client_error, setting_errors, settings

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
    with setting_errors():
        client = AdminClient(settings(bootstrap, extra))
    try:
        listed = client.list_consumer_groups(request_timeout=ASK_SECONDS).result().valid
        names = sorted(one.group_id for one in listed if one.group_id.startswith(prefix))
        described = client.describe_consumer_groups(names, request_timeout=ASK_SECONDS) if names else {}
        members = {name: len(future.result().members) for name, future in described.items()}
        stored = {name: _offsets(client, name) for name in names}
    except KafkaException as error:
        raise client_error(error.args[0], f"cannot list groups at {bootstrap}") from None
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
    with setting_errors():
        client = AdminClient(settings(bootstrap, extra))
    try:
        client.delete_consumer_groups([name], request_timeout=ASK_SECONDS)[name].result()
    except KafkaException as error:
        if error.args[0].code() != ClientError.GROUP_ID_NOT_FOUND:
            raise client_error(error.args[0], f"cannot delete group {name} at {bootstrap}") from None


def _offsets(client: AdminClient, name: str) -> list[Any]:
    """The offsets that a group has stored."""
    asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)], request_timeout=ASK_SECONDS)
    return [one for one in asked[name].result().topic_partitions if one.offset >= 0]
