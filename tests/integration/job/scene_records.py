"""The records of a scene: those that it produces, and the documents of those that its job publishes."""

import json
from typing import Any

from processor.values.record import Record

Line = tuple[str, Any, Any]
"""Entity, key and value of a record; bytes stay as they are, None is a tombstone."""


def user(number: int, name: str) -> Line:
    return "user", {"id": number}, {"id": number, "name": name}


def star(who: str, repo: str, note: str = "") -> Line:
    return "star", {"who": who, "repo": repo}, {"who": who, "repo": repo, "note": note}


def gone(line: Line) -> Line:
    return line[0], line[1], None


def last_documents(published: list[Record]) -> dict[str, Any]:
    documents: dict[str, Any] = {}
    sequences: dict[str, int] = {}
    for record in published:
        key = (record.key or b"").decode()
        sequence = int(dict(record.headers)["statestore.sequence"] or b"")
        assert sequence > sequences.get(key, 0), f"{key}: {sequence} after {sequences[key]}"
        sequences[key] = sequence
        documents[key] = None if record.value is None else json.loads(record.value)
    return {key: document for key, document in documents.items() if document is not None}


def bytes_of(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
