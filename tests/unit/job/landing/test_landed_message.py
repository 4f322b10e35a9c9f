"""What a target takes from a record, and which documents count as equal."""

from dataclasses import replace

import pytest

from processor.job.landing.target import fingerprint, latest, read_message, why_foreign
from processor.values.record import Record

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
    ("changed", "why"),
    [
        ({"product": b"city"}, "product"),
        *(({"sequence": text}, "sequence") for text in (None, b"x", b"0", b"-1", b"9" * 5_000, b"%d" % 2**53)),
        *(({"product_version": text}, "product_version") for text in (b"", b"%d" % 2**31, b"9" * 5_000)),
    ],
)
def test_a_message_that_no_job_of_the_product_sent(changed: dict[str, bytes | None], why: str) -> None:
    assert read_message(record(**changed), "person") is None
    assert f"statestore.{why} " in why_foreign(record(**changed), "person")
    assert why_foreign(record(), "person") == ""


@pytest.mark.parametrize("key", [None, b"", b"{", b"17", b"[1]", b"\xff", b'{"id":1}{}', b'{"id":"\x00"}'])
def test_a_key_that_no_job_wrote(key: bytes | None) -> None:
    assert why_foreign(replace(record(), key=key), "person") == "its key is no JSON object"


@pytest.mark.parametrize("key", [b'{"id":"\\u0000"}', b'{"id":"\\ud800"}', b'{"id":1e400}', b'{"a":{"b":[]},"c":null}'])
def test_a_key_that_a_target_may_refuse(key: bytes) -> None:
    assert read_message(replace(record(), key=key), "person") is not None


@pytest.mark.parametrize(("clock", "landed"), [(-1, 0), (2**62, 253_402_300_799_999)])
def test_a_time_that_no_target_has(clock: int, landed: int) -> None:
    message = read_message(replace(record(), timestamp=clock), "person")
    assert message is not None
    assert message.published_at == landed


@pytest.mark.parametrize("text", ["{", "[" * 100_000 + "]" * 100_000, "1e999999999999999999999", "half \ud800"])
def test_a_text_that_nobody_can_read_equals_only_itself(text: str) -> None:
    assert fingerprint(text) == fingerprint(text) != fingerprint(f"{text} ")


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
