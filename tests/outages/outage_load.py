"""The load: the source of `tests.edits.soak`, whose table `label` comes as framed Avro, with a new schema now and then;
and the verdict of SQL over its tables.

A worker of the job keeps a schema, so only a new one makes it ask the schema registry.
"""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fastavro

from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import read_topic
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from processor.tools.demo.tour import differing_keys
from processor.tools.inspect.oracle import oracle
from processor.values import canonical_json
from processor.values.record import Message, Record
from tests.edits.source import DELETES, DRAW, EditedSource
from tests.edits.verdict import disordered
from tests.simulator.edit_shapes import CONTENTS, texts
from tests.simulator.shape_definitions import STARS
from tests.support.registry_stub import RegistryStub

FRAMED = "label"
RECORDS_PER_SCHEMA = 25
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
TEXT: list[str] = ["null", "string"]
COLUMNS = {"repo_owner": TEXT, "repo_name": TEXT, "text": "string", "n": "int"}
VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "int"}, *({"name": name, "type": kind} for name, kind in COLUMNS.items())],
}
AVRO = "fans"
"""The product whose documents are Avro."""
REJECTS = "statestore.rejects"


def definitions() -> dict[str, str]:
    """The files of the definitions: three products with joins by slots, by keys and by an index both ways."""
    files = {"entities.yaml": STARS["entities.yaml"], **texts({"profile": 3, "fans": 1, "labels": 1})}
    files[f"{AVRO}.json"] = json.dumps({**CONTENTS[AVRO][1], "format": "avro"})
    return files


def write_definitions(folder: Path) -> Definitions:
    """Writes the files into a folder, and loads them."""
    folder.mkdir()
    for name, text in definitions().items():
        (folder / name).write_text(text, encoding="utf-8")
    return load(definitions())


@dataclass(slots=True, kw_only=True)
class FramedSource(EditedSource):
    """The source. `stub`: gets its schemas."""

    stub: RegistryStub
    framed: int = 0
    schemas: tuple[int, int] = (0, 0)

    def change(self, entity: str, deletes: float = DELETES) -> None:
        """Draws a row, and puts it in place of the row of its key, or deletes that row."""
        if entity != FRAMED:
            super(FramedSource, self).change(entity, deletes)
            return
        self.n += 1
        row = {**DRAW[entity](self.chance), "n": self.n}
        key = {"id": row["id"]}
        plain = canonical_json.encode(key)
        gone = self.chance.random() < deletes and plain in self.tables[entity]
        if gone:
            del self.tables[entity][plain]
        else:
            self.tables[entity][plain] = row
        of_key, of_value = self._present()
        value = None if gone else _frame(of_value, VALUE, row)
        self.outbox.send(Message(topic=entity, key=_frame(of_key, KEY, key), value=value, headers=()))

    def _present(self) -> tuple[int, int]:
        """The ids of the schemas of a key and of a value. Each new one of a value is another text of the same schema. The id of
        the key stays, because it is a part of the bytes that choose the partition."""
        if self.framed % RECORDS_PER_SCHEMA == 0:
            value = {**VALUE, "doc": f"the {self.framed}th record begins it"}
            key = self.schemas[0] or self.stub.add(KEY, subject="label-key")
            self.schemas = (key, self.stub.add(value, subject=f"label-value-{self.framed}"))
        self.framed += 1
        return self.schemas


def _frame(number: int, schema: Mapping[str, Any], value: Mapping[str, Any]) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(dict(schema)), value)
    return b"\0" + number.to_bytes(4, "big") + body.getvalue()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageVerdict:
    """The comparison of all documents with SQL. `servers`: of the broker itself; `postgres`: a database for the tables of SQL."""

    servers: str
    postgres: str
    loaded: Definitions
    source: FramedSource

    def differences(self) -> list[str]:
        """A line for each document that is not that of SQL, for each message out of order, and for each dead letter."""
        found = [f"a dead letter: {record.headers}" for record in self._messages(REJECTS)]
        with oracle(self.postgres, "outages_oracle", self.loaded.entities) as tables:
            tables.load({name: rows.values() for name, rows in self.source.tables.items()})
            for name, product in self.loaded.products.items():
                published = self.published(name)
                truth = tables.documents(product)
                found += [
                    f"{name} {key}: the last document is not that of SQL" for key in differing_keys(published, truth)
                ]
                found += disordered(name, published)
        return found

    def published(self, name: str) -> list[Record]:
        """All messages of a product so far; those of Avro as JSON."""
        return [self._plain(name, record) for record in self._messages(self.loaded.products[name].topic)]

    def _messages(self, topic: str) -> Iterator[Record]:
        if Admin(self.servers, {}).topics([topic]):
            yield from read_topic(self.servers, {}, topic)

    def _plain(self, name: str, record: Record) -> Record:
        if name != AVRO or record.value is None:
            return record
        number = int.from_bytes(record.value[1:5], "big")
        schema = fastavro.parse_schema(json.loads(self.source.stub.schemas[number]["schema"]))
        document = fastavro.schemaless_reader(io.BytesIO(record.value[5:]), schema, None)
        return replace(record, value=canonical_json.encode(document))
