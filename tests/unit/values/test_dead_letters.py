"""A dead letter fits into its topic, whatever its record holds, and names its record."""

from hypothesis import given
from hypothesis import strategies as st

from processor.values.dead_letters import (
    SMALLEST_LIMIT,
    RefusedBy,
    column_of,
    mark_of,
    message_bytes,
    read_dead_letters,
    record_hash,
    reject_message,
    rejected_record,
)
from processor.values.record import Message, Record, Rejected

FIRST, AGAIN = RefusedBy("1.0.0", 3), RefusedBy("1.1.0", 4)
BROKEN = Record(topic="user", partition=1, offset=5, epoch=2, timestamp=9, key=b"k", value=b"{", headers=(("a", b"1"),))


def kept(message: Message, seconds: int) -> Record:
    """A message as the topic of dead letters has it."""
    return Record(
        topic="rejects", partition=0, offset=seconds, timestamp=seconds * 1000,
        key=message.key, value=message.value, headers=message.headers,
    )  # fmt: skip


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
    rejected = Rejected(record=record, reason="é" * reason, code="other-partition", entity="e" * 255)
    by = RefusedBy("1.2.3", 10**9)
    message = reject_message(rejected, "rejects", limit, by)
    assert message_bytes(message) <= limit
    found = rejected_record(message)
    (letter,) = read_dead_letters([kept(message, 7)])
    assert letter.refused_by == by
    if message == reject_message(rejected, "rejects", None, by):
        assert found == rejected
        return
    assert found.cut is not None
    assert found.cut.sha256 == record_hash(record)
    assert found.cut.size == (key or 0) + (value or 0) + (header or 0) + len("h" + "other" + "1")
    part_of = found.record
    assert (part_of.topic, part_of.partition, part_of.offset, part_of.epoch) == ("t" * 249, 10**9, 2**62, 3)
    for part, whole in ((part_of.key, record.key), (part_of.value, record.value)):
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


def test_a_letter_that_comes_again_shows_its_first_and_its_last_time_and_its_last_reason() -> None:
    """A batch that the job repeats refuses its records again, perhaps as another release or by other definitions."""
    once = reject_message(Rejected(record=BROKEN, reason="old", code="not-json", entity="user"), "rejects", None, FIRST)
    twice = reject_message(
        Rejected(record=BROKEN, reason="new", code="not-utf8", entity="user"), "rejects", None, AGAIN
    )
    for order in ((kept(once, 100), kept(twice, 200)), (kept(twice, 200), kept(once, 100))):
        (letter,) = read_dead_letters(order)
        assert (letter.kept_since, letter.last_seen, letter.refused_by) == (100, 200, AGAIN)
        assert letter.rejected == Rejected(record=BROKEN, reason="new", code="not-utf8", entity="user")


def test_a_letter_of_a_release_without_codes_is_read() -> None:
    now = reject_message(Rejected(record=BROKEN, reason="value: not JSON", code="not-json"), "rejects")
    old = now._replace(headers=tuple(header for header in now.headers if header[0] != "statestore.reject.code"))
    (letter,) = read_dead_letters([kept(old, 7)])
    assert letter.rejected == Rejected(record=BROKEN, reason="value: not JSON", code="other")
    assert letter.refused_by is None
    newer = now._replace(headers=tuple((n, b"no-such-code" if n.endswith(".code") else v) for n, v in now.headers))
    assert rejected_record(newer).code == "other"


def test_a_dead_letter_that_came_back_to_its_topic_keeps_its_own_headers() -> None:
    """A tool may copy the messages of the dead letter topic into the topic of the entity, headers included."""
    first = reject_message(Rejected(record=BROKEN, reason="first", code="not-json"), "rejects", None, FIRST)
    copied = Record(topic="user", partition=0, offset=9, key=first.key, value=first.value, headers=first.headers)
    again = Rejected(record=copied, reason="again", code="not-json", entity="user")
    assert rejected_record(reject_message(again, "rejects", None, AGAIN)) == again
    (letter,) = read_dead_letters([kept(reject_message(again, "rejects"), 7)])
    assert (letter.rejected.entity, letter.refused_by) == ("user", None)


def refused(epoch: int, value: bytes = b"{", timestamp: int = 5, limit: int | None = None) -> Message:
    record = Record(topic="user", partition=0, offset=7, epoch=epoch, timestamp=timestamp, key=b"1", value=value)
    rejected = Rejected(record=record, reason="column 'age': expected int", code="column-type", entity="user")
    return reject_message(rejected, "rejects", limit)


def test_a_record_that_a_rebuilt_registry_reads_again_is_one_letter_of_its_last_epoch() -> None:
    (letter,) = read_dead_letters([kept(refused(1), 10), kept(refused(3), 30), kept(refused(2), 20)])
    assert (letter.rejected.record.epoch, letter.former) == (3, (1, 2))
    assert (letter.kept_since, letter.last_seen) == (10, 30)


def test_the_last_epoch_counts_also_where_an_earlier_one_is_later_in_the_topic() -> None:
    (letter,) = read_dead_letters([kept(refused(3), 30), kept(refused(2), 40)])
    assert (letter.rejected.record.epoch, letter.former) == (3, (2,))


def test_a_place_has_one_letter_in_an_epoch_and_the_last_one_counts() -> None:
    (letter,) = read_dead_letters([kept(refused(1), 10), kept(refused(1, value=b"["), 20)])
    assert (letter.rejected.record.value, letter.former) == (b"[", ())


def test_a_record_of_a_topic_that_was_created_again_is_another_letter() -> None:
    other = [kept(refused(1), 10), kept(refused(2, value=b"["), 20), kept(refused(3, timestamp=9), 30)]
    assert [letter.rejected.record.epoch for letter in read_dead_letters(other)] == [1, 2, 3]


def test_a_letter_that_was_cut_and_the_whole_one_are_the_same_letter() -> None:
    large = b"x" * 9_000
    cut, whole = refused(1, value=large, limit=4_096), refused(2, value=large)
    (letter,) = read_dead_letters([kept(cut, 10), kept(whole, 20)])
    assert letter.rejected.cut is None
    assert len({mark_of(rejected_record(one)) for one in (cut, whole)}) == 1


def test_a_reason_names_its_column() -> None:
    assert column_of("column 'age': expected int, found text 'x'") == "age"
    assert column_of("key part 'id' is missing") == "id"
    assert column_of("value: not JSON") == ""
