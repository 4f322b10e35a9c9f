"""Topics and a broker that change while the job runs: the job continues, or ends with one line that names the command to give."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic

from processor.engine.plan.planning import requirements_of
from processor.environment.programs.servers import start_kafka
from processor.errors import BoundaryError, CheckpointError
from processor.language.definitions.load import load
from registry.edits import operations
from registry.edits.edit import Signature
from tests.integration.job.profile_definitions import profile_definitions
from tests.integration.job.running_job import (
    RunningJob,
    broker,
    configure,
    remove_records,
    running,
    wait_until,
)

Scene = Any  # conftest's
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark's own, of each collect
]


def has_caught_up(scene: Scene, job: RunningJob) -> None:
    wait_until(lambda: bool(scene.documents() == scene.truth()), job)


def test_a_topic_that_is_deleted_under_the_job_ends_it_with_the_way_out(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"))
    topic = scene.topic("user")
    with running(scene) as job:
        has_caught_up(scene, job)
        broker(scene).delete_topics([topic])[topic].result(300)
        failure = job.failure()
    assert isinstance(failure, BoundaryError)
    assert (
        f"topic {topic} is gone, and entity user has read it: create it again, run `statestore epoch {topic}`"
        in str(failure)
    )


def test_partitions_that_are_added_under_the_job_end_it_with_the_way_out(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"))
    topic = scene.topic("user")
    with running(scene) as job:
        has_caught_up(scene, job)
        broker(scene).create_partitions([NewPartitions(topic, 3)])[topic].result(300)
        scene.produce(rows.user(2, "bob"), partition=2)
        failure = job.failure()
    assert isinstance(failure, BoundaryError)
    assert (
        f"topic {topic} has 3 partitions, recorded 2: pause its producer, then run `statestore epoch {topic}`"
        in str(failure)
    )


def test_a_topic_that_is_created_again_under_the_job_ends_it_with_the_way_out(
    scene: Scene, rows: SimpleNamespace
) -> None:
    scene.produce(*(rows.user(1, f"ada{n}") for n in range(5)), partition=0)
    topic, admin = scene.topic("user"), broker(scene)
    with running(scene) as job:
        has_caught_up(scene, job)
        with job.job.turn:  # between two batches
            admin.delete_topics([topic])[topic].result(300)
            wait_until(lambda: _created(admin, topic))
        failure = job.failure()
    assert isinstance(failure, BoundaryError)
    assert f"topic {topic} was deleted and created again" in str(failure)
    assert f"run `statestore epoch {topic}`, and start again with a new checkpoint" in str(failure)


def _created(admin: Any, topic: str) -> bool:
    try:
        admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result(300)
    except Exception:  # the broker has not yet forgotten the former topic
        return False
    return True


def test_an_entity_moves_to_another_topic_and_back_under_the_job(scene: Scene, rows: SimpleNamespace) -> None:
    first, second = scene.topic("user"), f"{scene.settings.job}.second"
    scene.produce(rows.user(1, "ada"), partition=0)
    scene.admin().ensure([second], partitions=2, compacted=False)

    def name() -> str | None:
        return (scene.documents().get('{"id":1}') or {}).get("name")

    def move(topic: str) -> None:
        definitions = profile_definitions(scene.settings.job)
        entities = json.loads(definitions["entities.yaml"])
        entities["user"]["topic"] = topic
        required = requirements_of(load(definitions | {"entities.yaml": json.dumps(entities)}))
        scene.registry.apply(required, who="a test", why="its source moves")

    def epochs(topic: str) -> int:
        return len(scene.registry.epochs([topic]))

    with running(scene) as job:
        wait_until(lambda: name() == "ada", job)
        move(second)
        wait_until(lambda: job.job.moves.former == {"user": first}, job)
        scene.produce(rows.user(1, "written to the former topic"), partition=0)
        wait_until(lambda: name() == "written to the former topic", job)
        assert not epochs(second)
        scene.plan = scene.plan.with_topics({"user": second})
        scene.produce(rows.user(1, "second"), partition=1)
        wait_until(lambda: name() == "second", job)
        move(first)
        wait_until(lambda: job.job.moves.former == {"user": second}, job)
        scene.produce(rows.user(1, "second still"), partition=1)
        wait_until(lambda: name() == "second still", job)
        scene.plan = scene.plan.with_topics({"user": first})
        scene.produce(rows.user(1, "first again"), partition=0)
        wait_until(lambda: name() == "first again", job)
    assert scene.run().tally["read"] == 0
    assert not job.failures


def test_records_that_retention_removes_under_the_job_end_it_and_the_line_names_the_stale_rows(
    scene: Scene, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has planned a batch of records that the topic no longer has when its tasks read them."""
    scene.produce(*(rows.user(n, f"user{n}") for n in range(5)), partition=0)
    topic = scene.topic("user")
    with running(scene) as job:
        has_caught_up(scene, job)
        process = type(job.job)._process

        def removed_before(*given: Any) -> None:
            remove_records(scene, topic, 0, 7)
            process(*given)

        monkeypatch.setattr(type(job.job), "_process", removed_before)
        scene.produce(*(rows.user(n, f"later{n}") for n in range(3)), partition=0)
        failure = job.failure()
    assert isinstance(failure, CheckpointError)
    lines = str(failure)
    assert f"topic {topic}, partition 0: the job reads on at offset 5, and the partition begins at 7" in lines
    assert "Rows of entity user that changed in them are stale" in lines
    assert "run with another --checkpoint" in lines
    assert "\n" not in lines


def test_a_paused_topic_that_loses_records_is_refused_when_it_is_resumed(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"), *(rows.star("ada", f"r{n}") for n in range(3)), partition=0)
    scene.run()
    star, operator = scene.topic("star"), {"who": "a test", "why": "a source writes nonsense"}
    scene.registry.operate(Signature(**operator), operations.pause_topic, star, paused=True)
    scene.produce(*(rows.star("ada", f"later{n}") for n in range(3)), partition=0)
    scene.run()
    remove_records(scene, star, 0, 5)
    scene.run()  # as long as the topic is paused, its loss stops nothing
    scene.registry.operate(Signature(**operator), operations.pause_topic, star, paused=False)
    with pytest.raises(
        CheckpointError, match=rf"topic {star}, partition 0: .* offset 3, .* begins at 5: .* entity star"
    ):
        scene.run()


def test_records_that_compaction_removed_are_no_loss(scene: Scene, rows: SimpleNamespace) -> None:
    topic = scene.topic("user")
    config = {"cleanup_policy": "compact", "segment_ms": "100", "min_cleanable_dirty_ratio": "0.01"}
    configure(scene, topic, **config, max_compaction_lag_ms="100", delete_retention_ms="86400000")
    scene.produce(*(rows.user(1, f"ada{n}") for n in range(20)), rows.user(2, "bob"), partition=0)
    scene.produce(rows.gone(rows.user(2, "")), partition=0)

    def is_compacted() -> bool:
        scene.produce(rows.user(3, "cyd"), partition=0)  # the broker never compacts the last segment
        return len(_offsets(scene, topic)) < 12

    wait_until(is_compacted)
    offsets = _offsets(scene, topic)
    assert offsets != list(range(offsets[0], offsets[-1] + 1))
    done = scene.run(batch_size=3)
    assert 0 < done.tally["read"] <= len(offsets)  # the broker may have gone on compacting
    assert scene.documents() == scene.truth()


def test_batch_size_limits_a_backlog_over_all_topics_together(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(*(rows.user(n, f"u{n}") for n in range(20)), *(rows.star(f"u{n % 20}", f"r{n}") for n in range(60)))
    done = scene.run(batch_size=16, catch_up_records=0)
    sizes = [batch["read"] for batch in done.batches]
    assert max(sizes) <= 16
    assert sum(sizes) == 80
    assert scene.documents() == scene.truth()


def _offsets(scene: Scene, topic: str) -> list[int]:
    """The offsets of the records that partition 0 still has."""
    consumer = Consumer(
        {"bootstrap.servers": scene.settings.bootstrap_servers, "group.id": "a test", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(300)) is not None and message.error() is None:
        found.append(int(message.offset() or 0))
    consumer.close()
    return found


def test_a_job_goes_on_after_its_broker_was_killed_and_started_again(
    new_scene: Callable[..., Scene], rows: SimpleNamespace, tmp_path: Path
) -> None:
    first = start_kafka(tmp_path)
    port = int(first.endpoint.rpartition(":")[2])
    parts = [first]
    try:
        scene = new_scene(bootstrap_servers=first.endpoint)
        scene.produce(rows.user(1, "ada"), rows.star("ada", "one"))
        with running(scene) as job:
            has_caught_up(scene, job)
            os.kill(first.process.pid, signal.SIGKILL)
            wait_until(lambda: not first.alive())
            parts.append(start_kafka(tmp_path, port=port))
            assert parts[-1].endpoint == first.endpoint
            scene.produce(rows.user(2, "bob"), rows.star("ada", "two"))
            has_caught_up(scene, job)
        assert job.failures == []
    finally:
        for part in parts:
            part.stop()
