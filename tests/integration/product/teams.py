"""Tables for the tests of list joins: teams, whose arrays name people."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from textwrap import dedent
from typing import Any

from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from processor.tools.inspect.oracle import oracle
from processor.values.record import Record
from tests.integration.product.published import last_documents

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Events = Sequence[tuple[str, Any]]
"""Entity and row, in order. A row with only its key is a delete."""
Ask = Callable[[Definitions, Rows], dict[str, Any]]


def published(definitions: Definitions, events: Events, size: int | None, lag: float = 0) -> dict[str, Any]:
    """The last documents of the one product, with `size` events in each batch."""
    (documents,) = last_documents(definitions, records(definitions, events), size, lag).values()
    return documents


def records(definitions: Definitions, events: Events) -> list[Record]:
    made = []
    for n, (entity, row) in enumerate(events):
        declared = definitions.entities[entity]
        key = {c: row[c] for c in declared.key}
        value = None if row.keys() == key.keys() and len(declared.columns) > len(key) else json.dumps(row).encode()
        made.append(Record(topic=declared.topic, partition=0, offset=n, key=json.dumps(key).encode(), value=value))
    return made


def definitions(entities: str, product: str) -> Definitions:
    return load({"entities.yaml": dedent(entities), "product.yaml": dedent(product)})


TEAMS = """
    team:
      key: [id]
      columns: {id: int, org: string, member_ids: "int[]", logins: "string[]", members: "json[]", at: "timestamp[]"}
    person:
      key: [id]
      columns: {id: int, org: string, login: string, name: string, born: timestamp, score: float}
    badge:
      key: [id]
      columns: {id: int, person: int, text: string}
"""


def team(id: int, **columns: Any) -> dict[str, Any]:
    return dict.fromkeys(("org", "member_ids", "logins", "members", "at")) | {"id": id} | columns


def person(id: int, **columns: Any) -> dict[str, Any]:
    return dict.fromkeys(("org", "login", "name", "born", "score")) | {"id": id} | columns


def asking(url: str) -> Ask:
    """A function that answers the documents of the one product by message key, from Postgres. It checks that the steps publish
    the same documents: in one batch, in batches of one row, and with referring rows first."""

    def answer(definitions: Definitions, rows: Rows) -> dict[str, Any]:
        documents = answered(url, definitions, rows)
        events = [(entity, row) for entity, found in rows.items() for row in found]
        assert published(definitions, events, None) == documents
        assert published(definitions, events, 1) == documents
        assert published(definitions, events[::-1], 1) == documents
        return documents

    return answer


def answered(url: str, definitions: Definitions, rows: Rows) -> dict[str, Any]:
    """The documents of the one product, from Postgres."""
    (product,) = definitions.products.values()
    with oracle(url, f"lists_{uuid.uuid4().hex[:8]}", definitions.entities) as postgres:
        postgres.load(rows)
        return postgres.documents(product)
