"""When the record of a row came. A row keeps the position of its record, and no time, so Kafka must still hold the record."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice

from processor.engine.protocol.epochs import read_epochs
from processor.environment.settings.settings import Settings
from processor.tools.inspect.rows import Origin
from registry.model import EpochBoundary

MOST_ASKED = 20
"""Records that a verb asks Kafka for: each is a request of its own."""


def add_time(parser: argparse.ArgumentParser) -> None:
    """Adds the flag `--time`."""
    text = f"ask Kafka when the records of the first {MOST_ASKED} rows came"
    parser.add_argument("--time", action="store_true", help=text)


def arrivals(
    settings: Settings, origins: Iterable[Origin], boundaries: Sequence[EpochBoundary]
) -> Mapping[Origin, str]:
    """For the first of these records when each came, by Kafka's timestamp; or why Kafka does not say."""
    from processor.job.kafka.reader import read_record

    epochs = read_epochs(boundaries)
    found: dict[Origin, str] = {}
    for origin in islice(dict.fromkeys(origins), MOST_ASKED):
        place = (origin.topic, origin.partition, origin.offset)
        if epochs.of(*place) != origin.epoch:
            found[origin] = "unknown: the topic was created again since, or has other offsets"
        elif (record := read_record(settings.bootstrap_servers, dict(settings.kafka), *place)) is None:
            found[origin] = "unknown: Kafka does not hold the record any more"
        else:
            found[origin] = datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(timespec="milliseconds")
    return found
