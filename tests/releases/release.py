"""The releases whose files are kept under tests/data/releases: the story that `tests.releases.record` plays, and its items."""

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import decompress, error

from processor.environment.settings.settings import Settings
from processor.values.record import Record
from statestore.dynamodb import requests
from statestore.store import Item

RELEASES = Path(__file__).parents[1] / "data" / "releases"
SETTINGS = Settings(
    job="release",
    table="release",
    registry_schema="release",
    dead_letter_topic="release.rejects",
    slots=3,
    lanes=2,
    wait_seconds=0.2,
    settle_seconds=0.2,
    fan_out_page=1,
)
DEFINITIONS = {
    "entities.yaml": json.dumps(
        {
            "user": {"topic": "release.user", "key": ["id"], "columns": {"id": "int", "name": "string"}},
            "star": {
                "topic": "release.star",
                "key": ["who", "repo"],
                "columns": {"who": "string", "repo": "string", "owner": "int"},
                "shards": 2,
            },
            "team": {"topic": "release.team", "key": ["id"], "columns": {"id": "int", "member_ids": "int[]"}},
        }
    ),
    "profile.yaml": json.dumps(
        {
            "product": "profile",
            "topic": "release.profile",
            "root": "star",
            "fields": ["who", "repo"],
            "embed": {"owner": {"one": "user", "on": {"name": "who"}, "fields": ["id", "name"]}},
        }
    ),
    "team.yaml": json.dumps(
        {
            "product": "team",
            "topic": "release.team_members",
            "root": "team",
            "fields": ["id"],
            "embed": {"members": {"many": "user", "on": {"id": "member_ids[]"}, "value": "name"}},
        }
    ),
}


def first_records() -> list[Record]:
    """What the first run reads. A name is no number, so one of them is a dead letter."""
    rows: list[tuple[str, Any, Any]] = [
        ("user", {"id": 1}, {"id": 1, "name": "ada", "note": {"since": 2015}}),
        ("user", {"id": 2}, {"id": 2, "name": ["no text"]}),
        ("user", {"id": 3}, {"id": 3, "name": "cyd"}),
        *(("star", {"who": "ada", "repo": f"r{n}"}, {"who": "ada", "repo": f"r{n}", "owner": 7}) for n in range(4)),
        ("star", {"who": "cyd", "repo": "r9"}, {"who": "cyd", "repo": "r9", "owner": None}),
        ("team", {"id": 1}, {"id": 1, "member_ids": [3, 1, 4]}),
    ]
    return list(_records(rows, {}))


def later_records() -> list[Record]:
    """What the second run reads: a user with more stars than a page, another name, and a deletion."""
    rows: list[tuple[str, Any, Any]] = [
        ("user", {"id": 1}, {"id": 1, "name": "ada", "note": {"since": 2016}}),
        ("user", {"id": 3}, {"id": 3, "name": "ada"}),
        ("star", {"who": "cyd", "repo": "r9"}, None),
        ("team", {"id": 1}, {"id": 1, "member_ids": [1, 4]}),
    ]
    before = Counter(one.topic.removeprefix("release.") for one in first_records())
    return list(_records(rows, before))


def _records(rows: Iterable[tuple[str, Any, Any]], offsets: dict[str, int]) -> Iterator[Record]:
    for entity, key, row in rows:
        offset = offsets.get(entity, 0)
        offsets[entity] = offset + 1
        value = None if row is None else json.dumps(row).encode()
        yield Record(
            topic=f"release.{entity}", partition=0, offset=offset, epoch=1, key=json.dumps(key).encode(), value=value
        )


def wire_items(release: Path) -> list[dict[str, Any]]:
    """The items of a release as DynamoDB has them."""
    lines = (release / "items.jsonl").read_text(encoding="utf-8").splitlines()
    items: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [
        {name: {"B": b64decode(value["B"])} if "B" in value else value for name, value in item.items()}
        for item in items
    ]


def stored_items(release: Path) -> list[Item]:
    """The items of a release as the store reads them."""
    return [requests.item(wire) for wire in wire_items(release)]


def shapes(items: Iterable[Item]) -> dict[str, set[tuple[str, str]]]:
    """The attributes of the items of each kind, each with the type of its value. JSON in a text, or in
    compressed bytes, counts as its value; other bytes are entries of the ledger."""
    found: dict[str, set[tuple[str, str]]] = {}
    for item in items:
        kind = _kind(item)
        found.setdefault(kind, set()).update((name, _type(value)) for name, value in item.items())
    return found


def _kind(item: Item) -> str:
    kind, name = item["PK"].partition("#")[0], item["SK"].partition("#")[0]
    if kind == "TABLE":
        return f"{'delete marker' if '_deleted' in item else 'row'} of {item['PK'].split('#')[1]}"
    return f"{kind} {name}" if kind == "WALKS" or name in ("fan-out", "backlog") else kind


def _type(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            value = decompress(value).decode()
        except error:  # a packed entry of the ledger
            return "bytes"
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = json.loads(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_type(inner)}' for name, inner in sorted(value.items()))}}}"
    if isinstance(value, list):
        return f"[{', '.join(sorted({_type(inner) for inner in value}))}]"
    return type(value).__name__
