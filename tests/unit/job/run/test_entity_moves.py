"""A job moves its entities to other topics: which one it reads meanwhile, and what operators see of it."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.job.kafka.admin import TopicDescription
from processor.job.run.topics import MOVE_SECONDS, EntityMoves
from processor.language.definitions.load import load
from registry.model import EpochBoundary

ENTITIES = "user: {topic: %s, key: [id], columns: {id: int}}"
PRODUCT = "{product: names, root: user, fields: [id]}"


def plan(topic: str, more: str = "") -> Plan:
    return plan_alone(load({"entities.yaml": f"{ENTITIES % topic}\n{more}", "names.yaml": PRODUCT}), 3)


class World:
    """A broker with topics of one partition, a registry's boundaries, a clock, and what operators see."""

    def __init__(self, **ends: int) -> None:
        self.ends, self.seconds, self.asked = ends, 0.0, 0
        self.boundaries = [
            EpochBoundary(topic="a", topic_id="id of a", partition=0, from_offset=0, epoch=1, entity="user")
        ]
        self.lines: list[str] = []
        broker: Any = self
        self.moves = EntityMoves(
            registry=broker, admin=broker, now=lambda: self.seconds, report=lambda event: self.lines.append(event.text)
        )

    def topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        self.asked += 1
        return {name: TopicDescription(f"id of {name}", 1) for name in names if name in self.ends}

    def watermarks(self, topic: str) -> dict[int, tuple[int, int]]:
        return {0: (0, self.ends[topic])}

    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> list[EpochBoundary]:
        return [one for one in self.boundaries if one.topic in topics or one.entity in entities]

    def add_epochs(self, new: Iterable[EpochBoundary]) -> None:
        self.boundaries += new


def topic_of(plan: Plan) -> str:
    return plan.entities["user"].entity.topic


def test_a_job_reads_the_former_topic_until_the_next_one_has_a_record_and_the_former_one_is_read() -> None:
    world = World(a=5, b=0)
    assert topic_of(world.moves.fit(plan("b"))) == "a"
    assert world.lines == [
        "entity user has topic b now: the job reads a to its end, once b has a new record, and then b"
    ]
    assert not world.moves.look({("a", 0): 5})
    assert world.moves.make({("a", 0): 5}) is None
    world.ends["b"] = 1
    world.seconds += MOVE_SECONDS
    assert world.moves.look({("a", 0): 5})
    moved = world.moves.make({("a", 0): 5})
    assert moved is not None
    assert topic_of(moved) == "b"
    assert world.lines[1:] == [
        "entity user has left topic a (partition: offset 0: 5) and reads b: the job reads no later record of a"
    ]
    assert not world.moves.look({})
    assert topic_of(world.moves.fit(plan("b"))) == "b"


def test_a_producer_that_goes_on_with_the_former_topic_holds_no_move_up() -> None:
    world = World(a=5, b=1)
    world.moves.fit(plan("b"))
    assert not world.moves.look({("a", 0): 4})
    world.ends["a"] = 9
    assert world.moves.look({("a", 0): 6})
    assert world.moves.make({("a", 0): 6}) is not None
    assert [(b.topic, b.from_offset) for b in world.boundaries] == [("a", 0), ("a", 6), ("b", 0)]


def test_a_move_waits_for_the_commit_of_the_last_batch_of_the_former_topic() -> None:
    world = World(a=5, b=1)
    world.moves.fit(plan("b"))
    assert world.moves.look({("a", 0): 5})
    assert world.moves.make({("a", 0): 4}) is None
    assert len(world.boundaries) == 1


def test_a_job_asks_the_broker_after_each_batch_and_now_and_then() -> None:
    world = World(a=5, b=0)
    world.moves.fit(plan("b"))
    world.moves.look({("a", 0): 4})
    asked = world.asked
    world.moves.look({("a", 0): 4})
    assert world.asked == asked
    world.moves.look({("a", 0): 5})
    assert world.asked == asked + 1
    world.seconds += MOVE_SECONDS
    world.moves.look({("a", 0): 5})
    assert world.asked == asked + 2


def test_an_entity_waits_for_a_topic_that_another_one_has_yet_to_leave() -> None:
    world = World(a=5, b=1)
    guest = "guest: {topic: a, key: [id], columns: {id: int}}"
    fitted = world.moves.fit(plan("b", guest))
    assert {name: entity.entity.topic for name, entity in fitted.entities.items()} == {"user": "a", "guest": ""}
    moved = world.moves.make({("a", 0): 5})
    assert moved is not None
    assert {name: entity.entity.topic for name, entity in moved.entities.items()} == {"user": "b", "guest": "a"}


def test_a_job_says_that_the_next_topic_does_not_exist() -> None:
    world = World(a=5)
    world.moves.fit(plan("b"))
    assert world.lines[0].endswith("once b has a new record, and then b; b does not exist yet")
    assert not world.moves.look({("a", 0): 5})


def test_an_entity_moves_at_once_from_a_topic_that_is_gone_or_another_one_and_when_an_operator_says_so() -> None:
    assert topic_of(World(b=1).moves.fit(plan("b"))) == "b"
    world = World(a=5, b=1)
    world.boundaries = [EpochBoundary(topic="a", topic_id="before", partition=0, from_offset=0, epoch=1, entity="user")]
    assert topic_of(world.moves.fit(plan("b"))) == "b"
    world = World(a=5, b=0)
    world.moves.fit(plan("b"))
    assert not world.moves.is_outdated()
    world.boundaries.append(
        EpochBoundary(topic="b", topic_id="id of b", partition=0, from_offset=0, epoch=2, entity="user")
    )
    assert world.moves.is_outdated()
    assert world.moves.look({})
    moved = world.moves.make({})
    assert moved is not None
    assert topic_of(moved) == "b"


def test_an_edit_that_takes_the_new_topic_back_ends_the_move() -> None:
    world = World(a=5, b=1)
    world.moves.fit(plan("b"))
    assert topic_of(world.moves.fit(plan("a"))) == "a"
    assert not world.moves.look({("a", 0): 5})
    assert world.moves.make({("a", 0): 5}) is None
