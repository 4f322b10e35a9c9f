"""Records too large for the dead letter topic: the letter keeps a part, and a replay reads the whole record from its source."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from processor.engine.rounds.follow_up_stages import CUT
from processor.errors import KafkaError
from processor.values.record import MAX_MESSAGE_BYTES

Scene = Any  # conftest's
pytestmark = pytest.mark.plain
LARGE = list(range(30_000))
"""A note of about 200 KB, which is no text: wrong by the first definitions, right by the next."""


def broker(scene: Scene) -> AdminClient:
    return AdminClient({"bootstrap.servers": scene.settings.bootstrap_servers})


def limit_rejects(scene: Scene, size: int) -> None:
    topic = NewTopic(scene.settings.dead_letter_topic, 1, config={"max.message.bytes": str(size)})
    admin = broker(scene)  # its futures end with it
    admin.create_topics([topic])[topic.topic].result(300)


@pytest.mark.rest
def test_a_replay_reads_the_whole_record_from_the_source(scene: Scene, rows: SimpleNamespace) -> None:
    limit_rejects(scene, 50_000)
    scene.produce(rows.user(1, "ada"), rows.star("ada", "large", LARGE), partition=0)
    scene.produce(*(("user", {"id": n}, b"{" * 900) for n in range(2, 92)), partition=0)  # more than a batch holds
    assert scene.run().tally["dead letters"] == 91
    (kept,) = [letter for letter in scene.rejected() if letter[0] == scene.topic("star")]
    whole = json.dumps({"who": "ada", "repo": "large", "note": LARGE}).encode()
    assert 40_000 < len(kept[4]) < 50_000
    assert whole.startswith(kept[4])
    assert kept[:3] == (scene.topic("star"), 0, 0)

    scene.widen()
    assert (0, "applied") in scene.replay()
    assert scene.documents()['{"id":1}']["stars"] == [{"repo": "large", "note": LARGE}]
    assert scene.documents() == scene.truth()


@pytest.mark.rest
def test_a_record_as_large_as_a_message_may_be_does_not_stop_the_stream(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(("user", {"id": 1}, b"{" * (MAX_MESSAGE_BYTES - 120)), rows.user(2, "bob"), partition=0)
    done = scene.run()
    assert done.tally["dead letters"] == done.tally["applied"] == 1
    (kept,) = scene.rejected()
    assert len(kept[4]) > MAX_MESSAGE_BYTES - 1_000


@pytest.mark.rest
def test_a_replay_says_when_the_whole_record_is_gone(scene: Scene, rows: SimpleNamespace) -> None:
    limit_rejects(scene, 50_000)
    scene.produce(rows.star("ada", "large", LARGE), rows.star("ada", "small"), partition=0)
    scene.run()
    scene.widen()
    topic, admin = scene.topic("star"), broker(scene)
    for future in admin.delete_records([TopicPartition(topic, 0, 1)]).values():
        future.result(300)
    assert scene.replay() == [(0, "refused")]
    assert "no longer holds the whole record" in CUT


def test_a_topic_that_takes_no_dead_letter_stops_the_job_at_its_start(scene: Scene) -> None:
    limit_rejects(scene, 1_000)
    with pytest.raises(KafkaError, match=r"takes messages of at most 1000 bytes.*set its max.message.bytes"):
        scene.run()
