"""Simulates a source that puts several rows into one record, as Canal does: changes that follow each other in a partition share a
record, also changes of one row, and a repairable value makes the whole record a dead letter.

Each value is in Canal's form, with numbers as numbers.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from processor.values.record import Record
from tests.simulator.history import Partition
from tests.simulator.replayed_dead_letters import ReplaySimulation

OVERRIDES = {"source_order": False, "late_events": False, "broken_chance": 0.0, "same_key_chance": 0.4}
"""The conditions of such a run: a record has no place of its own among the events."""


class SeveralRowsSimulation(ReplaySimulation):
    """A run whose records hold one to four rows."""

    __slots__ = ()

    @staticmethod
    def change_logs(seed: int, logs: dict[Partition, list[Record]]) -> dict[Partition, list[Record]]:
        rng = Random(f"{seed} several")
        return {
            at: [replace(one, offset=offset) for offset, one in enumerate(_records(rng, log))]
            for at, log in logs.items()
        }

    def run(self) -> None:
        self.facts["sent again"] = (
            1  # a record passes over versions of a row, so the order of what documents show says nothing
        )
        rows = [len(json.loads(record.value or b"")["data"]) for log in self.logs.values() for record in log]
        self.facts["rows in a record with others"] = sum(count for count in rows if count > 1)
        super().run()


def _records(rng: Random, log: list[Record]) -> Iterator[Record]:
    """The records, each with some changes of the log. Canal gives a record one kind of change."""
    group: list[Record] = []
    for record in log:
        if group and (len(group) == 4 or rng.random() < 0.4 or _is_delete(record) != _is_delete(group[0])):
            yield _one_record(group)
            group = []
        group.append(record)
    if group:
        yield _one_record(group)


def _is_delete(record: Record) -> bool:
    return record.value is None


def _one_record(group: list[Record]) -> Record:
    gone = _is_delete(group[0])
    rows = [json.loads((one.key if gone else one.value) or b"") for one in group]
    value = {
        "data": rows,
        "database": "shop",
        "isDdl": False,
        "mysqlType": None,
        "old": None,
        "table": group[0].topic,
        "type": "DELETE" if gone else "INSERT",
    }
    return replace(group[0], key=None, value=json.dumps(value).encode())
