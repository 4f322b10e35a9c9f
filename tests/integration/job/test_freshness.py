"""The histogram of freshness that a job counts."""

import json
from time import time
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.rounds.round_counts import AGE_BUCKETS, read_freshness
from processor.job.kafka.outbox import KafkaOutbox
from processor.values.record import Message

Scene = Any  # conftest's
pytestmark = pytest.mark.plain
HOUR = 3_600_000
"""In milliseconds."""


@pytest.mark.rest
def test_each_published_document_counts_once_by_kafkas_time_of_its_oldest_record(
    scene: Scene, rows: SimpleNamespace
) -> None:
    outbox = KafkaOutbox(scene.settings.bootstrap_servers, {})
    now = int(1000 * time())
    for (entity, key, value), timestamp in (
        (rows.user(0, "ada"), now),
        (rows.star("ada", "old"), now - HOUR),
        (rows.star("ada", "new"), now),
        (rows.user(1, "bob"), now),
        (rows.star("nobody", "old"), now - HOUR),
    ):
        message = Message(
            topic=scene.topic(entity), key=json.dumps(key).encode(), value=json.dumps(value).encode(), headers=()
        )
        outbox.produce(message, 0, timestamp)
    outbox.flush()
    done = scene.run()
    assert done.tally["read"] == 5
    assert read_freshness(done.tally).count == done.published == 2  # ada's and bob's
    assert done.tally[AGE_BUCKETS[-1]] == 1  # ada's
    again = scene.run()
    assert read_freshness(again.tally).count == 0
