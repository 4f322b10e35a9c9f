"""A sample of records shows how the decimals of an entity arrive, where neither the records nor the entity say so."""

from dataclasses import replace
from typing import Any

import pytest

from processor.tools.doctor.records import format_findings, misfit_findings, undeclared_forms
from processor.values.framing import NO_SCHEMAS
from processor.values.record import Record
from tests.unit.engine.protocol.decoding import entity, envelope, raw, with_schema

PRICE = {"field": "x", "type": "string"}


def forms(
    *values: Any, columns: str = "id int, x decimal(10,2), s string", decimals: Any = None
) -> dict[str, set[str]]:
    records = [Record(topic="t", partition=0, offset=n, key=None, value=raw(value)) for n, value in enumerate(values)]
    found = undeclared_forms(records, entity("t", "id", columns, decimals=decimals))
    return {name: set(one) for name, one in found.items()}


def row(value: Any) -> Any:
    return envelope("u", after={"id": 1, "x": value, "s": "BNI="})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([row("12.34"), row("1000"), row(None), row(7)], {"x": {"text", "either"}}),
        ([row("BNI="), row("free")], {"x": {"bytes", "either"}}),
        ([row("AYag")], {"x": {"either"}}),
        ([row(1), row("NaN"), row("Infinity"), row({"scale": 1, "value": "Nw=="}), row("twelve")], {}),
        ([envelope("d", before={"id": 1, "x": "BNI="}), None, b"\0\0\0\0\1", b"{", envelope("t")], {}),
        ([{"id": 1, "x": "12.34"}, {"id": 1, "x": "1000"}], {}),  # a plain row has digits in its text
        ([{"id": 1, "x": "1000"}, {"id": 1, "x": "BNI="}], {"x": {"unread"}}),
        ([{"id": 1, "x": "AYag"}], {"x": {"unread"}}),
        ([with_schema({"id": 1, "x": "12.34"}, [PRICE])], {}),
        ([with_schema(row("12.34"), [{"field": "after", "type": "struct", "fields": [PRICE]}])], {}),
    ],
)
def test_the_text_of_a_number_column_shows_its_form(values: list[Any], expected: Any) -> None:
    assert forms(*values) == expected


def test_the_elements_of_arrays_count_and_what_the_entity_says_does_not() -> None:
    assert forms(row(["1.5", "BNI=", None]), columns="id int, x decimal(10,2)[]") == {"x": {"text", "bytes"}}
    for decimals in ("text", "bytes", {"x": "bytes"}):
        assert forms(row("BNI="), decimals=decimals) == {}
    assert forms(row("BNI="), columns="id int, x decimal(9,1), y decimal", decimals={"y": "text"}) == {"x": {"bytes"}}


def test_a_column_without_a_scale_has_digits_in_its_text() -> None:
    for column in ("decimal", "float"):
        assert forms(row("1000"), row("12.34"), columns=f"id int, x {column}") == {}
        assert forms(row("BNI="), columns=f"id int, x {column}") == {"x": {"unread"}}


@pytest.mark.parametrize(
    ("table", "state", "text"),
    [
        ("orders", "ok", "1 of the last 3 records are of the table orders of entity t, which ignores 2"),
        ("order", "warning", "0 of the last 3 records are of the table order of entity t: they are of orders, users"),
    ],
)
def test_the_tables_of_a_topic_show_how_many_records_the_entity_takes(table: str, state: str, text: str) -> None:
    values = [{**row(None), "source": {"table": name}} for name in ("orders", "users", "users")]
    records = [Record(topic="t", partition=0, offset=n, key=None, value=raw(value)) for n, value in enumerate(values)]
    picked = replace(entity("t", "id", "id int, x decimal(10,2), s string"), table=table)
    (found,) = format_findings(picked, records, NO_SCHEMAS)
    assert (found.state, found.text) == (state, f"t: {text}")


@pytest.mark.parametrize(
    ("nulls", "state", "end"), [(None, "warning", ": dead letters"), ("null", "ok", ": it is null")]
)
def test_values_that_a_type_cannot_hold_are_dead_letters_or_null_as_the_entity_says(
    nulls: Any, state: str, end: str
) -> None:
    records = [Record(topic="t", partition=0, offset=0, key=None, value=raw({"id": 1, "on": "infinity"}))]
    (found,) = misfit_findings(replace(entity("t", "id", "id int, on date"), unrepresentable=nulls), records)
    text = "t: 1 of the last 1 records have a value in column on that date cannot hold"
    assert (found.state, found.text) == (state, text + end)
