"""Runs a captured topic through `statestore try`, and gives the documents, the dead letters and the counts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from processor.cli.main import main
from tests.unit.engine.protocol.type_tables import SAMPLES

USERS = {"id": "int", "name": "string", "balance": "decimal(12,2)", "bio": "string"}
ORDERS = {"id": "int", "user_id": "int", "note": "string"}
ENTITIES = {
    "users": {"topic": "app.public.users", "key": ["id"], "columns": USERS, "decimals": "bytes"},
    "orders": {"topic": "app.public.orders", "key": ["id"], "columns": ORDERS},
    "labels": {"topic": "app.public.labels", "key": ["id"], "columns": {"id": "string", "note": "string"}},
}
PRODUCTS = (
    {"product": "people", "root": "users", "embed": {"orders": {"many": "orders", "on": {"user_id": "id"}}}},
    {"product": "tags", "root": "labels"},
)


class Outcome(NamedTuple):
    """What a run left: the last document of each key by product, the dead letters, the topics without an entity, the counts."""

    documents: dict[str, dict[Any, Any]]
    dead_letters: list[dict[str, Any]]
    unknown_topics: dict[str, int]
    counts: dict[str, int]


def try_capture(
    file: str | Path,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    *words: str,
    entities: Mapping[str, Any] = ENTITIES,
    products: tuple[Mapping[str, Any], ...] = PRODUCTS,
) -> Outcome:
    """`file`: the name of a capture, or a path."""
    (folder / "entities.yaml").write_text(json.dumps(entities))
    for product in products:
        (folder / f"{product['product']}.yaml").write_text(json.dumps(product))
    source = file if isinstance(file, Path) else SAMPLES / f"{file}.jsonl.gz"
    assert main(["try", "--definitions", str(folder), "--from", str(source), "--json", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    documents: dict[str, dict[Any, Any]] = {str(product["product"]): {} for product in products}
    for message in found["published"]:
        (key,) = message["key"].values()
        documents[message["topic"]].pop(key, None)
        if message["value"] is not None:
            documents[message["topic"]][key] = message["value"]
    return Outcome(documents, found["dead_letters"], found["unknown_topics"], found["counts"])


def captured_rows(name: str) -> dict[str, list[dict[str, Any]]]:
    """The rows that the source had at the end of a capture."""
    rows: dict[str, list[dict[str, Any]]] = json.loads((SAMPLES / f"{name}.rows.json").read_text(encoding="utf-8"))
    return rows


def expected_documents(rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, dict[Any, Any]]:
    """The documents of the rows."""
    orders = rows.get("orders", [])
    people = {
        user["id"]: user | {"orders": [o for o in orders if o["user_id"] == user["id"]]} for user in rows["users"]
    }
    return {"people": people, "tags": {label["id"]: label for label in rows.get("labels", [])}}
