"""Asks the broker for an answer before anything else does: a wrong setting becomes one line that names the setting.

librdkafka itself tries for ever, and reports the reasons to a callback only. So every program asks here first, once for each
broker and settings: after SECONDS without an answer the settings count as wrong.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from time import monotonic

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from processor.environment.settings.kafka import credentials
from processor.errors import KafkaError, SettingError, StatestoreError
from processor.job.kafka.client import setting_errors, settings

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
    with setting_errors():
        client = AdminClient(settings(bootstrap, dict(extra)) | {"error_cb": reported.append})
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
