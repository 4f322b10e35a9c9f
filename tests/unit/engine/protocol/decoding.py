"""Entities, and records given to decode: each function here answers one part of the outcome."""

import json
from collections.abc import Mapping
from typing import Any

from processor.engine.protocol.decode import decode
from processor.values.entity import DecimalForm, Entity, parse_type
from processor.values.record import Change, Decoded, Record, Rejected

Forms = DecimalForm | Mapping[str, DecimalForm]


def entity(name: str, key: str, columns: str, format: str | None = None, decimals: Forms | None = None) -> Entity:
    """`columns`: `id int, at timestamp(ms)`."""
    pairs = (column.strip().rsplit(" ", 1) for column in columns.split(", "))
    types = {name: parse_type(text) for name, text in pairs}
    return Entity(name=name, topic=name, key=tuple(key.split()), columns=types, format=format, decimals=decimals)


USER = entity("user", "email", "id int, email string, username string, at timestamp")
STAR = entity("star", "owner repo", "owner string, repo string, n int")
ITEM = entity("item", "id", "id int, amount decimal(12,2), bio string, tags string[], at timestamp, j json, on date")


def raw(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()


def decoded(entity: Entity | None, key: Any, value: Any) -> Decoded:
    record = Record(topic="t", partition=0, offset=0, key=raw(key), value=raw(value))
    return decode(record, entity)


def change(entity: Entity, key: Any, value: Any) -> tuple[tuple[Any, ...], Any]:
    result = decoded(entity, key, value)
    assert isinstance(result, Change), result
    assert result.entity == entity.name
    return result.key, None if result.row is None else dict(result.row)


def reason(entity: Entity, key: Any, value: Any) -> str:
    result = decoded(entity, key, value)
    assert isinstance(result, Rejected), result
    assert "\n" not in result.reason
    return result.reason


def envelope(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"table": "t"}, "transaction": None, "op": op, "ts_ms": 1}


def with_schema(payload: Any, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schema": {"type": "struct", "fields": fields}, "payload": payload}
