"""Which columns a product reads: by its selection, conditions, order and joins, wherever they stand."""

import json
from typing import Any

from processor.definitions.load import load
from processor.model.reads import reads

COLUMNS = dict.fromkeys("abcdefgh", "int") | {"id": "int"}
ENTITY = {"t": {"key": ["id"], "columns": COLUMNS}}


def read(**product: Any) -> dict[str, str | None]:
    definitions = load(
        {"entities.yaml": json.dumps(ENTITY), "p.json": json.dumps({"product": "p", "root": "t"} | product)}
    )
    found = reads(definitions.products["p"])
    return {".".join(at): None if columns is None else "".join(sorted(columns)) for at, columns in found.items()}


def test_a_whole_row_reads_every_column() -> None:
    assert read(embed={"j": {"many": "t", "on": {"a": "b"}}}) == {"": None, "j": None}


def test_conditions_and_order_count_beside_the_selection() -> None:
    join = {"many": "t", "on": {"a": "b"}, "where": "c > 1", "order_by": ["-d + e"], "value": "f"}
    assert read(fields=["g"], where="h = 1", embed={"j": join}) == {"": "bgh", "j": "acdef"}


def test_a_join_that_is_only_named_reads_what_is_named() -> None:
    join = {"one": "t", "on": {"a": "b"}, "fields": ["h"], "join": {"k": {"one": "t", "on": {"c": "d"}}}}
    assert read(value="j.e + j.k.f", join={"j": join}) == {"": "b", "j": "ade", "j.k": "cf"}


def test_what_levels_below_read_of_the_rows_above_counts_there() -> None:
    lower = {"many": "t", "on": {"a": "b"}, "where": "parent.c > parent.parent.d", "value": "count(*)"}
    join = {"many": "t", "on": {"e": "f"}, "fields": [], "embed": {"k": lower}}
    assert read(fields=[], embed={"j": join}) == {"": "df", "j": "bce", "j.k": "a"}


def test_an_aggregate_reads_its_rows_and_the_rows_that_it_starts_from() -> None:
    many = {"many": "t", "on": {"a": "b"}, "join": {"k": {"one": "t", "on": {"c": "d"}}}}
    assert read(value="sum(j.k.e * f) + count(j)", join={"j": many}) == {"": "bf", "j": "ad", "j.k": "ce"}


def test_a_join_that_stands_for_its_value_reads_what_the_value_does() -> None:
    join = {"one": "t", "on": {"a": "b"}, "value": "c + 1"}
    assert read(value="j + 1", join={"j": join}) == {"": "b", "j": "ac"}
    assert read(value="d", join={"j": join}) == {"": "bd", "j": "a"}
