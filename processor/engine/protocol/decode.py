"""Decode: from the bytes of a Kafka record to the change of a row, or the reason why it is none. Pure; never raises.

The key is taken from the Kafka key, parts that it lacks from the row; where both have a part they must agree. Values
become canonical for their declared types; declared columns that are missing are null, undeclared ones stay as parsed.

    Kafka key                         read as
    {"id": 1}                         the parts by name; other members are ignored
    1, "a"                            the only column of the key
    octocat                           text that is no JSON: the only column of the key, when it is a string
                                      (StringConverter); there 42 is text too; what begins with {, [ or " must be JSON
    none, null                        no parts: all are taken from the row
    begins with byte 0 or 3           by the schema that a registry keeps (processor/values/framing.py)

`dedupe` makes one net change of a batch's changes of one key in one partition: the last by position, with unavailable values
filled from earlier ones. Order is delivery order, so a record that Spark reads twice or out of order counts at its offset. The
step does not read the table: for values that stay unavailable here, the write keeps the stored ones.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final, NamedTuple

from processor.values import canonical_json
from processor.values.avro_schema import adjusted_names, with_columns
from processor.values.connect_schema import Schemas, schema_reading
from processor.values.dead_letters import REPAIR
from processor.values.decimal_forms import NO_FORMS, ColumnForms, shown_form
from processor.values.entity import ColumnType, DecimalForm, Entity, placeholder_of
from processor.values.envelopes.kind import Images, RowImage, RowImages, row_images
from processor.values.envelopes.kinds import check_row, key_schemas, read_image, read_transaction, stated_tables, unwrap
from processor.values.framing import NO_SCHEMAS, FramedReader, Part, SchemedValue, refuse_other_registry
from processor.values.reasons import (
    Mismatch,
    describe_value,
    is_unrepresentable,
    plain_reason,
    reason_code,
    unexpected,
    within,
)
from processor.values.record import (
    UNAVAILABLE,
    AbsentColumns,
    Change,
    Decoded,
    Ignored,
    Record,
    Rejected,
    Truncated,
    Value,
)
from processor.values.source_transaction import SourceTransaction
from processor.values.values import ANY_TEXT, DEBEZIUM, PLAIN, Convert, Reading, converter

MAX_ROW_BYTES: Final = 400_000
"""Bytes of a row's columns as compact JSON. An item of any store holds 409,600, with its keys and slots."""

_ALWAYS_SMALL: Final = MAX_ROW_BYTES // 25
"""Bytes of a value that needs no measuring: nothing grows more than `1e125`, which the row holds in 126 digits."""

_STRUCT: Final = b"Struct{"
_JSON_KEY: Final = "key: a tombstone whose key is JSON within a text: let the producer write the key as JSON, once"
_STRUCT_KEY: Final = (
    "key: text that Kafka Connect made of a struct (`Struct{...}`): let the connector write keys with JsonConverter"
)
_TEXT: Final = converter(ColumnType(name="string"))
_MAX_DECODERS: Final = 1024
_decoders: Final[dict[tuple[int, int], "Decoder"]] = {}


def decode(
    record: Record, entity: Entity | None, schemas: FramedReader = NO_SCHEMAS, forms: ColumnForms = NO_FORMS
) -> Decoded:
    """What a record of the entity's topic says; `entity` is None for a topic that no entity names. `schemas`: reads framed keys
    and values. `forms`: of the decimals whose form is settled."""
    if entity is None:
        return Ignored(record=record, why="unknown topic")
    decoder = _decoders.get((id(entity), id(forms)))
    if decoder is None or decoder.entity is not entity or decoder.forms is not forms:
        if len(_decoders) >= _MAX_DECODERS:
            _decoders.clear()
        decoder = _decoders[id(entity), id(forms)] = Decoder(entity, forms)
    return decoder.decode(record, schemas)


class TopicEntities:
    """The entities by their topics. Those that share a topic have its records by their tables."""

    __slots__ = ("_alone", "_sharing")

    def __init__(self, entities: Iterable[Entity]) -> None:
        by_topic: dict[str, list[Entity]] = {}
        for entity in entities:
            by_topic.setdefault(entity.topic, []).append(entity)
        self._alone = {topic: found[0] for topic, found in by_topic.items() if len(found) == 1}
        self._sharing = {topic: found for topic, found in by_topic.items() if len(found) > 1}

    def of(self, record: Record, schemas: FramedReader = NO_SCHEMAS) -> Entity | None:
        """The entity of a record; None where no entity names the topic. In a shared topic: the one that picks the table of the
        record, where a schema counts before a database; without one the first, which refuses or ignores the record. There it
        fetches the schemas of the record."""
        if not self._sharing or record.topic not in self._sharing:
            return self._alone.get(record.topic)
        sharing = self._sharing[record.topic]
        try:
            schemas.fetch(record)
            payload, _ = unwrap(read_part(record, "value", schemas), sharing[0])
        except ValueError:
            return sharing[0]
        stated = stated_tables(payload) if type(payload) is dict else ()
        return next((entity for table in stated for entity in sharing if entity.table == table), sharing[0])

    def of_letter(self, letter: Rejected, schemas: FramedReader = NO_SCHEMAS) -> Entity | None:
        """The entity of a dead letter. A repair names it: its record is the bare row."""
        named = (one for one in self._sharing.get(letter.record.topic, ()) if one.name == letter.entity)
        found = next(named, None) if letter.code == REPAIR else None
        return found or self.of(letter.record, schemas)


class ComparedColumns(NamedTuple):
    """How a row differs from the declared columns. `refused`: the reasons why values do not fit; `missing`: declared columns that
    the record lacks; `undeclared`: columns of the record that the entity does not declare."""

    refused: tuple[str, ...]
    missing: tuple[str, ...]
    undeclared: tuple[str, ...]


def compare_columns(record: Record, entity: Entity, forms: ColumnForms = NO_FORMS) -> ComparedColumns | None:
    """Compares all columns of a record's row with the entity, where decode stops at the first. None where there is no row.
    `forms`: of the decimals whose form is settled."""
    try:
        return Decoder(entity, forms).compare(read_image(read_part(record, "value", NO_SCHEMAS), entity))
    except ValueError:
        return None


class Decoder:
    """Decodes the records of one entity; what depends on the entity and the settled forms alone is worked out once, here."""

    __slots__ = (
        "_adjusted", "_kept", "_marks", "_not_null", "_nullable", "_open", "_outside", "_placeholder", "_readings",
        "_text_key", "_values", "entity", "forms",
    )  # fmt: skip

    def __init__(self, entity: Entity, forms: ColumnForms = NO_FORMS) -> None:
        self.entity, self.forms = entity, forms
        self._open = tuple(name for name in entity.columns if entity.learns(name) and name not in forms)
        self._readings = {
            reading.text: {
                name: converter(column, _undeclared_reading(entity, name, reading, forms))
                for name, column in entity.columns.items()
            }
            for reading in (PLAIN, DEBEZIUM, ANY_TEXT)
        }
        self._adjusted = adjusted_names(entity.columns)
        self._placeholder = placeholder_of(entity.unavailable)
        self._marks = tuple(text.encode() for text in self._placeholder.plain)
        self._values = tuple(name for name in entity.columns if name not in entity.key)
        self._not_null = tuple(name for name in self._values if name in entity.not_null)
        self._kept = frozenset(name for name in entity.columns if entity.absent_choice(name) == "keep")
        self._nullable = frozenset(name for name in self._values if entity.nulls(name))
        self._outside = frozenset(self._values)
        self._text_key = len(entity.key) == 1 and str(entity.columns[entity.key[0]]) == "string"

    def decode(self, record: Record, schemas: FramedReader) -> Decoded:
        """The change, or why there is none."""
        transaction = None
        try:
            value = read_part(record, "value", schemas)
            if self.entity.transactions:
                transaction = read_transaction(unwrap(value, self.entity)[0])
            image = read_image(value, self.entity)
            if isinstance(image, RowImage):
                key_value = None if image.keys == "none" else self._key_value(record, schemas)
                change = self._change(record, value, key_value, image, transaction)
                return change if change.former is None else one_change(change)
            if isinstance(image, RowImages):
                return self._several(record, value, image, transaction)
            if image == "truncate" and self.entity.truncate != "ignore":
                return Truncated(record=record, entity=self.entity.name, transaction=transaction)
            return Ignored(record=record, why=image, transaction=transaction)
        except ValueError as error:
            return Rejected(
                record=record,
                reason=str(error),
                code=reason_code(error),
                entity=self.entity.name,
                plain=plain_reason(error),
                transaction=transaction,
            )

    def _several(
        self, record: Record, value: Value, images: RowImages, transaction: SourceTransaction | None
    ) -> Change:
        """The changes of a record of several rows: no Kafka key is that of all of them. One bad row makes the whole record a dead
        letter, whose replay writes all rows."""
        changes: list[Change] = []
        try:
            changes.extend(self._change(record, value, None, image, transaction) for image in images.images)
        except ValueError as error:
            raise within(f"row {len(changes) + 1} of {len(images.images)}", error) from None
        return one_change(*changes)

    def _change(
        self, record: Record, value: Value, key_value: Value, image: RowImage, transaction: SourceTransaction | None
    ) -> Change:
        """The change that an image says. `value`, `key_value`: of the record. Raises ValueError."""
        if type(value) is SchemedValue and value.avro and self._adjusted:
            image = self._with_columns(image)
        if not image.deleted and not self._outside <= image.row.keys():
            check_row(value, image, self.entity)
        if image.refusal is not None:
            raise image.refusal
        parts = self._key_parts(key_value, image)
        row = self._row(image)
        key = self._key(parts, row, image)
        for mark in self._marks:
            if type(value) is SchemedValue or (record.value is not None and mark in record.value):
                self._refuse_inside(row)  # a framed value may be compressed
        _check_size(record, value, row)
        shows = _shown_forms(self._open, key_value, image, self.entity) if self._open else {}
        if image.deleted:
            return Change(self.entity.name, key, None, record, shows=shows, transaction=transaction)
        absent = self._absent(image, row) if len(row) > len(image.row) else None
        former = None if image.before is None else self._former_key(image.before, image, key)
        nulled = self._nulled(image, row) if self._nullable else ()
        if self._not_null:
            row |= {name: UNAVAILABLE for name in self._not_null if row[name] is None and name not in nulled}
        return Change(self.entity.name, key, row, record, {}, shows, None, transaction, absent, former, nulled=nulled)

    def _with_columns(self, image: RowImage) -> RowImage:
        """The image under the names of the columns, where Debezium adjusted them to Avro."""
        schemas = with_columns(image.schemas, self._adjusted) if image.schemas else image.schemas
        before = with_columns(image.before, self._adjusted) if image.before else image.before
        return image._replace(row=with_columns(image.row, self._adjusted), schemas=schemas, before=before)

    def _absent(self, image: RowImage, row: dict[str, Value]) -> AbsentColumns | None:
        """The declared columns that the record lacks, without those of the key. The row keeps the stored values of those of
        which the entity says it."""
        names = [name for name in self._values if name not in image.row]
        if names and image.schemas:  # a reader may leave out a field that is null
            names = [name for name in names if name not in image.schemas]
        if image.partial:
            names = [name for name in names if self.entity.absent_choice(name) is not None]
            row |= {name: UNAVAILABLE for name in self._values if name not in image.row and name not in names}
        if self._kept:
            row |= {name: UNAVAILABLE for name in names if name in self._kept}
        sure = image.schemas is not None or image.reading is DEBEZIUM
        return AbsentColumns(tuple(names), sure) if names else None

    def _nulled(self, image: RowImage, row: Mapping[str, Value]) -> tuple[str, ...]:
        """The columns with a value that their type cannot hold, and which became null."""
        return tuple(name for name in self._nullable if row[name] is None and image.row.get(name) is not None)

    def _former_key(
        self, before: Mapping[str, Value], image: RowImage, key: tuple[Value, ...]
    ) -> tuple[Value, ...] | None:
        """The key that the row had before the record, if it is another one. None where the old image does not show it: it lacks
        what the table's replica identity lacks."""
        for name in self.entity.key:
            if name in before and before[name] != image.row.get(name):
                break
        else:
            return None
        try:
            found = self._row(image._replace(row=before, deleted=True))
        except ValueError:
            return None  # no row has such a key
        former = tuple(found[name] if name in before else part for name, part in zip(self.entity.key, key, strict=True))
        shown = not any(part is None or part is UNAVAILABLE for part in former)
        return former if shown and former != key else None

    def _refuse_inside(self, row: Mapping[str, Value]) -> None:
        """Refuses a value that holds the placeholder inside: the value that belongs there is unknown."""
        for name, value in row.items():
            if type(value) in (list, dict) and self._placeholder.is_inside(value):
                reason = f"column {name!r} holds {self.entity.unavailable!r} inside: the source did not send a part of the value"
                raise Mismatch(reason, "not-sent")

    def compare(self, images: Images) -> ComparedColumns | None:
        """Compares the columns of an image with the declared ones; of several rows, those of the first."""
        image = next(iter(row_images(images)), None)
        if image is None or image.deleted:
            return None
        refused = []
        for name in self.entity.columns:
            try:
                self._row(image._replace(row={name: image.row.get(name)}))
            except ValueError as error:
                refused.append(str(error))
        missing = tuple(name for name in self.entity.columns if name not in image.row)
        undeclared = tuple(name for name in image.row if name not in self.entity.columns)
        return ComparedColumns(tuple(refused), missing, undeclared)

    def _key_parts(self, parsed: Value, image: RowImage) -> Mapping[str, Value]:
        """The parts of the key that the Kafka key has."""
        value, schema = unwrap(parsed, self.entity)
        if value is None:
            return {}
        key = self.entity.key
        described = key_schemas(schema, key)
        if type(parsed) is SchemedValue and parsed.avro and type(value) is dict:
            value = with_columns(value, self._adjusted)
            described = with_columns(described, self._adjusted) if described else described
        if type(value) is list and image.keys == "array" and len(value) == len(key):
            value = dict(zip(key, value, strict=True))
        if not isinstance(value, dict):
            if len(key) > 1:
                raise within("key", unexpected(f"an object with {', '.join(key)}", value, code="key-shape"))
            value = {key[0]: value}
        converts = self._converts(described, image.reading, key)
        parts, name = {}, ""
        try:
            for name in key:
                if name in value:
                    parts[name] = converts[name](value[name])
        except ValueError as error:
            raise within(f"key part {name!r}", error, "key-type") from None
        return parts

    def _key_value(self, record: Record, schemas: FramedReader) -> Value:
        data = record.key
        try:
            value = read_part(record, "key", schemas)
        except ValueError as error:
            if data is None or reason_code(error) != "not-json":
                raise
            if data.startswith(_STRUCT):
                raise Mismatch(_STRUCT_KEY, "key-shape") from None
            if not self._text_key or data[:1] in (b"", b"{", b"[", b'"'):
                raise
            return _utf8("key", data)
        if self._text_key and data is not None:
            if type(value) in (int, Decimal, bool):
                return data.decode()
            if type(value) is str and (record.value is None or value.startswith(_STRUCT.decode())):
                _refuse_whole_key(value)
        return value

    def _row(self, image: RowImage) -> dict[str, Value]:
        """The image with canonical values: declared columns in their order, then the others as they came; of a delete
        only the key. A value that its type cannot hold is null, where the entity says so."""
        source, row, name = image.row, dict[str, Value](), ""
        texts, is_unavailable = self._placeholder.texts, self._placeholder.is_in
        columns = self.entity.key if image.deleted else self.entity.columns
        converts = self._converts(image.schemas, image.reading, columns)
        try:
            for name in columns:
                value = source.get(name)
                if value is None:
                    row[name] = None
                elif type(value) is str and converts[name] is _TEXT and value.isascii() and value not in texts:
                    row[name] = value  # as most are
                elif type(value) is not int and is_unavailable(value):
                    row[name] = UNAVAILABLE
                else:
                    row[name] = converts[name](value)
        except ValueError as error:
            if name in self._nullable and is_unrepresentable(error):
                return self._row(image._replace(row={**source, name: None}))
            raise within(f"column {name!r}", error) from None
        if not image.deleted:
            for name, value in source.items():
                if name not in row:
                    row[name] = UNAVAILABLE if is_unavailable(value) else value
        return row

    def _key(self, parts: Mapping[str, Value], row: dict[str, Value], image: RowImage) -> tuple[Value, ...]:
        """The key; parts that the row lacks are put into it. The old image of a delete may hold nothing but the key of
        the table: there a null says nothing."""
        key = []
        for name in self.entity.key:
            part, stated = parts.get(name), row[name]
            if stated is None and name in image.row and not image.deleted:
                raise Mismatch(f"key part {name!r} is null in the row", "key-null")
            if stated is None or stated is UNAVAILABLE:
                row[name] = part
            elif part is None:
                part = stated
            elif part != stated:
                one, other = describe_value(part), describe_value(stated)
                reason = f"key part {name!r} is {one} in the Kafka key and {other} in the row"
                raise Mismatch(reason, "key-differs", f"key part {name!r} differs between the Kafka key and the row")
            if part is None:
                raise Mismatch(f"key part {name!r} is missing", "key-missing")
            key.append(part)
        return tuple(key)

    def _converts(self, schemas: Schemas | None, reading: Reading, columns: Collection[str]) -> Mapping[str, Convert]:
        """The functions for the columns: by their schemas, and by `reading` where a column has none."""
        undeclared, types = self._readings[reading.text], self.entity.columns
        if schemas is None:
            return undeclared
        return {
            name: converter(types[name], schema_reading(schemas[name], types[name]))
            if name in schemas
            else undeclared[name]
            for name in columns
        }


def one_change(*changes: Change) -> Change:
    """The changes of one record, in its order, as one: the last of each row, with the values that it did not send. So no two
    changes of a row have one version. A row that moves deletes its former key first. The record counts by its last row."""
    by_key: dict[tuple[Value, ...], list[Change]] = {}
    for change in changes:
        if change.former is not None:
            gone = change._replace(key=change.former, row=None, former=None, absent=None)
            by_key.setdefault(gone.key, []).append(gone)
        by_key.setdefault(change.key, []).append(change)
    first = by_key.pop(changes[-1].key)
    others = [net_change(of_row).change._replace(since={}, former=None) for of_row in by_key.values()]
    return net_change(first).change._replace(
        since={},
        shows={column: form for change in reversed(changes) for column, form in change.shows.items()},
        former=next((change.former for change in changes if change.former is not None), None),
        others=tuple(change._replace(part=n) for n, change in enumerate(others, start=1)),
    )


def _undeclared_reading(entity: Entity, column: str, reading: Reading, forms: ColumnForms) -> Reading:
    """How to read a column whose record has no schema. `reading`: that of the record's format. `forms`: of the columns whose form
    is settled."""
    match entity.decimal_form(column):
        case "text" if reading is DEBEZIUM:
            return PLAIN
        case "bytes":
            return Reading(text="bytes", scale=entity.columns[column].scale)
    return replace(reading, settled=forms[column]) if reading is DEBEZIUM and column in forms else reading


def _shown_forms(columns: Sequence[str], key: Value, image: RowImage, entity: Entity) -> Mapping[str, DecimalForm]:
    """The forms that the text of these columns shows in a record of Debezium, where no schema says how to read it. `key`: the
    value of its Kafka key. Decode has read each text, so none has two meanings."""
    found: dict[str, DecimalForm] = {}
    if image.reading is not DEBEZIUM:
        return found
    parts, schema = unwrap(key, entity)
    for name in columns:
        values = [(image.row.get(name), image.schemas)]
        if name in entity.key:
            part = parts.get(name) if type(parts) is dict else parts
            values.insert(0, (part, key_schemas(schema, entity.key)))
        for value, schemas in values:
            form = None if schemas is not None and name in schemas else shown_form(value, entity.columns[name])
            if form is not None:
                found.setdefault(name, form)
    return found


def _refuse_whole_key(text: str) -> None:
    """Raises Mismatch for text that a converter made of a whole key: no row shows that a tombstone of it deletes nothing."""
    if text.startswith(_STRUCT.decode()):
        raise Mismatch(_STRUCT_KEY, "key-shape")
    try:
        inner = canonical_json.loads(text.encode()) if text[:1] in ("{", "[") else None
    except ValueError:
        return
    if inner is not None:
        raise Mismatch(_JSON_KEY, "key-shape")


def read_part(record: Record, part: Part, schemas: FramedReader) -> Value:
    """The key or the value of a record. Raises ValueError with the reason."""
    data = record.key if part == "key" else record.value
    try:
        if data is None:
            return None
        if schemas.framing.find(data, record.headers, part) is None:
            return canonical_json.loads(data)
        return schemas.read(record, part)
    except ValueError as error:
        if reason_code(error) in ("not-json", "not-utf8"):
            refuse_other_registry(record, part, schemas.framing)
        raise within(part, error) from None


def _utf8(what: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Mismatch(f"{what}: not UTF-8 at byte {error.start + 1}", "not-utf8") from None


def _check_size(record: Record, value: Value, row: Mapping[str, Value]) -> None:
    if record.value is None or (len(record.value) <= _ALWAYS_SMALL and type(value) is not SchemedValue):
        return  # a framed value lacks the names of its columns, so it says little about the size of the row
    size = len(canonical_json.encode({name: value for name, value in row.items() if value is not UNAVAILABLE}))
    if size > MAX_ROW_BYTES:
        raise Mismatch(f"the row is {size:,} bytes; a row has at most {MAX_ROW_BYTES:,}", "row-too-large")


class NetChange(NamedTuple):
    """The net change of a key, and the changes that it combines, oldest first."""

    change: Change
    changes: tuple[Change, ...]


def dedupe(changes: Iterable[Change]) -> list[NetChange]:
    """One net change per key and partition, in the order in which they first appear. Offsets of two partitions have no
    common order."""
    by_key: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        by_key.setdefault((change.record.partition, change.entity, *change.key), []).append(change)
    return [net_change(of_key) for of_key in by_key.values()]


def net_change(changes: list[Change]) -> NetChange:
    """The net change of changes of one key in one partition, in any order."""
    if len(changes) > 1:
        changes = sorted(changes, key=lambda change: (change.record.epoch, change.record.offset))
    last = changes[-1]
    if len(changes) > 1 and last.row is not None and UNAVAILABLE in last.row.values():
        last = last._replace(row=_filled(changes), since=_since(changes))
    return NetChange(last, tuple(changes))


def _filled(changes: list[Change]) -> dict[str, object]:
    """The row of the last change with the values that earlier ones sent. After a delete no value is left, so null fills."""
    row: dict[str, object] = {}
    unknown: object = UNAVAILABLE
    for change in changes:
        if change.row is None:
            row, unknown = {}, None
        else:
            row = {
                name: row.get(name, unknown) if value is UNAVAILABLE else value for name, value in change.row.items()
            }
    return row


def _since(changes: list[Change]) -> dict[str, tuple[int, int]]:
    """The positions of the changes that brought the filled columns: those that the last change did not send."""
    brought: dict[str, tuple[int, int]] = {}
    gone: tuple[int, int] | None = None
    for change in changes:
        at = change.record.epoch, change.record.offset
        known, brought = brought, {}
        if change.row is None:
            gone = at
        for name, value in (change.row or {}).items():
            before = known.get(name, gone)  # null since the delete: a dead letter after it may bring the value
            if value is not UNAVAILABLE:
                brought[name] = at
            elif before is not None:
                brought[name] = before
    last = changes[-1].row or {}
    return {name: at for name, at in brought.items() if last[name] is UNAVAILABLE}
