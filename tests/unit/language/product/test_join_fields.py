"""Rows join by keys of columns, of array elements, and of members of elements."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.language.product.join_fields import array_of, join_keys, parse_compared, parse_element, typed_field
from processor.values.entity import Entity, parse_type
from registry.fields import column_of
from statestore import keys


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (("name",), ["a#b".replace("#", "%23")]),
        (("name", "id"), ["a%23b#7"]),
        (("none",), [None]),
        (("ids[]",), ["3", None, "3", "10"]),
        (("name", "ids[]"), ["a%23b#3", None, "a%23b#3", "a%23b#10"]),
        (("none", "ids[]"), [None] * 4),
        (("nothing[]",), []),
        (("inner[].id::number",), ["1", None, None, None, None, "2", None]),
        (("inner[].id::string",), [None, "1", None, None, None, None, None]),
        (("inner[].id::bool",), [None, None, None, None, None, None, "true"]),
        (("inner[].id::number", "inner[].of::string"), ["1#x", None, None, None, None, None, None]),
    ],
)
def test_a_row_has_one_key_for_each_element_in_the_order_of_its_array(
    fields: tuple[str, ...], found: list[str | None]
) -> None:
    inner = [{"id": 1, "of": "x"}, {"id": "1"}, {"id": None}, {}, 5, {"id": Decimal("2.0")}, {"id": True}]
    row = {"name": "a#b", "id": 7, "none": None, "ids": [3, None, 3, 10], "nothing": None, "inner": inner}
    assert join_keys(fields, row) == found


def test_a_field_names_the_column_that_it_reads() -> None:
    assert [column_of(field) for field in ("a", "a[]", "a[].b", "a[].b::string", "[]", "a.b")] == [
        "a", "a", "a", "a", "[]", "a.b",
    ]  # fmt: skip
    assert array_of(("x", "a[].b", "a[].c")) == "a"
    assert array_of(("x", "y")) is None
    assert parse_element("a.b[].c d") == ("a.b", "c d", None, None)


def test_only_json_takes_the_kind_of_the_other_side() -> None:
    types = {"ids": parse_type("int[]"), "inner": parse_type("json[]"), "id": parse_type("int")}
    entity = Entity(name="team", topic="team", key=("id",), columns=types)
    fields = ("ids[]", "inner[].id", "inner[]", "id")
    assert [typed_field(field, entity, parse_type("decimal(9,2)"), ()) for field in fields] == [
        "ids[]", "inner[].id::number", "inner[]::number", "id",
    ]  # fmt: skip


def test_a_field_says_how_its_text_compares() -> None:
    fields = ("a::ci", "a::ci+trimmed", "a[]::ci", "a[].b::trimmed", "a[].b::string+ci", "a::cc", "a::b::ci")
    assert [column_of(field) for field in fields] == ["a", "a", "a", "a", "a", "a::cc", "a::b"]
    assert list(map(parse_compared, fields)) == [
        ("a", "ci"), ("a", "ci+trimmed"), None, None, None, None, ("a::b", "ci"),
    ]  # fmt: skip
    assert parse_element("a[].b+ci") == ("a", "b+ci", None, None)
    assert parse_element("a[].b::string+ci+trimmed") == ("a", "b", "string", "ci+trimmed")
    row = {"a": "De ", "l": ["De ", None, "fr"], "j": [{"k": "De"}, {"k": 1}, None]}
    assert join_keys(("a::ci+trimmed",), row, ("a::ci+trimmed",)) == ["de"]
    assert join_keys(("a::ci", "a"), row, ("a::ci",)) == ["de #De "]
    assert join_keys(("l[]::ci",), row) == ["de ", None, "fr"]
    assert join_keys(("j[].k::string+ci",), row) == ["de", None, None]


names = st.text("a%#=[]!", min_size=1, max_size=4)


@given(st.lists(names, min_size=1, max_size=3), st.lists(names, min_size=1, max_size=3), st.data())
def test_no_two_keys_of_any_fields_share_a_partition(one: list[str], other: list[str], data: st.DataObject) -> None:
    values = [data.draw(st.lists(names, min_size=len(fields), max_size=len(fields))) for fields in (one, other)]
    partitions = [
        keys.edge_partition("team", keys.field_names(tuple(fields)), keys.encode(key) or "")
        for fields, key in zip((one, other), values, strict=True)
    ]
    assert (partitions[0] == partitions[1]) == ((one, values[0]) == (other, values[1]))
