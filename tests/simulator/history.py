"""The input of a run: changes of the source's tables, and the topics that carry them.

A history is drawn once from a seed, as whole rows; topics are spelt from the events that are kept, so that a history
can be shrunk by leaving events out.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from processor.model.change import Record
from processor.model.debezium import _PLACEHOLDER as UNAVAILABLE
from tests.simulator.shapes import STAMP, Row, Shape
from tests.simulator.temper import Temper

Partition = tuple[str, int]
Tables = dict[str, dict[tuple[Any, ...], Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change. `row` None: a delete. `unsent`: columns left out as unavailable where they did not change. `broken`: its bytes
    make a dead letter. `late`: comes after the first part was worked off and its delete markers expired."""

    entity: str
    key: Row
    row: Row | None
    unsent: frozenset[str] = frozenset()
    broken: bool = False
    late: bool = False


def draw(rng: Random, shape: Shape, temper: Temper) -> list[Event]:
    """A history of `temper.events` changes."""
    tables: Tables = {entity: {} for entity in shape.draw}
    entities = shape.hot if temper.hot else tuple(shape.draw)
    first = [shape.hot[0]] * 3 if temper.hot else []  # so that rows that move have documents to move between
    chosen = first + [rng.choice(entities) for _ in range(temper.events)]
    events = [_event(rng, shape, temper, tables, entity, n + 1) for n, entity in enumerate(chosen[: temper.events])]
    if temper.two_parts:
        cut = len(events) * 2 // 3
        events = [replace(event, late=i >= cut) for i, event in enumerate(events)]
    return events


def _event(rng: Random, shape: Shape, temper: Temper, tables: Tables, entity: str, n: int) -> Event:
    row = shape.draw[entity](rng)
    key = shape.key(entity, row)
    table, at = tables[entity], tuple(key.values())
    old, unsent = table.get(at), frozenset[str]()
    if rng.random() < temper.broken:
        return Event(entity=entity, key=key, row=row, broken=True)
    if old is not None and rng.random() < 0.2:
        del table[at]
        return Event(entity=entity, key=key, row=None)
    stamp: Row = {STAMP: n} if shape.stamped else {}
    if old is not None:
        x = rng.random()
        if x < 0.1:  # the same once more
            return Event(entity=entity, key=key, row=old)
        if x < 0.25 and entity in shape.unused:
            row, stamp = {**old, shape.unused[entity]: row[shape.unused[entity]]}, {}
        elif x < 0.8:
            moves = temper.hot and entity in shape.joined and rng.random() < 0.7
            changed = rng.choice(shape.joined[entity] if moves else sorted(row.keys() - key.keys()))
            row = {**old, changed: row[changed]}
        unsent = frozenset(c for c in row if c not in key and rng.random() < temper.unsent)
    row = table[at] = {**row, **stamp}
    return Event(entity=entity, key=key, row=row, unsent=unsent)


def tables_of(shape: Shape, events: Iterable[Event]) -> Tables:
    """The source's tables after these events (a dead letter changes nothing)."""
    tables: Tables = {entity: {} for entity in shape.draw}
    for event in events:
        at = tuple(event.key.values())
        if event.broken:
            continue
        if event.row is None:
            tables[event.entity].pop(at, None)
        else:
            tables[event.entity][at] = event.row
    return tables


def topics_of(shape: Shape, events: Sequence[Event], partitions: int) -> dict[Partition, list[Record]]:
    """The topics' partitions; the last event of a key goes to the partition of the first."""
    tables: Tables = {entity: {} for entity in shape.draw}
    topics: dict[Partition, list[Record]] = {}
    seen: set[Any] = set()
    for n, event in enumerate(events):
        at = tuple(event.key.values())
        table = tables[event.entity]
        partition = partition_of(event, partitions)
        log = topics.setdefault(partition, [])
        snapshot = (event.entity, at) not in seen
        seen.add((event.entity, at))
        log.append(_record(event, partition, len(log), n + 3 if snapshot else n, table.get(at)))
        if not event.broken:
            if event.row is None:
                table.pop(at, None)
            else:
                table[at] = event.row
    return topics


def partition_of(event: Event, partitions: int) -> Partition:
    """The topic and partition that an event of this key goes to."""
    return event.entity, sum(str(tuple(event.key.values())).encode()) % partitions


def _record(event: Event, partition: Partition, offset: int, stamp: int, old: Row | None) -> Record:
    """The record of an event. `stamp`: the source's own, which of a snapshot read is later than that of the updates after it."""
    value: bytes | None = None
    if event.broken:
        value = b"{"
    elif event.row is not None:
        unsent = {c for c in event.unsent if old is not None and old.get(c) == event.row.get(c)}
        row = {c: UNAVAILABLE if c in unsent else v for c, v in event.row.items()}
        value = json.dumps(row, default=float).encode()
    return Record(
        topic=partition[0],
        partition=partition[1],
        offset=offset,
        epoch=1,
        timestamp=stamp,
        key=json.dumps(event.key).encode(),
        value=value,
    )
