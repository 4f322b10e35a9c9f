"""Drafts entities from topics: from the records of a file or of a Kafka cluster, and from the subjects of its schema registry.

A schema decides where a record has one. Without a schema the values decide, and every type is a guess. The subjects TOPIC-key and
TOPIC-value draft an entity without a record.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from processor.engine.protocol.decode import read_part
from processor.environment.settings.resolve import resolve_schema_registry
from processor.environment.settings.settings import Settings
from processor.job.kafka.schemas import has_subjects, open_confluent, open_schemas
from processor.tools.source.column_types import SeenValues, schema_column
from processor.tools.source.draft import DraftColumn, DraftEntity, fit_limits, guess_references, short_names
from processor.values import canonical_json
from processor.values.avro_schema import read_avro_schema
from processor.values.connect_schema import connect_schema
from processor.values.entity import DeleteFlag, Entity
from processor.values.envelopes.debezium import DEBEZIUM
from processor.values.envelopes.delete_flags import SeenFlag, flag_text, seen_flags
from processor.values.envelopes.kind import Envelope, RowImage, row_images
from processor.values.envelopes.kinds import FORMATS, key_schemas, kind_of, read_image, stated_tables, unwrap
from processor.values.framing import NO_SCHEMAS, FramedReader, is_framed
from processor.values.reasons import reason_code
from processor.values.record import Record, Value
from processor.values.recorded_topics import read_records
from processor.values.values import ANY_TEXT, PLAIN

if TYPE_CHECKING:
    from processor.job.kafka.registry_client import RegistryClient, WriterSchema


def draft_topics(records: Iterable[Record], schemas: FramedReader = NO_SCHEMAS) -> list[DraftEntity]:
    """An entity for each topic whose records change rows, in the order of the topics. `schemas`: reads framed records."""
    topics: dict[str, _Topic] = {}
    tables: dict[str, dict[str, _Topic]] = {}
    for record in records:
        if record.topic not in topics:
            topics[record.topic] = _Topic(record.topic)
        schemas.fetch(record)
        if table := topics[record.topic].add(record, schemas):
            tables.setdefault(record.topic, {}).setdefault(table, _Topic(record.topic)).add(record, schemas)
    seen: dict[tuple[str, str], _Topic] = {}
    for name, topic in sorted(topics.items()):
        found = {table: one for table, one in sorted(tables.get(name, {}).items()) if one.rows}
        if len(found) > 1:
            seen |= {(name, table): one for table, one in found.items()}
            _share(found, topic)
        elif topic.rows or topic.wrong:
            seen[name, ""] = topic
    names = short_names([table or topic for topic, table in seen])
    return [fit_limits(one.entity(names[table or topic])) for (topic, table), one in seen.items()]


def _share(found: Mapping[str, "_Topic"], whole: "_Topic") -> None:
    """Makes each table of a topic an entity of its own."""
    for table, one in found.items():
        one.table = table
        one.hint = f"the topic has several tables: {', '.join(found)}"
    next(iter(found.values())).keep_others(whole)


SAMPLES = 3
"""Records of a topic that `init` shows as the job reads them."""


class _Topic:
    """What the records of one topic show. `rows`: how many of them have a row; `wrong`: why the first unreadable one has no
    row. `table`: of the records, where the topic has several; `hint`: what a reader has to know."""

    def __init__(self, topic: str) -> None:
        self.rows, self.wrong, self.table, self.hint = 0, "", "", ""
        self._samples: dict[str, Record] = {}
        self._flags: dict[str, SeenFlag] = {}
        self._gone: dict[str, dict[str, None]] = {}
        self._any = Entity(name=topic, topic=topic, key=(), columns={})
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._values: dict[str, SeenValues] = {}
        self._format = ""
        self._kind = ""
        self._named: tuple[str, ...] = ()
        self._places: list[set[str]] | None = None
        self._key: dict[str, None] = {}
        self._same: set[str] | None = None
        self._changed: set[str] = set()

    def add(self, record: Record, schemas: FramedReader) -> str:
        """Takes a record. Returns the table that it names, empty where it names none."""
        try:
            value = read_part(record, "value", schemas)
            payload = unwrap(value, self._any)[0]
            kind = kind_of(payload, self._any)[0] if type(payload) is dict else FORMATS["plain"]
            self._named = self._named or (kind.key_columns(payload) if kind.wraps else ())
            images = row_images(read_image(value, self._any))
            key, schema = unwrap(_read_key(record, schemas), self._any)
            if isinstance(key, dict) and any(image.keys == "none" for image in images):
                key = None
            if images and isinstance(key, dict):
                _refuse_envelope(images[0].row, key)
        except ValueError as error:
            self.wrong = self.wrong or str(error)
            return ""
        self._keep_sample(record, images)
        shown = [image for image in images if image.row or not image.deleted or isinstance(key, dict)]
        for image in shown:
            self._add_row(record, kind, image, key, schema)
        return _stated(payload) if shown or self._named else ""

    def keep_others(self, whole: "_Topic") -> None:
        """Takes the sample of a record that changes no row from the topic of all tables."""
        self._samples = {name: one for name, one in whole._samples.items() if name == "none"} | self._samples

    def _keep_sample(self, record: Record, images: Sequence[RowImage]) -> None:
        """Keeps the first row, delete and record without a row, and another row where there are not all of them."""
        kind = "none" if not images else "delete" if images[0].deleted else "row"
        for name in (kind, f"another {kind}", f"third {kind}"):
            if name not in self._samples:
                self._samples[name] = record
                break

    @property
    def samples(self) -> tuple[Record, ...]:
        order = [f"{which}{kind}" for which in ("", "another ", "third ") for kind in ("row", "delete", "none")]
        chosen = [self._samples[name] for name in order if name in self._samples][:SAMPLES]
        return tuple(sorted(chosen, key=lambda record: (record.partition, record.offset)))

    def _add_row(self, record: Record, kind: Envelope, image: RowImage, key: Value, schema: Any) -> None:
        self.rows += 1
        self._kind = kind.name
        if kind.wraps and kind is not DEBEZIUM:
            self._format = kind.name
        if (image.reading is PLAIN and not kind.wraps) or image.refusal is not None:
            for flag in seen_flags(image.row, ()):
                self._flags[flag.column] = flag
                if flag.gone:
                    self._gone.setdefault(flag.column, {})[flag_text(flag.value)] = None
        if isinstance(key, dict):
            self._key |= dict.fromkeys(key)
            self._schemas |= key_schemas(schema, tuple(key)) or {}
        elif isinstance(key, list) and image.keys == "array":
            if not image.deleted:
                equal = [{name for name, value in image.row.items() if value == part} for part in key]
                self._places = [one & other for one, other in zip(self._places or equal, equal, strict=False)]
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
            self._values.setdefault(name, SeenValues()).add(member, any_text=image.reading is ANY_TEXT)

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
            format=self._kind if self.table else self._format,  # it says what a null value is
            table=self.table,
            samples=self.samples,
            deleted=tuple(DeleteFlag(column, _values(column, texts)) for column, texts in sorted(self._gone.items())),
        )

    def _column(self, name: str, seen: SeenValues) -> DraftColumn:
        if name not in self._schemas:
            return seen.column()
        found = schema_column(self._schemas[name])
        return found._replace(guess="earlier records have another schema") if name in self._changed else found

    def _key_columns(self, columns: Mapping[str, DraftColumn]) -> tuple[tuple[str, ...], str]:
        """The key, and why it is a guess: an object names its columns, a bare value equals one of the row."""
        if self._named and columns.keys() >= set(self._named):
            return self._named, ""
        if self._key:
            return tuple(self._key), ""
        if self._places and all(self._places):
            places = tuple(min(place, key=list(columns).index) for place in self._places)
            if len(set(places)) == len(places):
                return places, "its values equal the Kafka key"
        if self._same:
            found = min(self._same, key=list(columns).index)
            return (found,), "its values equal the Kafka key" if len(self._same) == 1 else _several(self._same)
        if "id" in columns and (self._same is None or self._format):
            what = "the Kafka key is none of the row" if self._format else "the records have no Kafka key"
            return ("id",), f"by its name: {what}"
        return (), ""


def _stated(payload: Value) -> str:
    """The table that a value names, with its schema and its database; empty where it names none."""
    stated = stated_tables(payload) if type(payload) is dict else ()
    return stated[-1] if stated else ""


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


_VALUE_SUBJECT = "-value"


def draft_subjects(client: "RegistryClient", prefix: str | None, known: set[str]) -> list[DraftEntity]:
    """An entity for each subject TOPIC-value whose topic begins with `prefix`. Leaves out the topics of `known`."""
    subjects = set(client.subjects())
    topics = sorted(name.removesuffix(_VALUE_SUBJECT) for name in subjects if name.endswith(_VALUE_SUBJECT))
    topics = [topic for topic in topics if topic not in known and topic.startswith(f"{prefix}." if prefix else "")]
    return [_subject_entity(client, topic, name, subjects) for topic, name in short_names(topics).items()]


def _subject_entity(client: "RegistryClient", topic: str, name: str, subjects: set[str]) -> DraftEntity:
    from processor.job.kafka.registry_client import SchemaMissing  # it imports the registry's client

    columns, key, note = dict[str, Any](), tuple[str, ...](), ""
    try:
        columns = _row_fields(_connect_schema(client.latest(f"{topic}{_VALUE_SUBJECT}")))
        key_subject = f"{topic}-key"
        fields = (key_schemas(_connect_schema(client.latest(key_subject)), ()) or {}) if key_subject in subjects else {}
        columns, key = {**fields, **columns}, tuple(fields)
    except (SchemaMissing, ValueError) as error:
        note = f"the schemas of topic {topic} cannot be read: {error}"
    guess = ""
    if not key and "id" in columns:
        key, guess = ("id",), "by its name: no schema names the columns of the key"
    typed = {column: schema_column(schema) for column, schema in columns.items()}
    return fit_limits(DraftEntity(name=name, topic=topic, key=key, key_guess=guess, columns=typed, note=note))


def _connect_schema(schema: "WriterSchema") -> Mapping[str, Any]:
    """The schema by Kafka Connect. Raises ValueError for one that cannot be read without its records."""
    match schema.kind:
        case "AVRO":
            references = {name: canonical_json.loads(text) for name, text in schema.references.items()}
            return read_avro_schema(canonical_json.loads(schema.text), references).connect
        case "JSON":
            references = {name: canonical_json.loads(text) for name, text in schema.references.items()}
            return connect_schema(canonical_json.loads(schema.text), references)
    raise ValueError(f"{schema.kind} needs a record: give --bootstrap-servers")


def _row_fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schemas of the columns: those of `after` in an envelope of Debezium."""
    fields = dict(key_schemas(schema, ()) or {})
    after = fields.get("after")
    return _row_fields(after) if after is not None and "op" in fields else fields


SAMPLE = 200
"""The last records of each topic that show its columns."""
_OF_CONNECT = ("connect-configs", "connect-offsets", "connect-status")


def recorded_entities(settings: Settings, path: str) -> list[DraftEntity]:
    """The entities that a file of recorded topics shows. Raises RecordedError."""
    schemas = open_schemas(resolve_schema_registry(settings.schema_registry))
    return guess_references(draft_topics(read_records(path), schemas))


def kafka_entities(settings: Settings, prefix: str | None) -> list[DraftEntity]:
    """The entities that topics show by their last records, and those without records that a schema registry knows. `prefix`: of
    all topics. Raises KafkaError, SchemaRegistryAway and SettingError."""
    access = resolve_schema_registry(settings.schema_registry)
    records: Iterable[Record] = _sample(settings, prefix) if settings.bootstrap_servers else ()
    found = draft_topics(records, open_schemas(access))
    if has_subjects(access):
        found += draft_subjects(open_confluent(access), prefix, {entity.topic for entity in found})
        names = short_names(entity.topic for entity in found)
        found = [replace(entity, name=names[entity.topic]) for entity in found]
    return guess_references(sorted(found, key=lambda entity: entity.name))


def _sample(settings: Settings, prefix: str | None) -> Iterator[Record]:
    from processor.job.kafka.admin import Admin
    from processor.job.kafka.reader import read_sample

    address, extra = settings.bootstrap_servers, dict(settings.kafka)
    others = {settings.dead_letter_topic, *_OF_CONNECT}
    for topic in sorted(Admin(address, extra).names()):
        if topic not in others and (prefix is None or topic.startswith(f"{prefix}.")):
            yield from read_sample(address, extra, topic, SAMPLE)
