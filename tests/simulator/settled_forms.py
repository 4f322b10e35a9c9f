"""Simulates a column of decimals whose records do not say how its text arrives: as digits, as Debezium's bytes, or as text that
may be both. The source has changed its mind, so both forms come, in two partitions.

At the end an operator replays the dead letters that the settled form reads. So each row is as if the job had read all records by
this form, and those of the other form had changed nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from processor.engine.rounds.decoding import FORMS, read_form
from processor.values.dead_letters import DeadLetter
from processor.values.record import Record
from tests.simulator.history import Event, Partition, Tables, tables_after
from tests.simulator.replayed_dead_letters import ReplaySimulation
from tests.simulator.shapes import PRICE

READ = {
    "text": {"12.34": Decimal("12.34"), "1234": Decimal(1234), "1000": Decimal(1000)},
    "bytes": {"BNI=": Decimal("12.34"), "1234": Decimal("-26588.24"), "1000": Decimal("-26672.12")},
}
"""Each text and its number, by the form of the column."""
OVERRIDES = {"shape": "prices", "partitions": 2, "unavailable_chance": 0.0, "broken_chance": 0, "late_events": False}


class SettledFormSimulation(ReplaySimulation):
    """A run over the shape `prices`."""

    __slots__ = ()

    @staticmethod
    def change_events(seed: int, events: list[Event]) -> list[Event]:
        return events

    @staticmethod
    def change_logs(seed: int, logs: dict[Partition, list[Record]]) -> dict[Partition, list[Record]]:
        return {partition: list(map(_enveloped, log)) for partition, log in logs.items()}

    @staticmethod
    def is_repairable(record: Record) -> bool:
        return _text(record) is not None

    def source_tables(self) -> Tables:
        read: dict[str, Any] = {**READ.get(self._form(), {}), "": None}
        known = [event for event in self.events if event.row is None or (event.row.get(PRICE) or "") in read]
        priced = [event if event.row is None or PRICE not in event.row else _with_price(event, read) for event in known]
        return tables_after(self.shape, priced)

    def _declare(self, *, as_text: bool) -> None:
        """Nobody declares anything: a record settles the form."""

    def _letters_to_replay(self) -> list[DeadLetter]:
        read = READ.get(self._form(), {})
        return [one for one in super()._letters_to_replay() if _text(one.rejected.record) in read]

    def _form(self) -> str:
        """The form of the column, as the table has it; empty without one."""
        notes: Sequence[Any] = self.world.table.partition(FORMS)
        return next((read_form(item).settled.form for item in notes), "")


def _with_price(event: Event, read: dict[str, Any]) -> Event:
    assert event.row is not None
    return replace(event, row={**event.row, PRICE: read[event.row[PRICE] or ""]})


def _enveloped(record: Record) -> Record:
    """The record as Debezium writes it. A delete stays a tombstone."""
    if record.value is None:
        return record
    row = {"op": "u", "before": None, "after": json.loads(record.value), "source": {}}
    return replace(record, value=json.dumps(row).encode())


def _text(record: Record) -> str | None:
    """The price in a record."""
    return None if record.value is None else json.loads(record.value)["after"].get(PRICE)
