"""Every reason of a dead letter has one of a few kinds."""

import pytest

from processor.plan.touch import OVERSIZED
from processor.records.record import Record, Rejected
from processor.records.reject_reasons import reason_kind
from processor.steps.decode import decode
from tests.unit.steps.decoding import USER

GOOD = b'{"id": 1, "email": "a@b.c", "username": "ada"}'
KEY = b'{"email": "a@b.c"}'


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (KEY, b'{"id": "x", "email": "a@b.c"}', "column"),
        (b"{", GOOD, "key"),
        (b'{"email": 7}', GOOD, "key"),
        (KEY, b"{", "value"),
        (KEY, b'{"email": "a@b.c", "more": "%s"}' % (b"x" * 500_000), "too large"),
        (KEY, b"[]", "other"),
    ],
)
def test_the_reasons_of_decode_have_a_kind(key: bytes, value: bytes, kind: str) -> None:
    rejected = decode(Record(topic="user", partition=0, offset=0, key=key, value=value), USER)
    assert isinstance(rejected, Rejected)
    assert reason_kind(rejected.reason) == kind, rejected.reason


def test_the_reasons_of_the_write_have_a_kind() -> None:
    assert reason_kind(OVERSIZED) == "too large"
    assert reason_kind("the row has changes from partition 3 too, so their order is unknown") == "partition"
