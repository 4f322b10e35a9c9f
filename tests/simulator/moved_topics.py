"""Simulates operators who move an entity to another topic, and back, while the job runs, and who make all epochs begin again, as
`rebuild-registry` does. Operators erase rows at any moment of that.

An operator may end a move early (`statestore epoch`): the job gives up the rest of the former topic, and the source sends its
rows again, to the next topic. Of a key without a row it sends a delete.

The source writes the first records of the entity to its topic, the next ones to another topic, and the last ones to the former
topic again. It may move before the job does, or after the operator's edit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.protocol.epochs import (
    Epochs,
    TopicEnds,
    begin_of_stay,
    due_moves,
    former_topics,
    move_boundaries,
    read_epochs,
)
from processor.engine.protocol.erasures import PARTITION as ERASED
from processor.engine.protocol.erasures import Erasure, read_erasure
from processor.job.kafka.admin import TopicDescription
from processor.job.run.binding import forget_progress
from processor.job.run.topics import record_boundary
from processor.values.record import Record
from registry.model import EpochBoundary
from statestore.items import decode_version, encode_version
from tests.simulator.erased_rows import OVERRIDES, ErasingSimulation
from tests.simulator.history import Event, Partition, make_record, partition_of, tables_after
from tests.simulator.spark_checkpoint import Checkpoint

NEXT = " next"
"""The end of the name of the other topic."""
Step = str | dict[Partition, int]
"""An operator's edit: the topic that the entity has then. Or work of the source: where each partition ends then."""
MOVES = {**OVERRIDES, "late_events": False, "source_order": False}
"""The conditions of such a run."""


class MovingSimulation(ErasingSimulation):
    """A run with moves. `moving`: the entity; `topics`: the topic of each entity, by the registry; `boundaries`: the registry's.
    `placed`: the events, with the places of their records. `steps`: the edit and the work of the source for each move that
    follows. `copies`: of the checkpoint, from before each move. `had`: the topics that entities have or had, of which an
    erasure covers the records. `rebuilds`: how often epochs may begin again. `given_up`: the records that no job need read."""

    boundaries: list[EpochBoundary]
    copies: list[dict[Partition, int]]
    given_up: set[Record]
    had: set[str]
    moving: str
    placed: list[tuple[Event, tuple[Partition, int]]]
    rebuilds: int
    steps: list[list[Step]]
    topics: dict[str, str]

    def run(self) -> None:
        rng = Random(f"{self.seed} moves")
        self.topics, self.given_up = {entity: entity for entity in self.shape.plan.entities}, set()
        self.moving, self.copies, self.had = rng.choice(self.events).entity, [], set(self.topics)
        count = sum(event.entity == self.moving for event in self.events)
        first = rng.randint(0, count)
        back = rng.randint(first, count) if rng.random() < 0.5 else count
        self.rebuilds = rng.choice((0, 1, 2))
        self._place(first, back)
        self.available = self._written(rng.randint(0, first))
        there: list[Step] = [self.moving + NEXT, self._written(back)]
        again: list[Step] = [self.moving, self._written(count)]
        self.steps = [rng.sample(pair, 2) for pair in (there, again)[: 1 + (back < count)]]
        if first == back:
            self.steps = [[self._written(count)]]
        self.boundaries = []
        self._begin_epochs(1)
        self.checkpoint = Checkpoint(offsets={p: 0 for p in self.logs if p[0] in self.topics.values()})
        super().run()

    def _place(self, first: int, back: int) -> None:
        """Deals out the records: those of the moving entity from its event `first` to `back` go to the other topic."""
        logs: dict[Partition, list[Record]] = {p: [] for p in self.logs}
        given = {p: iter(log) for p, log in self.logs.items()}
        self.placed, seen = [], 0
        for event in self.events:
            topic, partition = source = partition_of(event, self.world.conditions.partitions)
            if topic == self.moving:
                topic, seen = topic + NEXT * (first <= seen < back), seen + 1
            log = logs.setdefault((topic, partition), [])
            self.placed.append((event, ((topic, partition), len(log))))
            log.append(replace(next(given[source]), topic=topic, offset=len(log)))
        self.logs = logs

    def _written(self, upto: int) -> dict[Partition, int]:
        """Where each partition ends when the source has written this many events of the moving entity."""
        ends, seen = dict.fromkeys(self.logs, 0), 0
        for event, (partition, offset) in self.placed:
            seen += event.entity == self.moving
            if event.entity != self.moving or seen <= upto:
                ends[partition] = offset + 1
        return ends

    def _positions(self) -> Iterator[tuple[Event, tuple[Partition, int]]]:
        return iter(self.placed)

    def records(self) -> Iterator[Record]:
        return (record for record in super().records() if record not in self.given_up)

    def lost_records(self) -> Iterable[Record]:
        return self.given_up

    def entity_of(self, topic: str) -> str:
        return topic.removesuffix(NEXT)

    # the registry

    def _former(self) -> dict[str, str]:
        return former_topics(self.topics, self.boundaries)

    def start_plan(self) -> Plan:
        return self.shape.plan.with_topics(self.topics | self._former())

    def _record(self, boundaries: Sequence[EpochBoundary]) -> None:
        self.boundaries += boundaries
        self.epochs: Epochs = read_epochs(self.boundaries)

    def _begin_epochs(self, epoch: int) -> None:
        """Begins an epoch at the first record of each topic."""
        self._record(
            [
                EpochBoundary(topic=t, topic_id=f"id of {t}", partition=p, from_offset=0, epoch=epoch, entity=entity)
                for entity, t in self.topics.items()
                for p in range(self.world.conditions.partitions)
            ]
        )

    def _broker(self) -> dict[str, TopicEnds]:
        names = {*self.topics.values(), *(b.topic for b in self.boundaries)}
        parts = range(self.world.conditions.partitions)
        ends = {name: {p: (0, self.available.get((name, p), 0)) for p in parts} for name in names}
        return {name: TopicEnds(f"id of {name}", marks) for name, marks in ends.items()}

    # operators

    def _act(self) -> bool:
        rng = self.world.rng
        if self.job is not None and self.steps and self._may_step() and (rng.random() < 0.1 or self._rests()):
            self._step()
            return True
        if self.job is not None and not self.checkpoint.planned_ends and self._move():
            return True
        if self._may_end_move() and rng.random() < 0.2:
            self._end_move()
            return True
        if self.rebuilds and self._may_rebuild() and rng.random() < 0.05:
            self._rebuild()
            return True
        return super()._act()

    def _may_step(self) -> bool:
        """Operator and source begin the next move once the job has made the last one."""
        return len(self.steps[0]) == 1 or not self._former()

    def _may_rebuild(self) -> bool:
        """A new registry does not know where the entity left a topic, so it must not come back to one."""
        comes_back = [step for steps in self.steps for step in steps if step == self.moving]
        return not self._former() and (not self.facts["moves"] or (self.facts["moves"] == 1 and not comes_back))

    def _rests(self) -> bool:
        assert self.job is not None
        world = self.world
        return not (self.has_input or self.job.pending or world.zombies or world.broker.late_commits)

    def _step(self) -> None:
        step = self.steps[0].pop()
        self.steps = list(filter(None, self.steps))
        if isinstance(step, str):
            self.world.log(f"entity {self.moving} has topic {step}")
            self.topics[self.moving] = step
            self.had.add(step)
        else:
            self.available = step

    def _move(self) -> bool:
        """Moves the entity, if the move is due. A crash may come between the registry's boundaries and the checkpoint."""
        former = self._former()
        offsets, broker = self.checkpoint.offsets, self._broker()
        if not (due := due_moves(former, self.topics, offsets, broker, self.boundaries)):
            return False
        for entity in due:
            topic = self.topics[entity]
            self.world.log(f"entity {entity} moves from {former[entity]} to {topic}")
            self._record(move_boundaries(entity, former[entity], topic, offsets, broker, self.boundaries))
        self.facts["moves"] += 1
        self.copies.append(dict(self.checkpoint.offsets))
        self.end_job()
        return True

    def _may_end_move(self) -> bool:
        """Whether the source has ended its writes to the former topic of a move that the job has yet to make."""
        return bool(self._former()) and (not self.steps or len(self.steps[0]) == 2)

    def _end_move(self) -> None:
        """`statestore epoch`, with the next topic. A job that runs begins its stream again."""
        topic, former, broker = self.topics[self.moving], self._former()[self.moving], self._broker()
        entities = [SimpleNamespace(name=entity, topic=one) for entity, one in self.topics.items()]
        registry: Any = SimpleNamespace(
            snapshot=lambda: SimpleNamespace(entities=entities),
            epochs=lambda topics, readers=(): [b for b in self.boundaries if b.topic in topics or b.entity in readers],
            record_epochs=lambda new, **_: self._record(new),
        )
        admin: Any = SimpleNamespace(
            topics=lambda names: {name: TopicDescription(broker[name].id, len(broker[name].marks)) for name in names},
            watermarks=lambda name: broker[name].marks,
            ends=lambda name: broker[name].ends,
        )
        self.world.log(f"entity {self.moving} gives up the rest of {former}")
        record_boundary(registry, admin, topic, who="", why="")
        for p, offset in self.checkpoint.offsets.items():
            if p[0] == former:
                self.given_up |= {*self.logs[p][offset : self.available[p]]}
        self.world.faults["rest given up"] += 1
        self.facts["moves ended early"] += 1
        self.copies.append(dict(self.checkpoint.offsets))
        self.end_job()
        self._send_again(topic)

    def _send_again(self, topic: str) -> None:
        """The source sends its rows of the moving entity again: they follow what it has written to the topic."""
        written = [
            (event, place)
            for event, place in self.placed
            if event.entity == self.moving and place[1] < self.available.get(place[0], 0)
        ]
        rows = tables_after(self.shape, [event for event, place in written if not self._is_covered(event, place)])
        for n, (at, key) in enumerate({tuple(e.key.values()): e.key for e, _ in written}.items()):
            event = Event(entity=self.moving, key=key, row=rows[self.moving].get(at))
            partition = topic, partition_of(event, self.world.conditions.partitions)[1]
            log, end = self.logs.setdefault(partition, []), self.available.get(partition, 0)
            log.insert(end, make_record(event, partition, end, len(self.events) + n, None))
            self.logs[partition] = [replace(record, offset=offset) for offset, record in enumerate(log)]
            self.placed = [(e, (p, o + (p == partition and o >= end))) for e, (p, o) in self.placed]
            self.steps = [[_later(step, partition) for step in pair] for pair in self.steps]
            self.available[partition] = end + 1

    def _rebuild(self) -> None:
        """A new registry takes over the table: no job runs, and the next one has a new checkpoint."""
        self.end_job()
        if self.world.zombies:
            self.world.finish_zombies()
        while self.world.broker.late_commits:
            self.world.now += 10
            self.world.broker.finish_late_commits()
        self.copies.clear()
        self.rebuilds -= 1
        self.facts["rebuilds"] += 1
        self.world.faults["rebuilt"] += 1
        items = self.world.table._items
        epochs = [decode_version(item["_v"])[0] for item in items.values() if "_v" in item]
        epochs += [read_erasure(item).epoch for key, item in items.items() if key.pk == ERASED]
        self.boundaries = []
        self._begin_epochs(max(epochs, default=0) + 1)
        self.checkpoint = Checkpoint(offsets={p: 0 for p in self.logs if p[0] in self.topics.values()})
        shown, store = [message for _, message in self.world.broker.log], self.world.table
        forget_progress(self.start_plan(), store, lambda topic: [m for m in shown if m.topic == topic])
        self.world.log(f"a new registry begins epoch {self.boundaries[0].epoch}")

    # the job

    def _start(self) -> None:
        if self.copies and self.world.rng.random() < 0.2:
            self.world.faults["checkpoint lost"] += 1
            self.checkpoint = Checkpoint(offsets=dict(self.world.rng.choice(self.copies)))
        self._fit_checkpoint()
        super()._start()
        if self.facts["rebuilds"] and self.job is not None:
            self._run_driver(self.job, lambda job: job.driver.adopt(self.start_plan()))

    def _fit_checkpoint(self) -> None:
        """Leaves the topics that no entity reads now, and begins those that no batch has read."""
        read = {topic: entity for entity, topic in (self.topics | self._former()).items()}
        for offsets in filter(None, (self.checkpoint.offsets, self.checkpoint.planned_ends)):
            for partition in [p for p in offsets if p[0] not in read]:
                del offsets[partition]
            for topic, p in self.logs:
                if topic in read and (topic, p) not in offsets:
                    offsets[topic, p] = begin_of_stay(read[topic], topic, self.boundaries).get(p, 0)

    def _erasure(self, entity: str, key: tuple[Any, ...]) -> tuple[Erasure, dict[Partition, int]]:
        read, broker = (self.topics | self._former())[entity], self._broker()
        known = {read, self.topics[entity], *(b.topic for b in self.boundaries if b.entity == entity)}
        new = {p: encode_version(self.epochs.of(read, p, end), p, end) for p, end in broker[read].ends.items()}
        covered = {p: end for p, end in self.available.items() if p[0] in self.had and self.entity_of(p[0]) == entity}
        return Erasure(new, ends={broker[topic].id: broker[topic].ends for topic in known}), covered


def _later(step: Step, partition: Partition) -> Step:
    """The step, after one more record of a partition."""
    return step if isinstance(step, str) else {**step, partition: step.get(partition, 0) + 1}
