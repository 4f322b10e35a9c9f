"""Columns whose names Avro does not allow have the names that Debezium gives to them."""

import pytest

from processor.values.avro_schema import adjusted_names, with_columns


@pytest.mark.parametrize(
    ("column", "adjusted"),
    [
        ("user-id", {"user_id", "user_u002did"}),
        ("2fa", {"_2fa", "_u0032fa"}),
        ("user_id", {"user_u005fid"}),
        ("größe", {"gr__e", "gr_u00f6_u00dfe"}),
        ("a😀", {"a__", "a_ud83d_ude00"}),
        ("a.b", {"a_b", "a_u002eb"}),
        ("plain2", set()),
    ],
)
def test_a_column_has_the_name_of_each_mode(column: str, adjusted: set[str]) -> None:
    assert adjusted_names([column]) == dict.fromkeys(adjusted, column)


def test_a_name_of_two_columns_or_of_another_column_means_neither() -> None:
    assert adjusted_names(["a-b", "a.b"]) == {"a_u002db": "a-b", "a_u002eb": "a.b"}
    assert adjusted_names(["a-b", "a_b"]) == {"a_u002db": "a-b", "a_u005fb": "a_b"}


def test_two_members_of_one_column_are_refused_in_any_order() -> None:
    names = adjusted_names(["a-b"])
    assert with_columns({"a_b": 1, "c": 2}, names) == {"a-b": 1, "c": 2}
    for members in ({"a_b": 1, "a-b": 2}, {"a-b": 1, "a_b": 2}):
        with pytest.raises(ValueError, match="of the record may both be this column"):
            with_columns(members, names)
