"""The input of a run: changes of the source's tables, and the topics with these changes.

A seed gives one history, of whole rows. `make_topics` makes the records from the events that a run keeps, so `shrink` can leave
events out.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from processor.values.entity import PLACEHOLDER as UNAVAILABLE
from processor.values.record import Record
from tests.simulator.conditions import Conditions
from tests.simulator.shapes import STAMP, Row, Shape

Partition = tuple[str, int]
Tables = dict[str, dict[tuple[Any, ...], Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change. `row` None: a delete. `unavailable`: columns that the record leaves out if they did not change. `broken`: the
    bytes make a dead letter. `late`: the change arrives after the job has finished the earlier ones and their delete markers may
    have expired. `truncate`: the source empties the table."""

    entity: str
    key: Row
    row: Row | None
    unavailable: frozenset[str] = frozenset()
    broken: bool = False
    late: bool = False
    truncate: bool = False


def draw_events(rng: Random, shape: Shape, conditions: Conditions) -> list[Event]:
    """A history of `conditions.events` changes."""
    tables: Tables = {entity: {} for entity in shape.draw_row}
    entities = shape.moving if conditions.many_moves else tuple(shape.draw_row)
    first = [shape.moving[0]] * 3 if conditions.many_moves else []  # documents that rows can move between
    chosen = first + [rng.choice(entities) for _ in range(conditions.events)]
    chosen = chosen[: conditions.events]
    events: list[Event] = []
    for n, entity in enumerate(chosen):
        same = bool(events) and rng.random() < conditions.same_key_chance if conditions.same_key_chance else False
        entity, key = (events[-1].entity, events[-1].key) if same else (entity, {})
        events.append(_draw_event(rng, shape, conditions, tables, entity, key, n + 1))
    if conditions.late_events:
        cut = len(events) * 2 // 3
        events = [replace(event, late=i >= cut) for i, event in enumerate(events)]
    return events


def _draw_event(
    rng: Random, shape: Shape, conditions: Conditions, tables: Tables, entity: str, same: Row, n: int
) -> Event:
    """A change of the entity. `same`: the key of its row, empty for any."""
    if conditions.truncate_chance and rng.random() < conditions.truncate_chance:
        tables[entity].clear()
        return Event(entity=entity, key={}, row=None, truncate=True)
    row = {**shape.draw_row[entity](rng), **same}
    key = shape.key(entity, row)
    table, at = tables[entity], tuple(key.values())
    old, unavailable = table.get(at), frozenset[str]()
    if rng.random() < conditions.broken_chance:
        return Event(entity=entity, key=key, row=row, broken=True)
    if old is not None and rng.random() < conditions.delete_chance:
        del table[at]
        return Event(entity=entity, key=key, row=None)
    stamp: Row = {STAMP: n} if shape.stamped else {}
    if old is not None:
        x = rng.random()
        if x < 0.1:  # the same row again
            return Event(entity=entity, key=key, row=old)
        if x < 0.25 and entity in shape.unused_columns:
            unused = shape.unused_columns[entity]
            row, stamp = {**old, unused: row[unused]}, {}
        elif x < 0.8:
            moves = conditions.many_moves and entity in shape.join_columns and rng.random() < 0.7
            changed = rng.choice(shape.join_columns[entity] if moves else sorted(row.keys() - key.keys()))
            row = {**old, changed: row[changed]}
        unavailable = frozenset(c for c in row if c not in key and rng.random() < conditions.unavailable_chance)
    row = table[at] = {**row, **stamp}
    return Event(entity=entity, key=key, row=row, unavailable=unavailable)


def tables_after(shape: Shape, events: Iterable[Event]) -> Tables:
    """The source's tables after these events. A dead letter changes nothing."""
    tables: Tables = {entity: {} for entity in shape.draw_row}
    for event in events:
        at = tuple(event.key.values())
        if event.broken:
            continue
        if event.truncate:
            tables[event.entity].clear()
        elif event.row is None:
            tables[event.entity].pop(at, None)
        else:
            tables[event.entity][at] = event.row
    return tables


def make_topics(shape: Shape, events: Sequence[Event], partitions: int) -> dict[Partition, list[Record]]:
    """The records of these events, by topic and partition. All events of a key go to one partition."""
    tables: Tables = {entity: {} for entity in shape.draw_row}
    topics: dict[Partition, list[Record]] = {}
    seen: set[Any] = set()
    for n, event in enumerate(events):
        at = tuple(event.key.values())
        table = tables[event.entity]
        partition = partition_of(event, partitions)
        log = topics.setdefault(partition, [])
        snapshot = (event.entity, at) not in seen
        seen.add((event.entity, at))
        log.append(make_record(event, partition, len(log), n + 3 if snapshot else n, table.get(at)))
        if event.truncate:
            table.clear()
        elif not event.broken:
            if event.row is None:
                table.pop(at, None)
            else:
                table[at] = event.row
    return topics


def partition_of(event: Event, partitions: int) -> Partition:
    """The topic and partition of an event, by its key."""
    return event.entity, sum(str(tuple(event.key.values())).encode()) % partitions


def make_record(event: Event, partition: Partition, offset: int, timestamp: int, old: Row | None) -> Record:
    """The record of an event. `timestamp`: the source's. A snapshot read has a later one than the updates that follow it."""
    value: bytes | None = None
    if event.truncate:
        value = json.dumps({"op": "t", "before": None, "after": None, "source": {}}).encode()
    elif event.broken:
        value = b"{"
    elif event.row is not None:
        unavailable = {c for c in event.unavailable if old is not None and old.get(c) == event.row.get(c)}
        row = {c: UNAVAILABLE if c in unavailable else v for c, v in event.row.items()}
        value = json.dumps(row, default=float).encode()
    return Record(
        topic=partition[0],
        partition=partition[1],
        offset=offset,
        epoch=1,
        timestamp=timestamp,
        key=None if event.truncate else json.dumps(event.key).encode(),
        value=value,
    )
