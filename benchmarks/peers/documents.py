"""Reads the messages of a peer, and compares its last documents with the answer of the product's SQL.

Promises: a message is the email of a user, and a function that decodes the document, or None where the peer deletes the document.
So only the last document of each user is decoded: Flink sends a million.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.steps import EXAMPLE
from processor.environment.programs.servers import start_postgres
from processor.language.definitions.load import load, read_directory
from processor.tools.inspect.oracle import oracle
from processor.values import canonical_json
from processor.values.record import Record
from processor.values.recorded_topics import read_records

Documents = dict[str, Any]
Messages = Iterator[tuple[str, Callable[[], Any] | None]]
STARRED = ("owner", "name", "description")
OPENED = ("repo", "repo_owner", "index", "title", "status", "created_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How many `messages` a peer sent, how many `documents` a reader has after them, and for how many users the document differs
    from the answer of SQL."""

    messages: int
    documents: int
    wrong: int


def compare(messages: Messages, answer: Documents, *, ordered: bool) -> Comparison:
    """Compares the last documents with the answer. Without `ordered`, a list may have any order."""
    sent, latest = 0, {}
    for email, decode in messages:
        sent, latest[email] = sent + 1, decode
    last = {email: decode() for email, decode in latest.items() if decode is not None}
    pairs = [(last.get(email), answer.get(email)) for email in last.keys() | answer.keys()]
    if not ordered:
        pairs = [(_without_order(document), _without_order(expected)) for document, expected in pairs]
    wrong = sum(document != expected for document, expected in pairs)
    return Comparison(messages=sent, documents=len(last), wrong=wrong)


def read_statestore(path: Path) -> Messages:
    """The messages of `statestore try --to`, or of the job's topic."""
    for record in read_records(str(path)):
        key = json.loads(record.key or b"null")
        yield key["email"], None if record.value is None else partial(json.loads, record.value)


def read_pathway(path: Path) -> Messages:
    """The messages of Pathway's changes: at one time, the removal of a row and its new form are one message."""
    changes: dict[tuple[int, str], Any] = {}
    with path.open(encoding="utf-8") as lines:
        for change in map(json.loads, lines):
            place = change["time"], change["email"]
            if change["diff"] > 0:
                changes[place] = partial(_pathway_document, change)
            else:
                changes.setdefault(place, None)
    for (_, email), decode in sorted(changes.items(), key=lambda change: change[0]):
        yield email, decode


def _pathway_document(row: Mapping[str, Any]) -> Any:
    return {
        "email": row["email"],
        "username": row["username"],
        "starred_repos": [
            dict(zip(STARRED, (owner, name, text), strict=True)) for _, name, owner, text in row["starred_repos"] or ()
        ],
        "pull_requests": [dict(zip(OPENED, place[1:], strict=True)) for place in row["pull_requests"] or ()],
        "payment_verified": row["payment"] and row["payment"][1],
    }


def read_flink(path: Path) -> Messages:
    """The messages of Flink's print connector, `+I[email, document]`. A topic with keys gets no message for `-U`."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            kind, (email, _, text) = line[:2], line[3:-2].partition(", ")
            if kind in ("+I", "+U"):
                yield email, partial(_flink_document, text)
            elif kind == "-D":
                yield email, None


def _flink_document(text: str) -> Any:
    """Flink puts a list into an object as text, and null in place of an empty list."""
    document = json.loads(text)
    return document | {name: json.loads(document[name] or "[]") for name in ("starred_repos", "pull_requests")}


def _without_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_order(part) for name, part in value.items()}
    return sorted(json.dumps(part, sort_keys=True) for part in value) if isinstance(value, list) else value


JOINED = ("username", "author", "user_id")
"""The join columns of the product's SQL; each gets an index."""


def sql_documents(records: Iterable[Record]) -> Documents:
    """The documents of user_profile over the last rows of the history, by email."""
    definitions = load(read_directory(EXAMPLE))
    last = {(record.topic, record.key): record.value for record in records}
    with tempfile.TemporaryDirectory(prefix="statestore-peers-") as directory:
        part = start_postgres(Path(directory) / "postgres")
        try:
            with oracle(part.endpoint, "peers", definitions.entities) as tables:
                for name, entity in definitions.entities.items():
                    indexes = [(column,) for column in JOINED if column in entity.columns]
                    rows = (v for (topic, _), v in last.items() if topic == name and v is not None)
                    tables.fill(name, map(canonical_json.loads, rows), indexes)
                documents = tables.documents(definitions.products["user_profile"])
        finally:
            part.stop()
    return {document["email"]: document for document in documents.values()}
