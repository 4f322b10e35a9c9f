"""The epochs of an entity rise over all topics that it ever had."""

from dataclasses import replace

from processor.engine.protocol.epochs import Incarnation, last_topic, next_epoch, read_epochs
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


def test_a_later_epoch_from_an_earlier_offset_counts_for_the_whole_rest_of_the_partition() -> None:
    epochs = read_epochs([FIRST, boundary("a", 4, "user", from_offset=9), boundary("a", 6, "user", from_offset=2)])
    assert [epochs.of("a", 0, offset) for offset in (1, 2, 8, 9, 100)] == [3, 6, 6, 6, 6]


def test_the_epochs_of_a_topic_name_its_incarnations() -> None:
    epochs = read_epochs([FIRST, boundary("a", 4, "user", topic_id="again")])
    assert epochs.incarnations == {("a", 3): Incarnation("id of a", {}), ("a", 4): Incarnation("again", {})}
    assert epochs.of("a", 0, 0) == 4


def test_an_incarnation_knows_where_its_partitions_ended_when_an_operator_recorded_an_epoch() -> None:
    ended = replace(boundary("a", 4, "user", from_offset=5), at_end=True)
    moved = boundary("a", 6, "user", from_offset=2)
    assert read_epochs([FIRST, ended, moved]).incarnations["a", 3] == Incarnation("id of a", {0: [(4, 5)]})
