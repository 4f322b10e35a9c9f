"""Simulates a producer that sends some changes of a row to another partition than the others.

The offsets of two partitions have no common order. So the first change that reaches the table decides: changes from its
partition count, and those from the other partition are dead letters.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from processor.values.dead_letters import rejected_record
from processor.values.record import Record
from tests.simulator.history import Partition, Tables
from tests.simulator.run import Simulation

OVERRIDES = {
    "partitions": 2,
    "source_order": False,
    "late_events": False,
    "broken_chance": 0.0,
    "unavailable_chance": 0.0,
}
"""The conditions of such a run: the end of a history is then the last value of each row's own partition."""


class StraySimulation(Simulation):
    """A run in which some records stand in another partition than their key's."""

    __slots__ = ()

    @staticmethod
    def change_logs(seed: int, logs: dict[Partition, list[Record]]) -> dict[Partition, list[Record]]:
        rng = Random(f"{seed} stray")
        changed: dict[Partition, list[Record]] = {(topic, p): [] for topic, _ in logs for p in range(2)}
        moved = []
        for (topic, partition), log in logs.items():
            for record in log:
                if rng.random() < 0.2:
                    moved.append(((topic, 1 - partition), record))
                else:
                    changed[topic, partition].append(record)
        for at, record in moved:
            changed[at].insert(rng.randint(0, len(changed[at])), record)
        return {
            at: [replace(record, partition=at[1], offset=offset) for offset, record in enumerate(log)]
            for at, log in changed.items()
        }

    @staticmethod
    def is_repairable(record: Record) -> bool:
        return True

    def run(self) -> None:
        self.facts["moved"] = 1
        super().run()
        if self.problem is None:
            self.problem = next(self._problems(), None)

    def source_tables(self) -> Tables:
        tables: Tables = {entity: {} for entity in self.shape.draw_row}
        dead = self._dead_letters()
        for (entity, key), by_partition in self._records_by_key().items():
            for records in by_partition.values():
                counted = [record for record in records if record not in dead]
                if counted and (value := counted[-1].value) is not None:
                    tables[entity][tuple(json.loads(key).values())] = json.loads(value)
        return tables

    def _problems(self) -> Iterator[str]:
        """Rows that more than one partition changed, and changes of the row's partition that are dead letters."""
        dead = self._dead_letters()
        for key, by_partition in self._records_by_key().items():
            self.facts["strays"] += len(by_partition) > 1
            counted = [partition for partition, records in by_partition.items() if not dead.issuperset(records)]
            if len(counted) != 1:
                yield f"partitions {counted} changed {key}"
            elif dead.intersection(by_partition[counted[0]]):
                yield f"a change of {key} in its own partition is a dead letter"

    def _dead_letters(self) -> set[Record]:
        return {rejected_record(message).record for message in self.world.dead_letters}

    def _records_by_key(self) -> dict[tuple[str, Any], dict[int, list[Record]]]:
        found: dict[tuple[str, Any], dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
        for (topic, partition), log in self.logs.items():
            for record in log:
                found[topic, record.key][partition].append(record)
        return found
