"""Which rows a broken record shows: by its key columns, wherever they are readable, and never by text in other columns."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.engine.rounds.decoding import shown_keys
from processor.values.decimal_forms import LearnedForm
from processor.values.entity import DecimalForm, Entity
from processor.values.framing import NO_SCHEMAS
from processor.values.record import Record
from tests.unit.engine.protocol.decoding import ITEM, STAR, USER, entity, envelope, raw, reason, with_schema

ADA, BOB = "ada@example.org", "bob@example.org"
PINNED = entity("user", "email", "email string, n int", format="debezium")
DEEP = "[" * 300 + "]" * 300


def shown(entity: Entity, key: Any, value: Any) -> set[tuple[Any, ...]]:
    return set(shown_keys(Record(topic="t", partition=0, offset=0, key=raw(key), value=raw(value)), entity))


@pytest.mark.parametrize(
    ("entity", "key", "value", "expected"),
    [
        (USER, None, {"email": ADA, "id": "x"}, (ADA,)),
        (ITEM, None, {"id": 7, "amount": "x"}, (7,)),
        (ITEM, {"other": 1}, {"id": 7, "amount": "x"}, (7,)),
        (ITEM, b"7", b"{", (7,)),
        (STAR, {"owner": "o"}, {"repo": "r", "n": "x"}, ("o", "r")),
        (STAR, {"owner": "o", "repo": 5}, {"owner": "o", "repo": "r", "n": 1}, ("o", "r")),
        (STAR, {"owner": "o"}, {"repo": "r", "owner": 5}, ("o", "r")),
        (USER, b"{", {"email": ADA, "id": 1}, (ADA,)),
        (USER, None, envelope("u", None, {"email": ADA, "id": "x"}), (ADA,)),
        (USER, None, envelope("u", {"email": ADA, "id": 1}, None), (ADA,)),
        (USER, None, envelope("x", None, {"email": ADA, "id": 1}), (ADA,)),
        (USER, None, {"schema": {"type": "struct", "fields": []}, "payload": {"email": ADA, "id": "x"}}, (ADA,)),
        (ITEM, None, with_schema({"id": 7, "amount": "x"}, [{"field": "id", "type": "int64"}]), (7,)),
        (PINNED, None, {"email": ADA, "n": 1}, (ADA,)),
    ],
)
def test_a_record_with_a_broken_part_shows_its_row(
    entity: Entity, key: Any, value: Any, expected: tuple[Any, ...]
) -> None:
    reason(entity, key, value)  # or the test fails: it is a dead letter
    assert shown(entity, key, value) == {expected}


@pytest.mark.parametrize(
    "value",
    [
        f'{{"email":"{ADA}","id":',
        f'{{"email":"{ADA}","username":"cut in the mid',
        f'{{"email":"{ADA}","username":"a\tb"}}',
        f'{{"email":"{ADA}","username":"\\ud800"}}',
        f'{{"email":"{ADA}","id":{"9" * 5000}}}',
        f'{{"email":"{ADA}","id":1e999999999999999999999}}',
        f'{{"email":"{ADA}","id":NaN}}',
        f'{{"email":"{ADA}","more":{DEEP}}}',
        f'{{"email":"{ADA}"}} and more',
        f'\ufeff{{"email":"{ADA}"}}',
        f'{{"before":null,"op":"u","after":{{"username":"}},","email":"{ADA}","id":1',
    ],
)
def test_json_that_breaks_off_shows_the_members_that_are_whole(value: str) -> None:
    reason(USER, None, value.encode())
    assert shown(USER, None, value.encode()) == {(ADA,)}


def test_bytes_of_another_column_that_are_not_utf8_hide_no_key() -> None:
    assert shown(USER, None, b'{"email":"%s","username":"\xff"}' % ADA.encode()) == {(ADA,)}


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        (USER, None, {"id": 1, "username": ADA}),
        (USER, b"{", b"{"),
        (USER, None, f'"email":"{ADA}"'.encode()),
        (USER, None, f"{ADA} is no JSON".encode()),
        (USER, b'{"email":"' + ADA.encode(), b"["),
        (USER, b"\x00\x01" + ADA.encode(), b"\x00\x00"),
        (USER, None, json.dumps([{"email": ADA}]).encode()),
        (USER, None, json.dumps({"friend": {"email": ADA}}).encode()),
        (ITEM, None, b'{"id": 7'),
        (STAR, None, {"owner": "o", "n": 1}),
    ],
)
def test_a_record_without_a_readable_key_shows_no_row(entity: Entity, key: Any, value: Any) -> None:
    assert shown(entity, key, value) == set()


def test_a_record_that_mentions_another_row_shows_its_own_one() -> None:
    assert shown(USER, None, {"email": BOB, "username": ADA, "id": "x"}) == {(BOB,)}
    assert shown(USER, None, {"email": f"n{ADA}", "id": "x"}) == {(f"n{ADA}",)}


def test_a_record_with_two_keys_shows_both_rows() -> None:
    assert shown(USER, {"email": BOB}, {"email": ADA, "id": 1}) == {(BOB,), (ADA,)}


@given(st.one_of(st.none(), st.binary()), st.one_of(st.none(), st.binary(), st.text().map(str.encode)))
def test_no_bytes_raise_an_error(key: bytes | None, value: bytes | None) -> None:
    for of in (USER, STAR, ITEM):
        shown(of, key, value)


@pytest.mark.parametrize(
    ("form", "expected"), [("text", {(1234,)}), ("bytes", {(Decimal("-26588.24"),)}), (None, set())]
)
def test_a_key_of_two_meanings_is_read_by_the_settled_form(form: DecimalForm | None, expected: set[Any]) -> None:
    fee = entity("fee", "amount", "amount decimal(9,2), n int")
    record = Record(
        topic="fee", partition=0, offset=9, key=b'{"amount":"1234"}', value=raw(envelope("c", None, {"n": "x"}))
    )
    forms = {"amount": LearnedForm(form, "fee", 0, 1, 5)} if form else {}
    assert shown_keys(record, fee, NO_SCHEMAS, forms) == expected
