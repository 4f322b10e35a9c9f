"""Which dead letters are those of a row: by each key that they show, framed or not, and never by text within other text."""

import json
from typing import Any

import pytest

from processor.tools.operate.erase import LetterChoice, RowLetters, mentions_text
from processor.values.entity import ColumnType, Entity
from processor.values.framing import NO_SCHEMAS, FramedReader
from processor.values.reasons import ReasonCode
from processor.values.record import Record, Rejected, Value
from tests.support.required import require_schema_packages

COLUMNS = {"email": ColumnType(name="string"), "age": ColumnType(name="int")}
PERSON = Entity(name="person", topic="people", key=("email",), columns=COLUMNS)
NUMBER = Entity(name="number", topic="people", key=("id",), columns={"id": ColumnType(name="int")})
ADA: tuple[Value, ...] = ("ada@example.org",)
ENTITIES = {"person", "number", "star"}


def letter(
    key: bytes | None,
    value: bytes | None,
    topic: str = "people",
    entity: str = "person",
    code: ReasonCode = "column-type",
) -> Rejected:
    record = Record(topic=topic, partition=0, offset=1, epoch=1, key=key, value=value)
    return Rejected(record=record, reason="a reason", code=code, entity=entity)


def belongs(
    one: Rejected,
    entity: Entity = PERSON,
    key: tuple[Value, ...] = ADA,
    schemas: FramedReader = NO_SCHEMAS,
    **choice: frozenset[tuple[str, int, int]],
) -> str:
    row = RowLetters(
        entity=entity,
        key=key,
        entities=ENTITIES,
        documents={"profiles"},
        schemas=schemas,
        choice=LetterChoice(**choice),
    )
    return row.belongs(one)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"email":"ada@example.org"}', b'{"email":"ada@example.org","age":"old"}'),
        (b'{"email":"ada@example.org"}', b"{"),
        (b"ada@example.org", None),
        (None, b'{"email":"ada@example.org","age":1}'),
        (None, b'{"email":"ada@example.org","age":"old"}'),
        (b'{"email":"bob@example.org"}', b'{"email":"ada@example.org","age":1}'),
        (b"{", b'{"email":"ada@example.org","age":'),
    ],
)
def test_a_letter_that_shows_the_key_is_one_of_the_row(key: bytes | None, value: bytes | None) -> None:
    assert belongs(letter(key, value)) == "row"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"email":"bob@example.org"}', b'{"email":"bob@example.org","friend":"ada@example.org","age":"old"}'),
        (None, b'{"email":"bob@example.org","friend":"ada@example.org","age":"old"}'),
        (None, b'{"email":"nada@example.org","age":"old"}'),
        (None, b'{"age":"old","friend":"ada@example.org","email":"bob@example.org","broken":'),
    ],
)
def test_a_letter_of_another_row_is_none_even_if_it_has_the_text_of_the_key(key: bytes | None, value: bytes) -> None:
    assert belongs(letter(key, value)) == "other"


def test_the_key_may_be_a_number() -> None:
    assert belongs(letter(None, b'{"id":7,"n":"x"}', entity="number"), NUMBER, (7,)) == "row"
    assert belongs(letter(None, b'{"id":77,"n":7}', entity="number"), NUMBER, (7,)) == "other"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (b"\x00\x01ada@example.org\xff", b"\xff", "mention"),
        (b"{", b"ada@example.org is no JSON", "mention"),
        (None, b'["ada@example.org"]', "mention"),
        (None, b"nada@example.org is no JSON", "unread"),
        (b"{", b"{", "unread"),
        (None, None, "unread"),
    ],
)
def test_a_letter_whose_key_nobody_can_read_stays_until_a_person_decides(
    key: bytes | None, value: bytes | None, expected: str
) -> None:
    place = frozenset({("people", 0, 1)})
    assert belongs(letter(key, value)) == expected
    assert belongs(letter(key, value), own=place) == "row"
    assert belongs(letter(key, value), others=place) == "other"
    assert belongs(letter(key, value, entity="star"), own=place) == "other"


def test_a_choice_takes_no_letter_of_another_row() -> None:
    bob = letter(None, b'{"email":"bob@example.org","age":"x"}')
    assert belongs(bob, own=frozenset({("people", 0, 1)})) == "other"


def test_a_letter_belongs_to_the_entity_that_it_names_also_from_a_former_topic() -> None:
    value = b'{"email":"ada@example.org","age":"old"}'
    assert belongs(letter(None, value, topic="people.before")) == "row"
    assert belongs(letter(None, value, entity="star")) == "other"
    assert belongs(letter(None, value, topic="stars", entity="")) == "other"
    assert belongs(letter(None, value, entity="")) == "row"
    assert belongs(letter(None, value, entity="gone")) == "row"


def test_the_letter_of_a_document_has_the_key_of_the_root_and_names_its_entity() -> None:
    key = b'{"email":"ada@example.org"}'
    assert belongs(letter(key, None, "profiles", code="document-too-large")) == "row"
    assert belongs(letter(key, None, "profiles.before", code="document-misfit")) == "row"
    assert belongs(letter(key, None, "profiles", "", "document-too-large")) == "row"
    assert belongs(letter(key, None, "profiles", "star", "document-too-large")) == "other"
    assert belongs(letter(None, None, "profiles", code="document-too-large")) == "other"
    assert belongs(letter(key, None, "profiles", code="document-too-large"), key=("eve@example.org",)) == "other"


def test_a_text_mentions_a_key_by_whole_words_of_six_characters_or_more() -> None:
    assert mentions_text("where email = 'ada@example.org'", ADA)
    assert not mentions_text("where email = 'nada@example.org'", ADA)
    assert mentions_text('{"where":"id = 1234567"}', (1234567,))
    assert not mentions_text("id = 7", (7,))
    assert not mentions_text("octocat", ("octocat", "hello"))


ROW = {"type": "object", "properties": {"email": {"type": "string"}, "age": {"type": "string"}}}
FIELDS = [{"name": "email", "type": "string"}, {"name": "age", "type": "string"}]
AVRO = {"type": "record", "name": "Row", "fields": FIELDS}


@pytest.mark.parametrize("format_", ["avro", "json", "protobuf"])
def test_a_framed_letter_shows_its_key_by_its_schema(format_: str) -> None:
    require_schema_packages()
    from processor.job.kafka.registry_client import WriterSchema
    from tests.unit.job.kafka import framed
    from tests.unit.job.kafka.protobuf_files import classes, message, proto, schema_of
    from tests.unit.job.kafka.protobuf_files import framed as framed_protobuf

    file = proto(message("Row", email="string", age="string"))
    schemas = {
        1: framed.avro_schema(AVRO),
        2: WriterSchema("JSON", json.dumps(ROW), {}),
        3: schema_of(file),
    }

    def record(row: dict[str, Any]) -> bytes:
        if format_ == "avro":
            return framed.avro(1, AVRO, row)
        if format_ == "json":
            return framed.head(2) + json.dumps(row).encode()
        return framed_protobuf(3, classes(file)("app.Row")(**row))

    ada = letter(None, record({"email": "ada@example.org", "age": "old"}))
    bob = letter(None, record({"email": "bob@example.org", "age": "ada@example.org"}))
    assert belongs(ada, schemas=framed.reader(schemas)) == "row"
    assert belongs(bob, schemas=framed.reader(schemas)) == "other"
    assert belongs(bob) == ("other" if format_ == "json" else "mention")
