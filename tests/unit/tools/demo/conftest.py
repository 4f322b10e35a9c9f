"""A plain reader of the demo's records, which shares no code with their writer: it finds the change that each line makes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from processor.tools.demo.github import History, build_history, load_events

EVENTS = Path(__file__).parents[4] / "examples" / "github" / "events.ndjson.gz"

Row = dict[str, Any]

TYPES: dict[str, dict[str, type]] = {
    "user": {"id": int, "email": str, "username": str, "registered_at": str},
    "repo": {
        "owner": str, "name": str, "description": str, "star_count": int, "fork_count": int, "created_at": str,
        "updated_at": str,
    },
    "pull_request": {
        "repo": str, "repo_owner": str, "index": int, "author": str, "title": str, "status": str, "created_at": str,
    },
    "star": {"username": str, "repo_name": str, "repo_owner": str, "created_at": str},
    "payment_info": {"id": int, "user_id": int, "verified": bool},
}  # fmt: skip
KEYS = {
    "user": ("email",),
    "repo": ("owner", "name"),
    "pull_request": ("repo", "repo_owner", "index"),
    "star": ("username", "repo_name", "repo_owner"),
    "payment_info": ("id",),
}


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """A line of the five tables: the row before it and after it. `line_number` counts from 0."""

    line_number: int
    table: str
    key: tuple[Any, ...]
    old: Row | None
    new: Row | None
    transaction: bool


@pytest.fixture(scope="session")
def events() -> list[Row]:
    """The events of the example."""
    return load_events(EVENTS)


@pytest.fixture(scope="session")
def demo_history(events: list[Row]) -> History:
    """The history of the example's events."""
    return build_history(events)


@pytest.fixture(scope="session")
def changes(demo_history: History) -> list[RowChange]:
    """The change of each valid line."""
    return list(row_changes(demo_history.records))


@pytest.fixture(scope="session")
def broken_records(demo_history: History) -> list[Row]:
    """The lines of the five tables that break their contract."""
    return [record for record in demo_history.records if record["topic"] in TYPES and is_broken(record)]


def row_changes(records: list[dict[str, Any]]) -> Iterator[RowChange]:
    """The change of each valid line of the five tables, tombstones included, in file order."""
    rows: dict[tuple[str, tuple[Any, ...]], Row] = {}
    for line_number, record in enumerate(records):
        if record["topic"] not in TYPES or is_broken(record):
            continue
        table, value = record["topic"], record["value"]
        key = tuple(record["key"][column] for column in KEYS[table])
        old, new = rows.pop((table, key), None), row_of(value)
        if new is not None:
            rows[table, key] = new
        transaction = bool(isinstance(value, dict) and value.get("transaction"))
        yield RowChange(line_number=line_number, table=table, key=key, old=old, new=new, transaction=transaction)


def row_of(value: Any) -> Row | None:
    """The row after a value: `after` of an envelope, a flattened record without its marks, or a plain row."""
    if value is None:
        return None
    if "op" in value:
        return dict(value["after"]) if value["op"] != "d" else None
    if value.get("__deleted") == "true":
        return None
    return {column: cell for column, cell in value.items() if not column.startswith("__")}


def is_broken(record: dict[str, Any]) -> bool:
    """Whether a line of the five tables breaks its contract: no JSON, no key, a key unlike its row, or a wrong type."""
    table, key, value = record["topic"], record["key"], record["value"]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return True
    if any(key.get(column) is None for column in KEYS[table]):
        return True
    row = row_of(value)
    if row is None:
        return False
    if any(not _is_time(cell) for column, cell in row.items() if column.endswith("_at")):
        return True
    wrong = any(row.get(c) is not None and type(row[c]) is not kind for c, kind in TYPES[table].items())
    return wrong or any(row[column] != key[column] for column in KEYS[table])


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
