"""An erasure: which records it covers, the version of its marker, and the item that remembers it."""

from processor.engine.protocol.epochs import Incarnation
from processor.engine.protocol.erasures import (
    Erasure,
    erased_in,
    erasure_key,
    may_be_erased,
    read_erasure,
    write_erasure,
)
from statestore.items import are_comparable, encode_version, next_fill
from statestore.memory import MemoryStore

NEW = Erasure({0: encode_version(3, 0, 7), 1: encode_version(3, 1, 0)}, {2: 4})


def test_records_before_the_end_of_their_partition_are_covered_and_later_ones_are_new() -> None:
    assert NEW.covers(encode_version(3, 0, 6))
    assert not NEW.covers(encode_version(3, 0, 7))
    assert not NEW.covers(encode_version(3, 1, 0))
    assert NEW.covers(encode_version(2, 1, 900))
    assert not NEW.covers(encode_version(4, 0, 0))


def test_in_a_partition_that_the_erasure_does_not_know_the_epoch_decides() -> None:
    assert NEW.covers(encode_version(2, 9, 900))
    assert not NEW.covers(encode_version(4, 9, 0))
    assert not Erasure({}).covers(encode_version(0, 0, 0))


def test_the_marker_is_above_every_covered_record_of_the_row_and_below_every_new_one() -> None:
    for seen in (encode_version(3, 0, 2), encode_version(3, 0, 6), next_fill(encode_version(3, 0, 6))):
        marker = NEW.marker_version(seen)
        assert max(seen, encode_version(3, 0, 6)) <= marker < encode_version(3, 0, 7)
        assert marker > seen
        assert NEW.marker_version(marker) > marker


def test_the_marker_stays_in_the_epoch_of_the_row_so_that_new_records_may_come_from_another_partition() -> None:
    marker = NEW.marker_version(encode_version(2, 5, 40))
    assert encode_version(2, 5, 40) < marker < encode_version(2, 5, 41)
    assert are_comparable(marker, encode_version(3, 1, 0))


def test_the_item_has_a_hash_in_place_of_the_key() -> None:
    store, key = MemoryStore(1), erasure_key("user", "ada@example.org")
    written = NEW._replace(ends={"id of user": {0: 7, 1: 0}})
    store.write(write_erasure(key, written))
    (item,) = store.partition("ERASED")
    assert "ada" not in str(item)
    assert read_erasure(item) == written
    erased = erased_in([item])
    assert may_be_erased(erased, "user", "ada@example.org")
    assert not may_be_erased(erased, "star", "ada@example.org")
    assert not may_be_erased(frozenset(), "user", "ada@example.org")


def test_in_an_incarnation_that_the_erasure_knows_the_offset_decides_and_not_the_epoch() -> None:
    known = NEW._replace(ends={"id of user": {0: 7, 1: 0}})
    assert known.covers(encode_version(4, 0, 6), Incarnation("id of user"))
    assert not known.covers(encode_version(1, 0, 7), Incarnation("id of user"))
    assert not known.covers(encode_version(1, 2, 0), Incarnation("id of user"))  # of a partition that was added later
    assert not known.covers(encode_version(4, 0, 6), Incarnation("created again"))
    assert known.covers(encode_version(2, 0, 8), Incarnation("gone before"))


def test_an_erasure_of_a_row_that_was_erased_before_covers_what_that_one_covered() -> None:
    earlier = NEW._replace(ends={"former": {0: 9}, "present": {0: 3}})
    later = Erasure({0: encode_version(5, 0, 4)}, ends={"present": {0: 4}}).after(earlier)
    assert later.covers(encode_version(6, 0, 8), Incarnation("former"))
    assert later.covers(encode_version(6, 0, 3), Incarnation("present"))
    assert not later.covers(encode_version(6, 0, 4), Incarnation("present"))
    assert later.sequences == {2: 4}
    assert (later.epoch, Erasure({}).epoch) == (5, 0)


def test_behind_the_end_that_a_partition_has_after_the_broker_lost_records_the_records_of_later_epochs_are_new() -> (
    None
):
    known = NEW._replace(ends={"id of user": {0: 7, 1: 6}})
    shortened = Incarnation("id of user", {0: [(4, 3), (5, 8)], 1: [(2, 1), (3, 2), (6, 4)]})
    assert known.covers(encode_version(4, 0, 2), shortened)
    assert not known.covers(encode_version(4, 0, 3), shortened)
    assert not known.covers(encode_version(5, 0, 3), shortened)  # the partition has grown since
    assert known.covers(encode_version(3, 0, 3), shortened)  # a dead letter of a lost record
    assert known.covers(encode_version(5, 1, 4), shortened)  # the ends of epochs 2 and 3 are from before the erasure
    assert not known.covers(encode_version(6, 1, 4), shortened)
    assert known.covers(encode_version(6, 1, 3), shortened)


def test_an_erasure_without_a_topic_to_read_learns_of_no_lost_record() -> None:
    former = Erasure({}, ends={"former": {0: 7}})
    assert former.covers(encode_version(9, 0, 5), Incarnation("former", {0: [(2, 5)]}))
