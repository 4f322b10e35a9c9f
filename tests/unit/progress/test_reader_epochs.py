"""The epochs of an entity rise over all topics that it ever had."""

from processor.progress.epochs import last_topic, next_epoch, read_epochs
from registry.model import EpochBoundary


def boundary(topic: str, epoch: int, entity: str, *, topic_id: str = "", from_offset: int = 0) -> EpochBoundary:
    return EpochBoundary(
        topic=topic,
        topic_id=topic_id or f"id of {topic}",
        partition=0,
        from_offset=from_offset,
        epoch=epoch,
        entity=entity,
    )


FIRST = boundary("a", 3, "user")
MOVED = boundary("b", 4, "user")


def test_the_last_topic_of_an_entity_is_that_of_its_highest_epoch() -> None:
    assert last_topic([], "user") is None
    assert last_topic([FIRST], "star") is None
    assert last_topic([FIRST, MOVED], "user") == "b"
    assert last_topic([MOVED, FIRST, boundary("a", 5, "user")], "user") == "a"


def test_the_next_epoch_is_above_those_of_the_topic_and_of_its_reader() -> None:
    assert next_epoch([], "user", "a") == 1
    assert next_epoch([FIRST], "user", "b") == 4
    assert next_epoch([boundary("b", 9, "star"), FIRST], "user", "b") == 10
    assert next_epoch([boundary("c", 9, "star"), FIRST], "user", "b") == 4


def test_a_topic_that_comes_back_has_its_new_epoch_from_its_beginning() -> None:
    assert read_epochs([FIRST, MOVED, boundary("a", 5, "user")]).of("a", 0, 0) == 5
