"""What every client of Kafka shares: settings, errors, and a first question to the broker.

librdkafka itself tries for ever, and reports its reasons to a callback only. So every program calls `check_access` first, once
for each broker and settings: a wrong setting becomes one line that names the setting.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from time import monotonic
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as ClientError
from confluent_kafka.admin import AdminClient

from processor.environment.settings.kafka import MSK, credentials, for_librdkafka
from processor.environment.settings.resolve import resolve_kafka
from processor.errors import Fenced, KafkaError, SettingError, StatestoreError


def token_source(region: str) -> Callable[[str], tuple[str, float]]:
    """A function that makes a token by the AWS credentials of this machine, with its end in seconds since 1970; librdkafka calls
    it before the last token ends. Raises SettingError without the package."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError:
        raise SettingError(
            "[kafka] sasl.mechanism AWS_MSK_IAM needs a package that is not installed: pip install 'statestore[msk]'"
        ) from None

    def make_token(_: str) -> tuple[str, float]:
        token, milliseconds = MSKAuthTokenProvider.generate_auth_token(region)
        return token, milliseconds / 1000

    return make_token


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


def make_admin(bootstrap: str, extra: Mapping[str, str], **more: Any) -> AdminClient:
    """A client for topics and groups."""
    with setting_errors():
        return AdminClient(settings(bootstrap, extra) | more)


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
    with client_errors(f"cannot read topic {topic} at {bootstrap}"):
        described = consumer.list_topics(topic, timeout=seconds).topics[topic]
    if described.error is not None:
        raise KafkaError(
            f"there is no topic {topic} at {bootstrap}, or it cannot be read ({described.error.str()}): correct its name or the "
            "address; a job creates its topics when it starts"
        )
    return sorted(described.partitions)


def watermarks(consumer: Consumer, topic: str, bootstrap: str, seconds: float = TIMEOUT) -> dict[int, tuple[int, int]]:
    """Where each partition of a topic begins and ends. Raises as `list_partitions`, and KafkaException."""
    partitions = list_partitions(consumer, topic, bootstrap, seconds)
    return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), seconds) for p in partitions}


@contextmanager
def client_errors(what: str, ignored: Collection[int] = ()) -> Iterator[list[int]]:
    """Turns the errors of a client into ours, whose text begins with `what`. Ends the block at an error with one of the `ignored`
    codes, which goes into the list that the block gets."""
    found: list[int] = []
    try:
        yield found
    except KafkaException as error:
        if error.args[0].code() not in ignored:
            raise client_error(error.args[0], what) from None
        found.append(error.args[0].code())


def client_error(error: ClientError, what: str) -> KafkaError | Fenced:
    if error.code() in (ClientError._FENCED, ClientError.PRODUCER_FENCED, ClientError.INVALID_PRODUCER_EPOCH):
        return Fenced(f"{what}: another job took over the publishing; this one must stop ({error.str()})")
    return KafkaError(f"{what}: {error.str()}")


SECONDS = 6.0
PROTOCOL = "security.protocol"
BLAMED = (
    ("current SASL state|PLAINTEXT broker listener", PROTOCOL),
    ("mechanism handshake failed", "sasl.mechanism"),
    ("certificate verify failed", "ssl.ca.pem"),
    ("SSL alert", "ssl.certificate.pem, ssl.key.pem"),
    ("SASL authentication error|OAUTHBEARER token", ""),
    ("SSL handshake failed", PROTOCOL),
)
"""A reason of the client, and the setting to correct; empty: the credentials of the mechanism. Another try ends alike."""


def check_access(bootstrap: str, extra: Mapping[str, str]) -> None:
    """Raises SettingError for a setting of [kafka] that the broker refuses, and KafkaError where no broker answers."""
    _ask(bootstrap, tuple(extra.items()))


@lru_cache
def _ask(bootstrap: str, extra: tuple[tuple[str, str], ...]) -> None:
    reported: list[ClientError] = []
    client = make_admin(bootstrap, dict(extra), error_cb=reported.append)
    end = monotonic() + SECONDS
    while monotonic() < end:
        client.poll(0.1)  # runs the callbacks, also the one that makes tokens
        try:
            client.list_topics(timeout=1)
        except KafkaException:
            if blamed := _blamed(reported, dict(extra)):
                raise blamed from None
        else:
            return
    raise _unreachable(reported, bootstrap)


def _blamed(reported: list[ClientError], kafka: Mapping[str, str]) -> SettingError | None:
    """The error of the first reason that names a wrong setting."""
    for reason in map(_one_line, reported):
        for pattern, name in BLAMED:
            if re.search(pattern, reason):
                return SettingError(f"[kafka] {name or credentials(kafka)}: {reason}")
    return None


def _unreachable(reported: list[ClientError], bootstrap: str) -> StatestoreError:
    closed = [error for error in reported if error.code() == ClientError._ALL_BROKERS_DOWN]
    reasons = [_one_line(error) for error in reported if error not in closed]
    if closed and not reasons:  # the client reports no reason for a connection that the broker closes
        return SettingError(
            f"[kafka] {PROTOCOL}: the broker at {bootstrap} closes each connection: does it expect another {PROTOCOL}?"
        )
    why = reasons[-1] if reasons else f"none within {SECONDS:.0f} s"
    return KafkaError(f"no answer of a broker at {bootstrap} ({why}): correct --bootstrap-servers, or start the broker")


def _one_line(error: ClientError) -> str:
    text = " ".join(error.str().split())
    return text.split(", verify that ssl.ca.location")[0]  # a name that [kafka] does not have
