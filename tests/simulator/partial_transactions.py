"""Looks for documents that show a part of a transaction: by the rows in the table and the history, without the job's account."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from processor.values.record import Record
from statestore import keys
from statestore.items import decode_version
from tests.simulator.history import Tables, partition_of
from tests.simulator.oracle import documents
from tests.simulator.shapes import Row

if TYPE_CHECKING:
    from tests.simulator.source_transactions import TransactionSimulation

At = tuple[str, tuple[Any, ...]]
"""An entity, and the key of a row."""


@dataclass(frozen=True, slots=True)
class Written:
    """A record that writes a row. `place`: in the order of its key's partition; `transaction`: its number."""

    place: int
    transaction: int
    row: Row | None


class PartialTransactions:
    """The records of a run by row, and what the table has."""

    def __init__(self, run: "TransactionSimulation") -> None:
        self._run = run
        self._places = {p: [place_of(record) for record in log] for p, log in run.logs.items()}
        number_of = {(*p, place): n for p, places in self._places.items() for n, place in places}
        self._written: dict[At, list[Written]] = {}
        ends: dict[Any, int] = {}
        for event in run.events:
            partition = partition_of(event, run.world.conditions.partitions)
            place = ends[partition] = ends.get(partition, -1) + 1
            if not event.broken:
                at = (event.entity, tuple(event.key.values()))
                number = number_of[event.entity, partition[1], place]
                self._written.setdefault(at, []).append(Written(place, number, event.row))

    def shown_in(self, topic: str, key: str, numbers: Iterable[int]) -> str | None:
        """The problem of a document that has just gone out; None where it shows no part of these transactions."""
        run = self._run
        product = run.shape.definitions.products[topic]
        present = {at: self._present(at) for at in self._written}
        now = self._document(product, present, key)
        for number in numbers:
            first = {at: own[0] for at, own in self._own(number) if present[at] in own}
            complete = {at: own[-1] for at, own in self._own(number) if present[at] < own[-1]}
            if not (first and complete):
                continue
            # a row that one batch made and took away again was never to be seen
            right = [
                present | complete,
                *(present | {at: n - 1 - back for at, n in first.items()} for back in range(3)),
            ]
            if now not in (self._document(product, states, key) for states in right):
                return f"{topic} {key} shows a part of transaction {number}: {now}"
        return None

    def _own(self, number: int) -> Iterator[tuple[At, list[int]]]:
        """The records of a transaction, by row."""
        for at, records in self._written.items():
            if own := [n for n, one in enumerate(records) if one.transaction == number]:
                yield at, own

    def _present(self, at: At) -> int:
        """The record whose image the table has, or of which it has a copy; -1 before the first."""
        run, (entity, key) = self._run, at
        row = run.shape.plan.entities[entity].key(str(keys.encode(key)))
        item = run.world.table.get([row]).get(row)
        if item is None or "_v" not in item:
            return -1
        _, partition, offset = decode_version(item["_v"])
        place = self._places[entity, partition][offset][1]
        return max((n for n, one in enumerate(self._written[at]) if one.place <= place), default=-1)

    def _document(self, product: Any, states: dict[At, int], key: str) -> Any:
        tables: Tables = {entity: {} for entity in self._run.shape.draw_row}
        for (entity, at), row in self._rows(states):
            tables[entity][at] = row
        return documents(product, self._run.shape.definitions, tables).get(key)

    def _rows(self, states: dict[At, int]) -> Iterator[tuple[At, Row]]:
        for at, state in states.items():
            row = self._written[at][state].row if state >= 0 else None
            if row is not None:
                yield at, row


def place_of(record: Record) -> tuple[int, int]:
    """The number of the transaction of a record, and its place in the history of its partition."""
    number, place = json.loads(record.value or b"")["transaction"]["id"].split(":")
    return int(number), int(place)
