"""A product reads columns by its selections, conditions, orders and joins, at every level."""

import json
from typing import Any

from processor.definitions.load import load
from processor.product.product import used_columns

COLUMNS = dict.fromkeys("abcdefgh", "int") | {"id": "int"}
ENTITY = {"t": {"key": ["id"], "columns": COLUMNS}}


def read(**product: Any) -> dict[str, str | None]:
    definitions = load(
        {"entities.yaml": json.dumps(ENTITY), "p.json": json.dumps({"product": "p", "root": "t"} | product)}
    )
    found = used_columns(definitions.products["p"])
    return {".".join(at): None if columns is None else "".join(sorted(columns)) for at, columns in found.items()}


def test_a_whole_row_reads_every_column() -> None:
    assert read(embed={"j": {"many": "t", "on": {"a": "b"}}}) == {"": None, "j": None}


def test_conditions_and_order_read_columns_like_the_selection() -> None:
    join = {"many": "t", "on": {"a": "b"}, "where": "c > 1", "order_by": ["-d + e"], "value": "f"}
    assert read(fields=["g"], where="h = 1", embed={"j": join}) == {"": "bgh", "j": "acdef"}


def test_a_join_without_embed_reads_only_the_columns_that_expressions_name() -> None:
    join = {"one": "t", "on": {"a": "b"}, "fields": ["h"], "join": {"k": {"one": "t", "on": {"c": "d"}}}}
    assert read(value="j.e + j.k.f", join={"j": join}) == {"": "b", "j": "ade", "j.k": "cf"}


def test_columns_that_a_level_below_reads_count_at_the_level_of_their_row() -> None:
    lower = {"many": "t", "on": {"a": "b"}, "where": "parent.c > parent.parent.d", "value": "count(*)"}
    join = {"many": "t", "on": {"e": "f"}, "fields": [], "embed": {"k": lower}}
    assert read(fields=[], embed={"j": join}) == {"": "df", "j": "bce", "j.k": "a"}


def test_an_aggregate_reads_its_rows_and_the_row_that_it_belongs_to() -> None:
    many = {"many": "t", "on": {"a": "b"}, "join": {"k": {"one": "t", "on": {"c": "d"}}}}
    assert read(value="sum(j.k.e * f) + count(j)", join={"j": many}) == {"": "bf", "j": "ad", "j.k": "ce"}


def test_an_expression_that_shows_a_join_reads_the_columns_of_its_value() -> None:
    join = {"one": "t", "on": {"a": "b"}, "value": "c + 1"}
    assert read(value="j + 1", join={"j": join}) == {"": "b", "j": "ac"}
    assert read(value="d", join={"j": join}) == {"": "bd", "j": "a"}
