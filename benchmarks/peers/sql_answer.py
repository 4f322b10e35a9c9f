"""The documents that the product's SQL gives for a history, by an embedded Postgres. Every peer is compared with them."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks.peers.documents import Documents
from benchmarks.steps import EXAMPLE
from processor.environment.programs.servers import start_postgres
from processor.language.definitions.load import load, read_directory
from processor.tools.inspect.oracle import oracle
from processor.values import canonical_json
from processor.values.record import Record

JOINED = ("username", "author", "user_id")
"""The columns by which the product's SQL finds rows; an index of each makes it fast."""


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
