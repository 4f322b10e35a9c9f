"""Topics that change under a job: it stops before it writes, says what to do, and continues right when that was done."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from processor.engine.protocol.walks import PARTITION as WALKS
from processor.errors import BoundaryError
from processor.job.run.topics import record_boundary
from tests.integration.job.plain_client import plain_client
from tests.support.sampled import sampled

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect

ADA = '{"id":1}'


def broker(scene: Scene) -> AdminClient:
    return AdminClient({"bootstrap.servers": scene.settings.bootstrap_servers})


@contextmanager
def nothing_changes(scene: Scene, command: str) -> Iterator[None]:
    """The block's run is stopped with the command to give, and wrote and published nothing."""
    with scene.opened() as job:
        table = _scan(job)
    published = scene.published()
    with pytest.raises(BoundaryError, match=command):
        yield
    assert scene.published() == published
    with scene.opened() as job:
        assert _scan(job) == table


@pytest.mark.rest
def test_added_partitions_stop_the_job_until_their_boundary_is_recorded(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(*(rows.user(i, f"user{i}") for i in range(2, 10)), rows.user(1, "old"), partition=1)
    scene.produce(rows.user(10, "user10"), partition=0)
    scene.run()
    topic = scene.topic("user")
    admin = broker(scene)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(300)
    scene.produce(rows.user(1, "new"), partition=2)  # at offset 0, and it was at offset 8

    with nothing_changes(
        scene, f"has 3 partitions, recorded 2: pause its producer, then run `statestore epoch {topic}`"
    ):
        scene.run()

    boundaries = record_boundary(scene.registry, scene.admin(), topic, who="a test", why="a new boundary")
    assert [(b.partition, b.from_offset, b.epoch) for b in boundaries] == [(0, 1, 2), (1, 9, 2), (2, 0, 2)]
    scene.run()
    assert scene.documents()[ADA]["name"] == "new"
    scene.produce(rows.user(1, "newer"), partition=2)
    scene.produce(rows.user(2, "other"), partition=1)
    scene.run()
    assert scene.documents()[ADA]["name"] == "newer"
    assert scene.documents()['{"id":2}']["name"] == "other"

    scene.lose_checkpoint()  # the epochs are stored: read again, each record has the one that it had
    scene.run()
    assert scene.documents()[ADA]["name"] == "newer"
    assert scene.documents()['{"id":2}']["name"] == "other"


@pytest.mark.rest
def test_a_boundary_can_be_recorded_while_a_partition_is_empty(scene: Scene, rows: SimpleNamespace) -> None:
    """Keys may move to that partition, so its epoch has to rise as well."""
    scene.produce(*(rows.user(i, f"user{i}") for i in range(1, 4)), partition=1)
    scene.run()
    topic = scene.topic("user")
    admin = broker(scene)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(300)
    boundaries = record_boundary(scene.registry, scene.admin(), topic, who="a test", why="a new boundary")
    assert [(b.partition, b.from_offset, b.epoch) for b in boundaries] == [(0, 0, 2), (1, 3, 2), (2, 0, 2)]
    scene.produce(rows.user(3, "moved"), partition=0)
    scene.run()
    assert scene.documents()['{"id":3}']["name"] == "moved"


@pytest.mark.rest
@pytest.mark.parametrize("records", sampled([1, 9], 9))
def test_a_topic_that_was_created_again_stops_the_job_until_its_boundary_is_recorded(
    scene: Scene, rows: SimpleNamespace, records: int
) -> None:
    """Whether the new topic has fewer records than the checkpoint has counted, or more."""
    scene.produce(*(rows.user(1, f"old{i}") for i in range(4)), partition=0)
    scene.run()
    topic = scene.topic("user")
    recreate(scene, topic)
    scene.produce(*(rows.user(1, f"new{i}") for i in range(records)), partition=0)

    with nothing_changes(
        scene, f"was deleted and created again .*: pause its producer, then run `statestore epoch {topic}`"
    ):
        scene.run()

    boundaries = record_boundary(scene.registry, scene.admin(), topic, who="a test", why="a new boundary")
    assert [(b.partition, b.from_offset, b.epoch) for b in boundaries] == [(0, 0, 2), (1, 0, 2)]
    scene.lose_checkpoint()  # it counts offsets of the topic that is gone
    scene.run()
    assert scene.documents()[ADA]["name"] == f"new{records - 1}"


@pytest.mark.rest
def test_a_topic_that_is_gone_stops_the_job_with_the_way_out(scene: Scene, rows: SimpleNamespace) -> None:
    scene.produce(rows.user(1, "ada"), partition=0)
    scene.run()
    topic = scene.topic("user")
    admin = broker(scene)
    admin.delete_topics([topic])[topic].result(300)
    with nothing_changes(scene, f"topic {topic} is gone, .* create it again, run `statestore epoch {topic}`"):
        scene.run()


def recreate(scene: Scene, topic: str) -> None:
    """Deletes the topic and creates it again, once the broker has forgotten it."""
    admin = broker(scene)
    admin.delete_topics([topic])[topic].result(300)
    deadline = monotonic() + 300
    while True:
        try:
            admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result(300)
        except Exception:
            if monotonic() > deadline:
                raise
            sleep(0.1)
        else:
            return


def _scan(job: Any) -> list[Any]:
    """The items of the table, without the walks: every run takes these over at its start."""
    settings = job.driver.settings
    items = plain_client(settings).scan(TableName=settings.table)["Items"]
    return sorted((item for item in items if item["PK"]["S"] != WALKS), key=str)
