"""`statestore epoch` says of a boundary that its partition ended there only where it asked the broker for the end."""

from types import SimpleNamespace
from typing import Any

from processor.job.kafka.admin import TopicDescription
from processor.job.run.topics import record_boundary
from registry.model import EpochBoundary


def recorded(known: list[EpochBoundary], *, partitions: int) -> list[tuple[int, int, bool]]:
    """Partition, offset and `at_end` of the boundaries of topic `users`. The entity `user` reads it. Each partition ends at 7."""
    entities = (SimpleNamespace(name="user", topic="users"),)
    registry: Any = SimpleNamespace(
        snapshot=lambda: SimpleNamespace(entities=entities),
        epochs=lambda topics, entities: known,
        record_epochs=lambda new, **signature: None,
    )
    admin: Any = SimpleNamespace(
        topics=lambda names: {"users": TopicDescription("id", partitions)},
        ends=lambda name: dict.fromkeys(range(partitions), 7),
    )
    new = record_boundary(registry, admin, "users", who="a test", why="a new boundary")
    return [(b.partition, b.from_offset, b.at_end) for b in new]


def boundary(topic: str, topic_id: str, epoch: int) -> EpochBoundary:
    return EpochBoundary(topic=topic, topic_id=topic_id, partition=0, from_offset=0, epoch=epoch, entity="user")


def test_an_entity_that_goes_on_with_its_topic_has_its_next_epoch_from_the_ends_of_the_known_partitions() -> None:
    assert recorded([boundary("users", "id", 1)], partitions=2) == [(0, 7, True), (1, 0, False)]


def test_a_topic_that_was_created_again_or_that_the_entity_comes_back_to_begins_at_no_end() -> None:
    assert recorded([boundary("users", "gone", 1)], partitions=1) == [(0, 0, False)]
    moved = [boundary("users", "id", 1), boundary("people", "other", 2)]
    assert recorded(moved, partitions=1) == [(0, 0, False)]
