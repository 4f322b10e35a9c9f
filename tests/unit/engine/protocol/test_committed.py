"""Which records count as committed: those that the checkpoint's stream has read, of the present incarnation of their topic."""

import pytest

from processor.engine.protocol.epochs import NOTHING, Committed, Epochs, committed_by, published_before
from processor.values.record import Record
from statestore.items import encode_version, next_fill

GROWN = Epochs(steps={("star", 0): ((0, 1), (10, 2)), ("star", 1): ((0, 2),)})
"""A topic that got a second partition when the first one ended at offset 10."""
AT = {("star", 0): 15, ("star", 1): 4}


@pytest.mark.parametrize(
    ("epoch", "partition", "offset", "committed"),
    [
        (1, 0, 9, True),
        (2, 0, 10, True),
        (2, 0, 14, True),
        (2, 0, 15, False),  # the stream has not read it
        (2, 1, 3, True),
        (2, 1, 4, False),
        (1, 0, 12, False),  # the broker lost this record, and another one has its offset
        (1, 1, 2, False),  # this partition began with epoch 2: the record is of a former incarnation
        (3, 0, 0, False),
    ],
)
def test_a_record_is_committed_by_its_own_epoch_partition_and_offset(
    epoch: int, partition: int, offset: int, committed: bool
) -> None:
    known = committed_by(GROWN, {}, AT)
    version = encode_version(epoch, partition, offset)
    assert known.has("star", version) is committed
    assert known.has("star", next_fill(version)) is committed
    assert not known.has("user", version)


def test_nobody_knows_what_was_before_the_begin_of_the_stream() -> None:
    """Retention took records that a crashed batch had read; or the entity came from another topic."""
    known = committed_by(GROWN, {("star", 0): 12}, AT)
    assert [known.has("star", encode_version(e, 0, n)) for e, n in ((1, 9), (2, 11), (2, 12), (2, 14))] == [
        False,
        False,
        True,
        True,
    ]


def test_a_topic_without_boundaries_has_epoch_1() -> None:
    assert committed_by(Epochs(steps={}), {}, {("user", 0): 3}).has("user", encode_version(1, 0, 2))


def test_a_run_without_a_checkpoint_knows_the_records_that_it_read() -> None:
    records = [
        Record(topic="user", partition=0, offset=n, epoch=e, key=None, value=None) for e, n in ((0, 4), (0, 2), (3, 0))
    ]
    known = NOTHING.and_read(records)
    assert known.offsets == {("user", 0, 0): (2, 5), ("user", 3, 0): (0, 1)}


def test_rows_of_a_truncate_whose_walk_goes_on_are_not_published() -> None:
    known = Committed({("user", 1, 0): (0, 9)})
    published = published_before(known, ("user", 1, 0), 9, encode_version(1, 0, 5))
    assert (published.since, published.below) == (encode_version(1, 0, 0), encode_version(1, 0, 5))
    assert [published(encode_version(1, 0, n)) for n in (4, 5, 8)] == [True, False, False]


def test_records_that_a_batch_reads_again_are_not_committed() -> None:
    """A file of recorded topics may repeat an offset: its rows belong to the batch, not to those before."""
    published = published_before(Committed({("user", 0, 0): (0, 9)}), ("user", 0, 0), 3, "~")
    assert published.below == encode_version(0, 0, 3)


def test_the_first_record_of_a_partition_is_committed_once_a_batch_has_read_it() -> None:
    first = encode_version(1, 0, 0)
    assert not NOTHING.has("user", first)
    assert not published_before(NOTHING, ("user", 1, 0), 0, "~")(first)
    assert committed_by(Epochs(steps={}), {}, {("user", 0): 1}).has("user", first)
    assert published_before(NOTHING, ("user", 1, 0), 5, "~").below == first
    known = published_before(Committed({("user", 1, 0): (2, 4)}), ("user", 1, 0), 9, "~")
    assert [known(encode_version(1, 0, n)) for n in (1, 2, 3, 4)] == [False, True, True, False]
    assert (known.since, known.below) == (encode_version(1, 0, 2), encode_version(1, 0, 4))
