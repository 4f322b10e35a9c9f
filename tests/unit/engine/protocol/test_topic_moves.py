"""When an entity leaves its topic for another one, and where its epochs begin then."""

from processor.engine.protocol.epochs import (
    TopicEnds,
    begin_of_stay,
    due_moves,
    former_topics,
    is_read,
    last_topic,
    move_boundaries,
    move_lines,
    read_epochs,
)
from registry.model import EpochBoundary

TOPICS = {"user": "b", "star": "stars"}


def boundary(topic: str, epoch: int, entity: str, from_offset: int = 0) -> EpochBoundary:
    return EpochBoundary(
        topic=topic, topic_id=f"id of {topic}", partition=0, from_offset=from_offset, epoch=epoch, entity=entity
    )


def ends(**topics: int) -> dict[str, TopicEnds]:
    """The topics of a broker, each with one partition that ends there."""
    return {topic: TopicEnds(f"id of {topic}", {0: (0, end)}) for topic, end in topics.items()}


READ = [boundary("a", 1, "user"), boundary("stars", 1, "star")]


def moved(*topics: tuple[str, str, int]) -> list[EpochBoundary]:
    """The boundaries of a user that moved: from a topic, to a topic, at an offset."""
    boundaries = list(READ)
    for former, topic, end in topics:
        broker = ends(**{former: end, topic: 1})
        boundaries += move_boundaries("user", former, topic, {(former, 0): end}, broker, boundaries)
    return boundaries


def test_an_entity_with_another_topic_than_it_read_last_has_a_former_one() -> None:
    assert former_topics(TOPICS, READ) == {"user": "a"}
    assert former_topics(TOPICS, []) == {}
    assert former_topics(TOPICS, moved(("a", "b", 5))) == {}


def test_an_operator_reads_what_a_move_waits_for() -> None:
    (line,) = move_lines(TOPICS, READ)
    assert line.startswith("entity user moves from topic a to b: once b has a new record, the job reads a to its end")
    assert "`statestore epoch b` gives up the rest of a" in line
    assert list(move_lines(TOPICS, moved(("a", "b", 5)))) == []


def test_an_entity_moves_when_its_former_topic_is_read_and_its_next_one_has_a_record() -> None:
    former, at = {"user": "a"}, {("a", 0): 5}
    assert due_moves(former, TOPICS, at, ends(a=5, b=1), READ) == {"user"}
    assert due_moves(former, TOPICS, at, ends(a=6, b=1), READ) == frozenset()
    assert due_moves(former, TOPICS, at, ends(a=5, b=0), READ) == frozenset()
    assert due_moves(former, TOPICS, at, ends(a=5), READ) == frozenset()
    assert due_moves(former, TOPICS, {}, ends(a=5, b=1), READ) == frozenset()


def test_a_topic_to_which_an_entity_comes_back_must_have_a_record_behind_the_place_where_the_entity_left_it() -> None:
    former, boundaries = {"user": "b"}, moved(("a", "b", 5))
    at = {("b", 0): 3}
    assert due_moves(former, {"user": "a"}, at, ends(a=5, b=3), boundaries) == frozenset()
    assert due_moves(former, {"user": "a"}, at, ends(a=6, b=3), boundaries) == {"user"}


def test_entities_that_swap_their_topics_move_together_and_others_wait_until_their_topic_is_free() -> None:
    read = [boundary("a", 1, "user"), boundary("b", 1, "guest")]
    former, topics = {"user": "a", "guest": "b"}, {"user": "b", "guest": "a"}
    assert due_moves(former, topics, {("a", 0): 5, ("b", 0): 4}, ends(a=5, b=4), read) == {"user", "guest"}
    assert due_moves(former, topics, {("a", 0): 5, ("b", 0): 3}, ends(a=5, b=4), read) == frozenset()


def test_epochs_rise_over_the_moves_and_a_record_never_gets_another_one() -> None:
    first, there, back = moved(), moved(("a", "b", 5)), moved(("a", "b", 5), ("b", "a", 3))
    for boundaries in (first, there, back):
        assert {read_epochs(boundaries).of("a", 0, offset) for offset in range(5)} == {1}
    epochs = read_epochs(there)
    assert epochs.of("a", 0, 4) < epochs.of("b", 0, 0)
    again = read_epochs(back)
    assert again.of("b", 0, 2) == epochs.of("b", 0, 2) < again.of("a", 0, 5)
    assert [last_topic(boundaries, "user") for boundaries in (first, there, back)] == ["a", "b", "a"]


def test_a_stay_begins_where_the_entity_came_to_the_topic() -> None:
    assert begin_of_stay("user", "a", READ) == {0: 0}
    assert begin_of_stay("user", "b", moved(("a", "b", 5))) == {0: 0}
    back = moved(("a", "b", 5), ("b", "a", 3))
    assert begin_of_stay("user", "a", back) == {0: 5}
    assert begin_of_stay("user", "a", [*back, boundary("a", 9, "user", 40)]) == {0: 5}
    assert begin_of_stay("user", "none", back) == {}


def test_a_topic_is_read_once_the_job_has_read_each_of_its_partitions() -> None:
    present = TopicEnds("id", {0: (0, 5), 1: (3, 9), 2: (4, 4)})
    assert present.ends == {0: 5, 1: 9, 2: 4}
    for positions, read in (((5, 9), True), ((5, 8), False), ((4, 9), False), ((6, 10), True)):
        assert is_read("a", {("a", p): n for p, n in enumerate(positions)}, present) is read
    assert not is_read("a", {("a", 0): 5}, present)
    assert is_read("a", {}, TopicEnds("id", {0: (4, 4)}))
    assert is_read("a", {}, None)


def test_an_entity_moves_on_from_a_topic_that_is_gone() -> None:
    found = move_boundaries("user", "a", "b", {}, ends(b=1), READ)
    assert [(one.topic, one.entity) for one in found] == [("b", "user")]
