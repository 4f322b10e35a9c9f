"""Settings and errors that every client of Kafka shares."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import KafkaError as ClientError

from processor.environment.settings.kafka import MSK, for_librdkafka
from processor.environment.settings.resolve import resolve_kafka
from processor.errors import Fenced, KafkaError
from processor.job.kafka.msk_token import token_source

LOG = logging.getLogger("statestore.kafka")
LOG.addHandler(logging.NullHandler())  # for messages that are no errors; silent unless a program adds a handler
TIMEOUT = 60.0
"""Seconds within which the broker must answer, or acknowledge what was sent."""


def settings(bootstrap: str, extra: Mapping[str, str]) -> dict[str, Any]:
    """A client's settings; `extra`: those of [kafka]. Raises SettingError for a reference to nothing."""
    kafka = dict(resolve_kafka(extra.items()))
    made = {"bootstrap.servers": bootstrap, "logger": LOG, **for_librdkafka(kafka)}
    if kafka.get("sasl.mechanism") == MSK:
        made["oauth_cb"] = token_source(kafka["aws.region"])
    return made


@contextmanager
def setting_errors() -> Iterator[None]:
    """Turns the errors of a client that cannot be made into ours: an unknown or wrong setting, or no address."""
    try:
        yield
    except KafkaException as error:
        raise KafkaError(
            f"Kafka's client refuses its settings: {error.args[0].str()}; correct [kafka] in the settings file, or "
            "--bootstrap-servers"
        ) from None
    except (TypeError, ValueError) as error:
        raise KafkaError(
            f"Kafka's client refuses its settings: {error}; correct [kafka] in the settings file"
        ) from None


def make_consumer(bootstrap: str, extra: Mapping[str, str], isolation: str = "read_committed", **more: str) -> Consumer:
    """A consumer that stores no offsets. `more`: librdkafka's own settings, with `_` in place of `.`."""
    own = {
        "group.id": "statestore-reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": isolation,
    }
    with setting_errors():
        return Consumer(
            settings(bootstrap, extra) | own | {name.replace("_", "."): value for name, value in more.items()}
        )


def list_partitions(consumer: Consumer, topic: str, bootstrap: str, seconds: float = TIMEOUT) -> list[int]:
    """The partitions of a topic. `seconds`: the longest wait. Raises KafkaError if there is no such topic, or no answer."""
    try:
        described = consumer.list_topics(topic, timeout=seconds).topics[topic]
    except KafkaException as error:
        raise client_error(error.args[0], f"cannot read topic {topic} at {bootstrap}") from None
    if described.error is not None:
        raise KafkaError(
            f"there is no topic {topic} at {bootstrap}, or it cannot be read ({described.error.str()}): correct its name or the "
            "address; a job creates its topics when it starts"
        )
    return sorted(described.partitions)


def client_error(error: ClientError, what: str) -> KafkaError | Fenced:
    if error.code() in (ClientError._FENCED, ClientError.PRODUCER_FENCED, ClientError.INVALID_PRODUCER_EPOCH):
        return Fenced(f"{what}: another job took over the publishing; this one must stop ({error.str()})")
    return KafkaError(f"{what}: {error.str()}")
