"""Versions: their order, the position in them, and which of them have an order."""

from statestore.items import are_comparable, decode_version, encode_version, next_fill


def test_a_version_gives_back_its_position_also_after_fills() -> None:
    version = encode_version(3, 12, 4567)
    assert decode_version(version) == (3, 12, 4567)
    assert decode_version(next_fill(next_fill(version))) == (3, 12, 4567)


def test_text_order_is_the_order_of_epochs_then_of_offsets_and_a_fill_comes_before_the_next_offset() -> None:
    first, second, moved = encode_version(1, 5, 9), encode_version(1, 5, 10), encode_version(2, 0, 0)
    assert first < next_fill(first) < next_fill(next_fill(first)) < second < moved


def test_offsets_of_two_partitions_have_an_order_only_across_epochs() -> None:
    assert are_comparable(encode_version(1, 5, 9), next_fill(encode_version(1, 5, 10)))
    assert are_comparable(encode_version(1, 5, 9), encode_version(2, 6, 1))
    assert not are_comparable(encode_version(1, 5, 9), encode_version(1, 6, 10))
