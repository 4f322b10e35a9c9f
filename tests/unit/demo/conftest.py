"""The demo's records read back naively, apart from the code that wrote them: what each line does to which row."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from processor.demo.github import History, history, load_events

EVENTS = Path(__file__).parents[3] / "examples" / "github" / "events.ndjson.gz"

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
class Step:
    """One line that may change a row: the row before it and after it; `at` is the line's number."""

    at: int
    table: str
    key: tuple[Any, ...]
    old: Row | None
    new: Row | None
    transaction: bool


@pytest.fixture(scope="session")
def events() -> list[Row]:
    """The events of the slice that is shipped."""
    return load_events(EVENTS)


@pytest.fixture(scope="session")
def told(events: list[Row]) -> History:
    """The history that they make."""
    return history(events)


@pytest.fixture(scope="session")
def story(told: History) -> list[Step]:
    """What each good line does."""
    return list(steps(told.records))


@pytest.fixture(scope="session")
def dead_letters(told: History) -> list[Row]:
    """The lines of the five tables that break their contract."""
    return [record for record in told.records if record["topic"] in TYPES and is_dead_letter(record)]


def steps(records: list[dict[str, Any]]) -> Iterator[Step]:
    """Every good line of the five tables, tombstones included, folded in file order."""
    rows: dict[tuple[str, tuple[Any, ...]], Row] = {}
    for at, record in enumerate(records):
        if record["topic"] not in TYPES or is_dead_letter(record):
            continue
        table, value = record["topic"], record["value"]
        key = tuple(record["key"][column] for column in KEYS[table])
        old, new = rows.pop((table, key), None), image(value)
        if new is not None:
            rows[table, key] = new
        transaction = bool(isinstance(value, dict) and value.get("transaction"))
        yield Step(at=at, table=table, key=key, old=old, new=new, transaction=transaction)


def image(value: Any) -> Row | None:
    """The row that a value leaves: an envelope's `after`, a flattened record without its marks, a plain row."""
    if value is None:
        return None
    if "op" in value:
        return dict(value["after"]) if value["op"] != "d" else None
    if value.get("__deleted") == "true":
        return None
    return {column: cell for column, cell in value.items() if not column.startswith("__")}


def is_dead_letter(record: dict[str, Any]) -> bool:
    """Whether a line of the five tables breaks its contract: no JSON, no key, key and row that differ, a wrong type."""
    table, key, value = record["topic"], record["key"], record["value"]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return True
    if any(key.get(column) is None for column in KEYS[table]):
        return True
    row = image(value)
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
