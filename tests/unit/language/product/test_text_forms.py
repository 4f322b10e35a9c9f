"""Text of numbers, times and truth, as PostgreSQL writes it. An integration test compares random expressions with Postgres."""

import json
from decimal import Decimal
from typing import Any, cast

import pytest

from processor.language.definitions.load import load
from processor.language.product.expressions.expression import Match, RowLevel, compile_expression
from processor.language.product.product import Fields

COLUMNS = {
    "id": "int",
    "e": "decimal(12,2)",
    "h": "decimal(38,24)",
    "n": "decimal",
    "ok": "bool",
    "at": "timestamp",
    "day": "date",
}
ROW = {
    "id": 7, "e": Decimal("4.5"), "h": Decimal(1), "n": Decimal("2.5"), "ok": True, "at": "2026-03-01T10:00:00.5Z",
    "day": "2026-03-01",
}  # fmt: skip


def shown(expression: str, **changes: Any) -> Any:
    """The value of an expression in a document of the row."""
    product = {"product": "p", "root": "v", "fields": {"x": expression}}
    texts = {"entities.yaml": json.dumps({"v": {"key": ["id"], "columns": COLUMNS}}), "p.json": json.dumps(product)}
    ((_, read),) = cast(Fields, load(texts).products["p"].selection).members
    return compile_expression(read, cast(RowLevel, None))((Match(ROW | changes, {}), None))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("e::text", "4.50"),
        ("e || ' EUR'", "4.50 EUR"),
        ("concat(e * 1.50, '')", "6.7500"),
        ("(e + h)::text", "5.500000000000000000000000"),
        ("(-e % 2)::text", "-0.50"),
        ("round(n, 3)::text", "2.500"),
        ("trunc(n)::text", "2"),
        ("round(e * 300, -2)::text", "1400"),
        ("n::numeric(8,1) || ''", "2.5"),
        ("(e / 3)::text", "1.5000000000000000"),
        ("(h / 3)::text", "0.333333333333333333333333"),
        ("(id / e)::text", "1.5555555555555556"),
        ("coalesce(e, 0)::text", "4.50"),
        ("('1.0e1'::numeric * 2)::text", "20"),
        ("1e2 || ''", "100"),
        ("(e * -0.0)::text", "0.000"),
        ("id::text", "7"),
        ("ok::text", "true"),
        ("'' || ok", "true"),
        ("concat(ok, '/', id = 8)", "t/f"),
        ("concat_ws('-', ok, day)", "t-2026-03-01"),
        ("at::text", "2026-03-01 10:00:00.5+00"),
        ("at::timestamp::text", "2026-03-01 10:00:00.5"),
        ("day::timestamptz || ''", "2026-03-01 00:00:00+00"),
    ],
)
def test_text_has_the_digits_of_postgresql(expression: str, text: str) -> None:
    assert shown(expression) == text


@pytest.mark.parametrize("expression", ["e", "e * 1.00", "coalesce(e, 0)", "e / 1", "e::numeric(12,4)"])
def test_a_number_of_a_document_has_no_zeros_at_its_end(expression: str) -> None:
    assert str(shown(expression)) == "4.5"


def test_a_value_with_more_digits_than_its_scale_keeps_them() -> None:
    assert shown("e::text", e=Decimal("1.2345")) == "1.2345"


def test_an_expression_that_reads_no_scale_stays_as_it_is() -> None:
    """So documents cost what they cost before."""
    product = {"product": "p", "root": "v", "fields": {"x": "e * 2 > n and round(e, 1) < 9"}}
    texts = {"entities.yaml": json.dumps({"v": {"key": ["id"], "columns": COLUMNS}}), "p.json": json.dumps(product)}
    assert "of scale" not in str(load(texts).products["p"])
