"""Simulates a source that writes while the job runs, and topics that change meanwhile.

A topic gets more partitions, so keys move to others. It is created again, or the broker comes back without its last records, or
retention removes records that the job has not read. The operator then does what docs/kafka.md says: `statestore epoch`, a
new checkpoint, and the source sends its rows again. Of a key without a row it sends a delete.

A change often comes after a crash, before the next start.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from random import Random

from processor.engine.protocol.epochs import Epochs, read_epochs
from processor.values.record import Record
from registry.model import EpochBoundary
from tests.simulator.check import check_last_documents
from tests.simulator.history import Event, Partition, Tables, make_record, partition_of, tables_after
from tests.simulator.run import Simulation, WrongAtRest
from tests.simulator.shapes import Row
from tests.simulator.spark_checkpoint import Checkpoint

OVERRIDES = {"late_events": False, "truncate_chance": 0.0}
"""The conditions of such a run: a truncate needs a topic of one partition."""


class SourceSimulation(Simulation):
    """A run with such a source.

    written: how many events it has written; sent: these, and what it sent again. source: the records of those that follow.
    pace: the chance of its next turn. changes: of topics, that follow: after how many events, and which.
    boundaries: the registry's. partitions, incarnation: of each topic, how many, and its number.
    order: the partition of each record that the topics have; lost: the records that they have no more."""

    boundaries: list[EpochBoundary]
    sent: list[Event]
    changes: list[tuple[int, str]]
    incarnation: dict[str, int]
    lost: list[Record]
    order: list[Partition]
    pace: float
    partitions: dict[str, int]
    source: Iterator[Record]
    written: int

    def run(self) -> None:
        rng = Random(f"{self.seed} source")
        self.source = iter([*self._in_order()])
        self.pace = rng.choice((0, 0, 0, 0.1, 0.5))
        weights = rng.choice(((1, 0, 0, 0), (3, 2, 1, 1)))
        kinds = rng.choices(("grow", "create again", "cut", "retain"), weights, k=rng.choice((1, 2, 4, 6)))
        self.changes = sorted((rng.randint(0, len(self.events)), kind) for kind in kinds)
        if self.world.conditions.changes is not None:
            self.changes = [(min(n, len(self.events)), kind) for n, kind in self.world.conditions.changes]
        topics = sorted({self._topic_of(entity) for entity in self.shape.draw_row})
        self.partitions = dict.fromkeys(topics, self.world.conditions.partitions)
        self.incarnation = dict.fromkeys(topics, 1)
        self.logs = {(topic, p): [] for topic in topics for p in range(self.partitions[topic])}
        self.order, self.lost, self.boundaries, self.sent, self.written = [], [], [], [], 0
        self.available = dict.fromkeys(self.logs, 0)
        self.checkpoint = Checkpoint(offsets=dict.fromkeys(self.logs, 0))
        for topic in topics:
            self._begin_epoch(topic, 1, {})
        super().run()

    def _in_order(self) -> Iterator[Record]:
        """The records of the events."""
        given = {partition: iter(log) for partition, log in self.logs.items()}
        return (next(given[partition_of(event, self.world.conditions.partitions)]) for event in self.events)

    def source_order(self) -> Iterable[Partition]:
        return self.order

    def source_tables(self) -> Tables:
        return tables_after(self.shape, self.events[: self.written])

    def lost_records(self) -> Iterable[Record]:
        return self.lost

    def _act(self) -> bool:
        rng = self.world.rng
        if self.written < len(self.events) or self.changes:
            crashed = self.job is None and self.starts > 0
            if rng.random() < (max(0.5, self.pace) if crashed else self.pace) or self._rests():
                self._take_turn()
                return True
        return super()._act()

    def _rests(self) -> bool:
        """Whether only the source has something to do."""
        job, world = self.job, self.world
        return not (job is None or self.has_input or job.pending or world.zombies or world.broker.late_commits)

    def _is_complete(self) -> bool:
        """Whether the documents show all that the source has written, when the job rests."""
        return True

    def _take_turn(self) -> None:
        if self._rests():
            problem = check_last_documents(self) if self._is_complete() else None
            if problem:
                raise WrongAtRest(problem)
            self.world.now += self.world.rng.choice(self.world.conditions.pauses)
        for event in self.events[self.written : self.written + self.world.rng.choice((1, 2, 4, 8))]:
            self._change_due()
            self._write(event, next(self.source))
            self.written += 1
        if self.written == len(self.events):
            self._change_due()

    def _change_due(self) -> None:
        while self.changes and self.changes[0][0] <= self.written:
            self._change_topic(self.changes.pop(0)[1])

    def _write(self, event: Event, record: Record) -> None:
        """Writes a record at the end of its partition."""
        self.sent.append(event)
        partition = self._partition_of(event)
        log = self.logs[partition]
        for one in self._records(record):
            log.append(replace(one, topic=partition[0], partition=partition[1], offset=len(log)))
            self.order.append(partition)
        self.available[partition] = len(log)

    def _topic_of(self, entity: str) -> str:
        """The topic of an entity."""
        return entity

    def _records(self, record: Record) -> Iterable[Record]:
        """The records that the source writes for one of a history."""
        return (record,)

    def _partition_of(self, event: Event) -> Partition:
        """The partition of a key, which the number of partitions decides: often the newest one."""
        topic = self._topic_of(event.entity)
        count = self.partitions[topic]
        rng = Random(f"{self.seed} {event.entity} {event.key} {count}")
        return topic, count - 1 if rng.random() < 0.5 else rng.randrange(count)

    # operators

    def _change_topic(self, kind: str) -> None:
        """A topic changes. The job stops at its next batch, and starts again after the cure."""
        rng = self.world.rng
        near = self.events[max(0, self.written - 1)].entity
        entity = near if rng.random() < 0.7 else rng.choice([*{event.entity: None for event in self.events}])
        topic = self._topic_of(entity)
        self.end_job()
        self.facts[kind] += 1
        self.world.log(f"topic {topic}: {kind}")
        if kind == "grow":
            self._begin_epoch(topic, self.partitions[topic] + 1, self._ends(topic))
            return
        self.world.faults["topic changed"] += 1
        if kind == "create again":
            self._lose(topic, lambda _: 0)
            self.incarnation[topic] += 1
            self.firsts |= {p: 0 for p in self.firsts if p[0] == topic}
            self._begin_epoch(topic, self.partitions[topic] + rng.choice((0, 0, 1)), {})
        elif kind == "cut":
            self._lose(topic, lambda p: rng.randint(self.firsts.get(p, 0), len(self.logs[p])))
            self._begin_epoch(topic, self.partitions[topic], self._ends(topic))
        else:
            for p in self._partitions(topic):
                self.firsts[p] = rng.randint(self.firsts.get(p, 0), len(self.logs[p]))
                self.lost += self.logs[p][: self.firsts[p]]
        self._send_again(topic)
        keeps = rng.choice((0.0, 0.5, 1.0))
        offsets = {
            p: self.firsts.get(p, 0) if p[0] == topic or rng.random() >= keeps else self.checkpoint.offsets.get(p, 0)
            for p in self.logs
        }
        self.checkpoint = Checkpoint(offsets={p: max(o, self.firsts.get(p, 0)) for p, o in offsets.items()})

    def _begin_epoch(self, topic: str, partitions: int, begins: dict[int, int]) -> None:
        """`statestore epoch`, of a topic that has this many partitions now."""
        self.partitions[topic] = partitions
        epoch = 1 + max((b.epoch for b in self.boundaries if b.topic == topic), default=0)
        self.boundaries += [
            EpochBoundary(
                topic=topic,
                topic_id=self._id_of(topic),
                partition=p,
                from_offset=begins.get(p, 0),
                epoch=epoch,
                entity=topic,
                at_end=p in begins,
            )
            for p in range(partitions)
        ]
        self.epochs: Epochs = read_epochs(self.boundaries)
        for partition in self._partitions(topic):
            self.logs.setdefault(partition, [])
            self.available.setdefault(partition, 0)
            self.checkpoint.offsets.setdefault(partition, 0)
            if self.checkpoint.planned_ends is not None:
                self.checkpoint.planned_ends.setdefault(partition, 0)

    def _again(self, row: Row | None) -> Row | None:
        """A row that the source sends again."""
        return row

    def _id_of(self, topic: str) -> str:
        return f"{topic} {self.incarnation[topic]}"

    def _partitions(self, topic: str) -> list[Partition]:
        return [(topic, p) for p in range(self.partitions[topic])]

    def _ends(self, topic: str) -> dict[int, int]:
        return {p[1]: len(self.logs[p]) for p in self._partitions(topic)}

    def _lose(self, topic: str, end: Callable[[Partition], int]) -> None:
        """The topic loses its records from an offset on, in each partition."""
        for partition in self._partitions(topic):
            left = end(partition)
            self.lost += self.logs[partition][left:]
            del self.logs[partition][left:]
            self.available[partition] = left
            places = [n for n, one in enumerate(self.order) if one == partition]
            for n in reversed(places[left:]):
                del self.order[n]

    def _send_again(self, topic: str) -> None:
        """The source sends all its rows of a topic again, and a delete of each key without a row."""
        known = self.events[: self.written]
        tables = tables_after(self.shape, known)
        sent = {(e.entity, *e.key.values()): e for e in known if self._topic_of(e.entity) == topic}
        for (entity, *at), one in sent.items():
            event = Event(entity=entity, key=one.key, row=self._again(tables[entity].get(tuple(at))))
            self._write(event, make_record(event, (entity, 0), 0, self.written, None))
