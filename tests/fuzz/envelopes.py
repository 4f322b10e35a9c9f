"""Broken records of each kind of envelope: each part of a sample removed, renamed, or replaced by a value of another type.

The rule: such a record is a dead letter, is ignored, or changes a row. No record becomes a row whose columns outside the key are
null though its sample has values.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from processor.engine.protocol.decode import decode
from processor.engine.rounds.decoding import shown_keys
from processor.values import canonical_json
from processor.values.entity import Entity, parse_type
from processor.values.record import Change, Ignored, Record, Rejected, Truncated
from tests.fuzz.finding import Finding, readable_errors
from tests.fuzz.mutations import mutate_bytes, mutate_json
from tests.unit.values.envelopes.samples import SAMPLES

ROW = {"id": 7, "name": "Ann", "qty": 2, "amount": "12.34", "at": "2026-11-20T22:38:37Z", "paid": True}
COLUMNS = {"id": "int", "name": "string", "qty": "int", "amount": "decimal(12,2)", "at": "timestamp", "paid": "bool"}
ITEM = Entity(name="item", topic="t", key=("id",), columns={name: parse_type(text) for name, text in COLUMNS.items()})
KEYS = (None, b'{"id":7}', b"[7]", b"7", b"public.item.7", b"\xff", b"", b"[]", b"{}")
BROKEN: tuple[Any, ...] = (
    None, "", "x", 0, True, [], {}, [{}], {"id": None}, "__debezium_unavailable_value", "infinity", "NaN", "0000-00-00", 10**200,
)  # fmt: skip


def samples_of(name: str) -> list[Any]:
    """The values of a kind that change a row, or none."""
    samples = SAMPLES[name]
    changes = (samples.insert(ROW), samples.snapshot(ROW), samples.update({**ROW, "id": 6}, ROW), samples.delete(ROW))
    others = (samples.truncate(), samples.in_transaction(ROW), *samples.controls())
    return [json.loads(json.dumps(value)) for value in (*changes, *others) if value is not None]


def poisoned(name: str) -> Iterator[Any]:
    """Each sample of the kind with one part broken."""
    for value in samples_of(name):
        yield [value]
        yield {"value": value}
        yield {**value, "more": value}
        for path in _paths(value):
            yield from (_with(value, path, change) for change in (_removed, _renamed, _nested))
            yield from (_with(value, path, lambda parent, key, part=part: {**parent, key: part}) for part in BROKEN)


def check(name: str, value: Any) -> None:
    """Decodes the value with and without a key, for an entity that pins the kind, and for another. Raises Finding."""
    data = canonical_json.encode(value)
    for key in KEYS[:2]:
        for table in _tables(name):
            _check_record(Record(topic="t", partition=0, offset=0, key=key, value=data), table)


@cache
def _tables(name: str) -> tuple[Entity, ...]:
    flags = SAMPLES[name].flags
    own = replace(ITEM, format=name, deleted=flags, table="public.item", unrepresentable="null")
    return (ITEM, replace(ITEM, format=name), own)


def envelopes(random: Random) -> None:
    """Any number of changes to the samples, and to their bytes."""
    name = random.choice(sorted(SAMPLES))
    value = random.choice(samples_of(name))
    for _ in range(random.randint(1, 4)):
        value = mutate_json(value, random)
    data = canonical_json.encode(value)
    if random.random() < 0.2:
        data = mutate_bytes(data, random)
    table = replace(ITEM, format=random.choice((None, *SAMPLES)), deleted=random.choice(((), SAMPLES["row"].flags)))
    record = Record(topic="t", partition=0, offset=0, key=random.choice(KEYS), value=data)
    with readable_errors(data):
        decoded = decode(record, table)
        shown_keys(record, table)
        if not isinstance(decoded, Change | Ignored | Truncated | Rejected):
            raise Finding(f"{decoded} of {data!r}")


def _check_record(record: Record, table: Entity) -> None:
    shown_keys(record, table)
    match decode(record, table):
        case Rejected(reason=reason) if not reason or "\n" in reason or not reason.isprintable():
            raise Finding(f"{reason!r} of {record.value!r}")
        case Change(row=row) if row is not None and all(row[name] is None for name in COLUMNS if name != "id"):
            raise Finding(f"a row of nulls from {record.value!r}, key {record.key!r}, format {table.format}")


def _paths(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, part in value.items() if isinstance(value, dict) else ():
        yield (*above, name)
        yield from _paths(part, (*above, name))


def _with(value: Any, path: tuple[str, ...], change: Any) -> Any:
    name, *rest = path
    return {**value, name: _with(value[name], tuple(rest), change)} if rest else change(value, name)


def _removed(parent: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: part for key, part in parent.items() if key != name}


def _renamed(parent: dict[str, Any], name: str) -> dict[str, Any]:
    return {key.upper() if key == name else key: part for key, part in parent.items()}


def _nested(parent: dict[str, Any], name: str) -> dict[str, Any]:
    return {**parent, name: {name: parent[name]}}
