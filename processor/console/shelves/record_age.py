"""The age of a record of a source topic: the table keeps positions and no times, so the broker says it."""

from collections.abc import Mapping
from time import time
from typing import Any

from processor.errors import KafkaError
from processor.kafka.reader import read_record
from processor.settings.settings import Settings
from processor.wording.durations import duration_text


def record_age(settings: Settings, origin: Mapping[str, Any]) -> str:
    """The age of the record at this position, as its topic dates it; else why it is unknown."""
    if not settings.bootstrap_servers:
        return "unknown: give --bootstrap-servers"
    try:
        found = read_record(
            settings.bootstrap_servers, dict(settings.kafka), origin["topic"], origin["partition"], origin["offset"]
        )
    except KafkaError as error:
        return f"unknown: {error}"
    if found is None:
        return "unknown: the topic has no such record any more"
    return duration_text(time() - found.timestamp / 1000)
