"""What a target takes from a record, and which documents count as equal."""

import pytest

from processor.landing.landed_message import fingerprint, latest, read_message
from processor.records.record import Record

HEADERS = {"product": b"person", "product_version": b"2", "sequence": b"7", "registry_version": b"1", "batch": b"0"}


def record(value: bytes | None = b"{}", **changed: bytes | None) -> Record:
    headers = tuple((f"statestore.{name}", text) for name, text in {**HEADERS, **changed}.items())
    return Record(topic="person", partition=1, offset=3, timestamp=5, key=b'{"id":1}', value=value, headers=headers)


def test_a_message_of_the_product() -> None:
    message = read_message(record(), "person")
    assert message is not None
    assert message[:7] == (1, 3, '{"id":1}', "{}", 7, 2, 5)
    assert read_message(record(None), "person") == message._replace(document=None)


@pytest.mark.parametrize(
    "changed", [{"product": b"city"}, {"sequence": None}, {"sequence": b"x"}, {"product_version": b""}]
)
def test_a_message_that_no_job_of_the_product_sent(changed: dict[str, bytes | None]) -> None:
    assert read_message(record(**changed), "person") is None


def test_a_value_that_is_no_text_reaches_the_target_which_refuses_it() -> None:
    message = read_message(record(b"\xff\x00"), "person")
    assert message is not None
    assert message.document == "\\xff\x00"


def test_the_highest_sequence_of_each_key_counts() -> None:
    first = read_message(record(), "person")
    assert first is not None
    other = first._replace(key='{"id":0}')
    older = first._replace(sequence=6, offset=9)
    assert latest([first, other, older]) == [other, first]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": [1.50, 100]}', '{"b":[1.5,1e2],"a":1.0}'),
        ("-0.0", "0"),
        ("123456789012345678901234567890.10", "123456789012345678901234567890.1"),
    ],
)
def test_equal_values(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", '"1"'), ("[1,2]", "[2,1]"), ("null", "false"), ("1e-400", "0"), ("9007199254740993", "9007199254740992")],
)
def test_different_values(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)
