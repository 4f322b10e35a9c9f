"""Drafts entities from records: the keys and the types as the records show them. Pure.

A schema decides where a record has one. Without a schema the values decide, and every type is a guess.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from processor.drafts.draft import DraftColumn, DraftEntity, fit_limits, short_names
from processor.drafts.schema_types import schema_column
from processor.drafts.seen_values import SeenValues
from processor.records.change_formats import DebeziumImage, key_schemas, read_image, stated_tables, unwrap
from processor.records.entity import DeleteFlag, Entity
from processor.records.foreign.delete_flags import SeenFlag, flag_text, seen_flags
from processor.records.framing import NO_SCHEMAS, FramedReader, is_framed, schema_ids
from processor.records.mismatch import reason_code
from processor.records.record import Record, Value
from processor.records.values import PLAIN
from processor.steps.decode import read_part


def draft_topics(records: Iterable[Record], schemas: FramedReader = NO_SCHEMAS) -> list[DraftEntity]:
    """An entity for each topic whose records change rows, in the order of the topics. `schemas`: reads framed records."""
    topics: dict[str, _Topic] = {}
    tables: dict[str, dict[str, _Topic]] = {}
    for record in records:
        if record.topic not in topics:
            topics[record.topic] = _Topic(record.topic)
        schemas.fetch(schema_ids(record))
        if table := topics[record.topic].add(record, schemas):
            tables.setdefault(record.topic, {}).setdefault(table, _Topic(record.topic)).add(record, schemas)
    for topic, found in tables.items():
        if len(found) > 1:
            topics[topic] = _one_table(topic, found)
    names = short_names(sorted(topic for topic, seen in topics.items() if seen.rows or seen.wrong))
    return [fit_limits(topics[topic].entity(name)) for topic, name in names.items()]


def _one_table(topic: str, found: Mapping[str, "_Topic"]) -> "_Topic":
    """The table of a topic that has several: the one that ends its name, else the one with most records."""
    ends = [table for table in found if topic.endswith(f".{table.rpartition('.')[2]}")]
    table = ends[0] if len(ends) == 1 else max(found, key=lambda name: found[name].rows)
    others = ", ".join(sorted(found.keys() - {table}))
    found[table].table = table
    found[table].hint = f"the topic has other tables, too, which the job ignores: {others}"
    return found[table]


class _Topic:
    """What the records of one topic show. `rows`: how many of them have a row; `wrong`: why the first that nobody can read is
    none. `table`: the only table that counts, where the topic has several; `hint`: what a reader has to know."""

    def __init__(self, topic: str) -> None:
        self.rows, self.wrong, self.table, self.hint = 0, "", "", ""
        self._flags: dict[str, SeenFlag] = {}
        self._gone: dict[str, dict[str, None]] = {}
        self._any = Entity(name=topic, topic=topic, key=(), columns={})
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._values: dict[str, SeenValues] = {}
        self._key: dict[str, None] = {}
        self._same: set[str] | None = None
        self._changed: set[str] = set()

    def add(self, record: Record, schemas: FramedReader) -> str:
        """Takes a record. Returns the table that it names, empty where it names none."""
        try:
            value = read_part(record, "value", schemas)
            image = read_image(value, self._any)
            key, schema = unwrap(_read_key(record, schemas), self._any)
            if isinstance(image, DebeziumImage) and isinstance(key, dict):
                _refuse_envelope(image.row, key)
        except ValueError as error:
            self.wrong = self.wrong or str(error)
            return ""
        if not isinstance(image, DebeziumImage) or (image.deleted and not image.row and not isinstance(key, dict)):
            return ""
        self.rows += 1
        if image.reading is PLAIN or image.refusal is not None:
            for flag in seen_flags(image.row, ()):
                self._flags[flag.column] = flag
                if flag.gone:
                    self._gone.setdefault(flag.column, {})[flag_text(flag.value)] = None
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
        for name, member in ((key if isinstance(key, dict) else {}) | dict(members)).items():
            self._values.setdefault(name, SeenValues()).add(member)
        payload = unwrap(value, self._any)[0]
        stated = stated_tables(payload) if type(payload) is dict else ()
        return stated[-1] if stated else ""

    def entity(self, name: str) -> DraftEntity:
        flags = {flag.member for flag in self._flags.values()} - self._key.keys()
        columns = {column: self._column(column, seen) for column, seen in self._values.items() if column not in flags}
        key, guess = self._key_columns(columns)
        unschemed = sum(column not in self._schemas for column in columns)
        note = f"guess: {unschemed} types by the values of {self.rows} records without a schema" if unschemed else ""
        if not self.rows:
            note = f"no record of topic {self._any.topic} can be read: {self.wrong}"
        elif self.wrong:
            note = _with(note, f"some records cannot be read: {self.wrong}")
        for column in sorted(self._flags.keys() - self._gone.keys()):
            note = _with(note, f"{column} looks like an operation: write `deleted`, or declare it if it is a column")
        return DraftEntity(
            name=name,
            topic=self._any.topic,
            key=key,
            key_guess=guess,
            columns=columns,
            note=_with(note, self.hint),
            unread=not self.rows,
            table=self.table,
            deleted=tuple(DeleteFlag(column, _values(column, texts)) for column, texts in sorted(self._gone.items())),
        )

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


def _with(note: str, more: str) -> str:
    return "; ".join(text for text in (note, more) if text)


def _values(column: str, texts: Iterable[str]) -> tuple[str, ...]:
    """The values of a flag that say a delete; none for a time, of which each value says so."""
    return () if column.endswith("_at") else tuple(texts)


def _refuse_envelope(row: Mapping[str, Value], key: Mapping[str, Value]) -> None:
    """Raises ValueError for a row whose key is in one of its objects alone."""
    if key and key.keys().isdisjoint(row):
        for name, inner in row.items():
            if type(inner) is dict and key.keys() <= inner.keys():
                raise ValueError(f"an envelope that statestore does not read: its member {name!r} has the key")


def _several(names: Iterable[str]) -> str:
    return f"the Kafka key equals each of {', '.join(sorted(names))}"


def _read_key(record: Record, schemas: FramedReader) -> Value:
    """The key; text that is no JSON counts as text."""
    try:
        return read_part(record, "key", schemas)
    except ValueError as error:
        if record.key is None or is_framed(record.key) or reason_code(error) == "other-registry":
            raise
        return record.key.decode(errors="replace")
