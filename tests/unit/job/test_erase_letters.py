"""Which dead letters are those of a row: by each key that they still show, or by the text of the key in their bytes."""

import pytest

from processor.job.erase_letters import is_document_of, is_letter_of
from processor.records.entity import ColumnType, Entity
from processor.records.record import Record

COLUMNS = {"email": ColumnType(name="string"), "age": ColumnType(name="int")}
PERSON = Entity(name="person", topic="people", key=("email",), columns=COLUMNS)
NUMBER = Entity(name="number", topic="people", key=("id",), columns={"id": ColumnType(name="int")})
ADA = ("ada@example.org",)


def letter(key: bytes | None, value: bytes | None, topic: str = "people") -> Record:
    return Record(topic=topic, partition=0, offset=1, epoch=1, key=key, value=value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"email":"ada@example.org"}', b'{"email":"ada@example.org","age":"old"}'),
        (b'{"email":"ada@example.org"}', b"{"),
        (b"ada@example.org", None),
        (None, b'{"email":"ada@example.org","age":1}'),
        (b'{"email":"bob@example.org"}', b'{"email":"ada@example.org","age":1}'),
        (b"{", b'{"email":"ada@example.org","age":'),
        (b"\x00\x01ada@example.org\xff", b"\xff"),
    ],
)
def test_a_letter_that_shows_the_key_is_one_of_the_row(key: bytes | None, value: bytes | None) -> None:
    assert is_letter_of(letter(key, value), PERSON, ADA)
    assert not is_letter_of(letter(key, value, topic="stars"), PERSON, ADA)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"email":"bob@example.org"}', b'{"email":"bob@example.org","friend":"ada@example.org","age":"old"}'),
        (b"{", b"{"),
    ],
)
def test_a_letter_of_another_row_is_none_even_if_it_mentions_the_key(key: bytes, value: bytes) -> None:
    assert not is_letter_of(letter(key, value), PERSON, ADA)


def test_numbers_and_short_texts_are_not_searched_in_bytes_because_other_records_hold_them_by_chance() -> None:
    assert not is_letter_of(letter(b"{", b'{"id": 7,'), NUMBER, (7,))
    assert is_letter_of(letter(b'{"id":7}', b"{"), NUMBER, (7,))
    assert not is_letter_of(letter(b"{", b'{"email":"ab",'), PERSON, ("ab",))


def test_the_dead_letter_of_a_document_has_the_key_of_the_root() -> None:
    document = letter(b'{"email":"ada@example.org"}', None, topic="people")
    assert is_document_of(document, PERSON, ADA, {"people"})
    assert not is_document_of(document, PERSON, ("eve@example.org",), {"people"})
    assert not is_document_of(document, PERSON, ADA, {"stars"})
    assert not is_document_of(letter(None, None, topic="people"), PERSON, ADA, {"people"})
