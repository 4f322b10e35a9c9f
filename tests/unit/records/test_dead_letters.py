"""A dead letter fits into its topic, whatever its record holds, and names its record."""

from hypothesis import given
from hypothesis import strategies as st

from processor.records.dead_letters import SMALLEST_LIMIT, message_bytes, record_hash, reject_message, rejected_record
from processor.records.record import Record, Rejected

SIZES = st.none() | st.integers(0, 12_000)


@given(
    key=SIZES, value=SIZES, header=SIZES, reason=st.integers(1, 9_000), limit=st.integers(SMALLEST_LIMIT, 2 * 12_000)
)
def test_a_dead_letter_fits_and_keeps_what_fits(
    key: int | None, value: int | None, header: int | None, reason: int, limit: int
) -> None:
    record = Record(
        topic="t" * 249,
        partition=10**9,
        offset=2**62,
        epoch=3,
        timestamp=4,
        key=None if key is None else b"k" * key,
        value=None if value is None else b"v" * value,
        headers=(("h", None if header is None else b"h" * header), ("other", b"1")),
    )
    rejected = Rejected(record=record, reason="é" * reason)
    message = reject_message(rejected, "rejects", limit)
    assert message_bytes(message) <= limit
    found = rejected_record(message)
    if message == reject_message(rejected, "rejects"):
        assert found == rejected
        return
    assert found.cut is not None
    assert found.cut.sha256 == record_hash(record)
    assert found.cut.size == (key or 0) + (value or 0) + (header or 0) + len("h" + "other" + "1")
    kept = found.record
    assert (kept.topic, kept.partition, kept.offset, kept.epoch) == ("t" * 249, 10**9, 2**62, 3)
    for part, whole in ((kept.key, record.key), (kept.value, record.value)):
        assert (part is None) == (whole is None)
        assert (whole or b"").startswith(part or b"")
    assert found.reason == rejected.reason[: len(found.reason)] != ""


def test_records_that_differ_have_different_hashes() -> None:
    records = [
        Record(topic="t", partition=0, offset=0, key=key, value=value, headers=headers)
        for key, value, headers in (
            (b"ab", b"c", ()),
            (b"a", b"bc", ()),
            (None, b"abc", ()),
            (b"", b"abc", ()),
            (b"ab", b"c", (("", None),)),
            (b"ab", b"c", (("", b""),)),
        )
    ]
    assert len(set(map(record_hash, records))) == len(records)
