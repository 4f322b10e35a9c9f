"""`statestore epoch` says of a boundary that its partition ended there only where it asked the broker for the end. Entities that
share a topic have the same boundaries of it."""

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.protocol.epochs import begin_of_stay, read_epochs, reader_of
from processor.errors import BoundaryError
from processor.job.kafka.admin import TopicDescription
from processor.job.run.topics import new_boundaries, record_boundary
from registry.model import EpochBoundary

ENDS = {"users": 7, "people": 9}
IDS = {"users": "id", "people": "other"}


def recorded(known: list[EpochBoundary], *, partitions: int, topics: Iterable[str] = ENDS) -> list[EpochBoundary]:
    """The boundaries that `statestore epoch users` records. The entity `user` has the topic `users` now. Each partition begins at
    2, and ends where `ENDS` says. `topics`: those that exist."""
    entities = (SimpleNamespace(name="user", topic="users"),)
    present = {name: TopicDescription(IDS[name], partitions) for name in topics}
    registry: Any = SimpleNamespace(
        snapshot=lambda: SimpleNamespace(entities=entities),
        epochs=lambda topics, entities: known,
        record_epochs=lambda new, **signature: None,
    )
    admin: Any = SimpleNamespace(
        topics=lambda names: {name: one for name, one in present.items() if name in names},
        ends=lambda name: dict.fromkeys(range(partitions), ENDS[name]),
        watermarks=lambda name: dict.fromkeys(range(partitions), (2, ENDS[name])),
    )
    return record_boundary(registry, admin, "users", who="a test", why="a new boundary")


def places(boundaries: list[EpochBoundary]) -> list[tuple[int, int, bool]]:
    """Partition, offset and `at_end` of each."""
    return [(b.partition, b.from_offset, b.at_end) for b in boundaries]


def boundary(topic: str, topic_id: str, epoch: int, from_offset: int = 0) -> EpochBoundary:
    return EpochBoundary(
        topic=topic, topic_id=topic_id, partition=0, from_offset=from_offset, epoch=epoch, entity="user"
    )


def test_an_entity_that_goes_on_with_its_topic_has_its_next_epoch_from_the_ends_of_the_known_partitions() -> None:
    assert places(recorded([boundary("users", "id", 1)], partitions=2)) == [(0, 7, True), (1, 0, False)]


def test_a_topic_that_was_created_again_or_that_nobody_has_read_begins_at_no_end() -> None:
    assert places(recorded([boundary("users", "gone", 1)], partitions=1)) == [(0, 0, False)]
    assert places(recorded([], partitions=1)) == [(0, 0, False)]


def test_an_entity_that_has_yet_to_leave_a_topic_leaves_it_at_its_present_end() -> None:
    """When it comes back, it reads no earlier record again."""
    assert recorded([boundary("people", "other", 2)], partitions=1) == [
        boundary("people", "other", 3, from_offset=9),
        boundary("users", "id", 4),
    ]


def test_an_entity_that_comes_back_to_a_topic_continues_where_it_left_it() -> None:
    moved = [boundary("users", "id", 1), boundary("users", "id", 2, from_offset=5), boundary("people", "other", 3)]
    assert recorded(moved, partitions=1) == [
        boundary("people", "other", 4, from_offset=9),
        boundary("users", "id", 5, from_offset=5),
    ]


def test_a_former_topic_that_is_gone_or_that_was_created_again_has_no_place_where_the_entity_left_it() -> None:
    assert recorded([boundary("people", "other", 2)], partitions=1, topics=["users"]) == [boundary("users", "id", 3)]
    assert recorded([boundary("people", "gone", 2)], partitions=1) == [boundary("users", "id", 3)]


APP = TopicDescription("id", 2)
BOTH = reader_of(("user", "order"))


def kept(boundaries: list[EpochBoundary]) -> set[tuple[str, int, int, int]]:
    """Entity, partition, offset and epoch of each boundary."""
    return {(b.entity, b.partition, b.from_offset, b.epoch) for b in boundaries}


def test_entities_that_share_a_topic_begin_with_one_epoch() -> None:
    new = new_boundaries("app", APP, BOTH, [])
    assert kept(new) == {("order", 0, 0, 1), ("order", 1, 0, 1), ("user", 0, 0, 1), ("user", 1, 0, 1)}
    assert new_boundaries("app", APP, BOTH, new) == []


def test_an_entity_that_comes_to_a_topic_takes_over_its_epochs_so_no_record_gets_another() -> None:
    known = new_boundaries("app", TopicDescription("id", 1), "user", [])
    known += [replace(one, from_offset=7, epoch=2, at_end=True) for one in known]
    known += [replace(known[0], partition=1, epoch=2), replace(known[0], from_offset=7, epoch=3)]
    new = new_boundaries("app", APP, BOTH, known)
    assert kept(new) == {("order", 0, 0, 1), ("order", 0, 7, 3), ("order", 1, 0, 2)}
    assert read_epochs([*known, *new]) == read_epochs(known)
    assert new_boundaries("app", APP, BOTH, [*known, *new]) == []
    assert begin_of_stay(BOTH, "app", [*known, *new]) == {0: 0, 1: 0}


def test_an_entity_with_rows_of_another_topic_comes_to_no_shared_one() -> None:
    known = [*new_boundaries("app", APP, "user", []), *new_boundaries("orders", APP, "order", [])]
    with pytest.raises(BoundaryError, match="entity order has read another topic than app, which order, user share"):
        new_boundaries("app", APP, BOTH, known)


def test_a_shared_topic_that_was_created_again_is_refused_as_any_other() -> None:
    known = new_boundaries("app", APP, BOTH, [])
    with pytest.raises(BoundaryError, match="topic app was deleted and created again"):
        new_boundaries("app", TopicDescription("other", 2), BOTH, known)


def test_a_shared_topic_with_more_partitions_than_recorded_is_refused() -> None:
    known = new_boundaries("app", APP, BOTH, [])
    with pytest.raises(BoundaryError, match="topic app has 3 partitions, recorded 2"):
        new_boundaries("app", TopicDescription("id", 3), BOTH, known)


def test_a_new_epoch_of_a_shared_topic_is_that_of_all_its_entities() -> None:
    known = new_boundaries("app", APP, BOTH, [])
    entities = tuple(SimpleNamespace(name=name, topic="app") for name in ("user", "order"))
    registry: Any = SimpleNamespace(
        snapshot=lambda: SimpleNamespace(entities=entities),
        epochs=lambda topics, entities: known,
        record_epochs=lambda new, **signature: None,
    )
    admin: Any = SimpleNamespace(topics=lambda names: {"app": APP}, ends=lambda name: {0: 5, 1: 6})
    new = record_boundary(registry, admin, "app", who="a test", why="a new boundary")
    assert kept(new) == {("user", 0, 5, 2), ("user", 1, 6, 2), ("order", 0, 5, 2), ("order", 1, 6, 2)}
    assert all(one.at_end for one in new)
