"""Drafts entities from records: the keys and the types as the records show them. Pure.

A schema decides where a record has one. Without a schema the values decide, and every type is a guess.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from processor.drafts.draft import DraftColumn, DraftEntity, fit_limits, short_names
from processor.drafts.schema_types import schema_column
from processor.drafts.seen_values import SeenValues
from processor.records import canonical_json
from processor.records.change_formats import DebeziumImage, key_schemas, read_image, unwrap
from processor.records.entity import Entity
from processor.records.framing import NO_SCHEMAS, FramedReader, is_framed, schema_ids
from processor.records.record import Record, Value


def draft_topics(records: Iterable[Record], schemas: FramedReader = NO_SCHEMAS) -> list[DraftEntity]:
    """An entity for each topic whose records change rows, in the order of the topics. `schemas`: reads framed records."""
    topics: dict[str, _Topic] = {}
    for record in records:
        if record.topic not in topics:
            topics[record.topic] = _Topic(record.topic)
        schemas.fetch(schema_ids(record))
        topics[record.topic].add(record, schemas)
    names = short_names(sorted(topic for topic, seen in topics.items() if seen.rows or seen.wrong))
    return [fit_limits(topics[topic].entity(name)) for topic, name in names.items()]


class _Topic:
    """What the records of one topic show. `rows`: how many of them have a row; `wrong`: why the first that nobody can read is
    none."""

    def __init__(self, topic: str) -> None:
        self.rows, self.wrong = 0, ""
        self._any = Entity(name=topic, topic=topic, key=(), columns={})
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._values: dict[str, SeenValues] = {}
        self._key: dict[str, None] = {}
        self._same: set[str] | None = None
        self._changed: set[str] = set()

    def add(self, record: Record, schemas: FramedReader) -> None:
        try:
            image = read_image(_read(record.value, schemas), self._any)
            key, schema = unwrap(_read_key(record.key, schemas), self._any)
        except ValueError as error:
            self.wrong = self.wrong or str(error)
            return
        if not isinstance(image, DebeziumImage) or (image.deleted and not image.row and not isinstance(key, dict)):
            return
        self.rows += 1
        if isinstance(key, dict):
            self._key |= dict.fromkeys(key)
            self._schemas |= key_schemas(schema, tuple(key)) or {}
        elif key is not None and not image.deleted:
            text = None if is_framed(record.key) else (record.key or b"").decode(errors="replace")
            same = {name for name, value in image.row.items() if value in (key, text)}
            self._same = same if self._same is None else self._same & same
        for name, described in (image.schemas or {}).items():
            known = self._schemas.get(name, described)
            if known != described and schema_column(known).type != schema_column(described).type:
                self._changed.add(name)
            self._schemas[name] = described
        members = image.row if not image.deleted else {}
        for name, value in ((key if isinstance(key, dict) else {}) | dict(members)).items():
            self._values.setdefault(name, SeenValues()).add(value)

    def entity(self, name: str) -> DraftEntity:
        columns = {column: self._column(column, seen) for column, seen in self._values.items()}
        key, guess = self._key_columns(columns)
        unschemed = sum(column not in self._schemas for column in columns)
        note = f"guess: {unschemed} types by the values of {self.rows} records without a schema" if unschemed else ""
        if not self.rows:
            note = f"no record of topic {self._any.topic} can be read: {self.wrong}"
        return DraftEntity(name=name, topic=self._any.topic, key=key, key_guess=guess, columns=columns, note=note)

    def _column(self, name: str, seen: SeenValues) -> DraftColumn:
        if name not in self._schemas:
            return seen.column()
        found = schema_column(self._schemas[name])
        return found._replace(guess="earlier records have another schema") if name in self._changed else found

    def _key_columns(self, columns: Mapping[str, DraftColumn]) -> tuple[tuple[str, ...], str]:
        """The key, and why it is a guess: an object names its columns, a bare value equals one of the row."""
        if self._key:
            return tuple(self._key), ""
        if self._same:
            found = min(self._same, key=list(columns).index)
            return (found,), "its values equal the Kafka key" if len(self._same) == 1 else _several(self._same)
        if self._same is None and "id" in columns:
            return ("id",), "by its name: the records have no Kafka key"
        return (), ""


def _several(names: Iterable[str]) -> str:
    return f"the Kafka key equals each of {', '.join(sorted(names))}"


def _read(data: bytes | None, schemas: FramedReader) -> Value:
    if data is None or not is_framed(data):
        return None if data is None else canonical_json.loads(data)
    return schemas.read(data)


def _read_key(data: bytes | None, schemas: FramedReader) -> Value:
    """The key; text that is no JSON counts as text."""
    try:
        return _read(data, schemas)
    except ValueError:
        if data is None or is_framed(data):
            raise
        return data.decode(errors="replace")
