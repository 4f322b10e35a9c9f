"""Simulates a source that writes all its tables to one topic, and entities that share it, each with its `table`.

The records of all tables come in one log a partition, in Debezium's envelope. After a delete there may be a tombstone, which says
no table. Some records are of a table that no entity picks.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from processor.values.record import Record
from tests.simulator.history import Partition
from tests.simulator.run import Simulation
from tests.simulator.shapes import Shape
from tests.simulator.source_topics import SourceSimulation

TOPIC = "shared"
OVERRIDES = {"source_order": False, "late_events": False}
"""The conditions of such a run: a record has no place of its own among the events."""


def sharing(shape: Shape) -> Shape:
    """The shape whose entities share a topic."""
    entities = {
        name: replace(entity, topic=TOPIC, table=name, format="debezium")
        for name, entity in shape.definitions.entities.items()
    }
    return replace(shape, definitions=replace(shape.definitions, entities=entities))


class SharedTopicSimulation(Simulation):
    """A run whose entities share a topic."""

    __slots__ = ()

    @staticmethod
    def change_logs(seed: int, logs: dict[Partition, list[Record]]) -> dict[Partition, list[Record]]:
        rng = Random(f"{seed} shared")
        partitions = sorted({partition for _, partition in logs})
        merged = {p: _merged(rng, [log for at, log in sorted(logs.items()) if at[1] == p]) for p in partitions}
        return {
            (TOPIC, p): [
                replace(record, topic=TOPIC, offset=offset)
                for offset, record in enumerate(one for record in log for one in _records(rng, record))
            ]
            for p, log in merged.items()
        }

    def run(self) -> None:
        self.facts["sent again"] = 1  # the order of the tables is another one than that of the events
        self.facts["tombstones"] = sum(record.value is None for log in self.logs.values() for record in log)
        self.shape = sharing(self.shape)
        super().run()


def _merged(rng: Random, logs: list[list[Record]]) -> Iterator[Record]:
    """The records of all logs, those of each log in their order."""
    turns = [turn for log in logs for turn in [iter(log)] * len(log)]
    rng.shuffle(turns)
    return map(next, turns)


def _records(rng: Random, record: Record) -> Iterator[Record]:
    """The records of a change: itself in the envelope, and what else the topic has."""
    source = {"table": record.topic}
    if rng.random() < 0.1:
        other = {"op": "c", "before": None, "after": {"id": 1}, "source": {"table": "other"}}
        yield replace(record, key=b'{"id":1}', value=json.dumps(other).encode())
    if record.value is None:
        gone = {"op": "d", "before": json.loads(record.key or b""), "after": None, "source": source}
        yield replace(record, value=json.dumps(gone).encode())
        if rng.random() < 0.5:
            yield record
    elif record.value == b"{":
        yield record
    else:
        found = json.loads(record.value)
        if record.key is not None:  # a truncate has the envelope
            found = {"op": "c", "before": None, "after": found}
        yield replace(record, value=json.dumps({**found, "source": source}).encode())


class SharedSourceSimulation(SourceSimulation):
    """A run whose entities share a topic that changes: it grows, loses records, or is created again."""

    def run(self) -> None:
        self.shape = sharing(self.shape)
        super().run()

    def _topic_of(self, entity: str) -> str:
        return TOPIC

    def _records(self, record: Record) -> Iterator[Record]:
        return _records(Random(f"{self.seed} {record.topic} {record.key!r} {len(self.sent)}"), record)
