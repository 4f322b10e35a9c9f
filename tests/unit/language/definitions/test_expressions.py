"""Valid expressions: what the reader makes of them. The page for authors names each function."""

import json
from pathlib import Path
from typing import Any

import pytest

from processor.language.definitions.describe import describe_product
from processor.language.definitions.expressions import AGGREGATES
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.language.product.expressions.catalogue import OVERLOADS, define
from processor.language.product.expressions.expression import Aggregate, Call, Column, Computed, Literal, Shown
from processor.language.product.product import BareValue, Product

PAGE = Path(__file__).parents[4] / "docs" / "definitions.md"
ENTITIES = """
user: {key: [id], columns: {id: int, name: string, price: float, at: timestamp, order: int, parent: int, end: bool}}
"""


def load_product(text: str) -> Product:
    return load({"entities.yaml": ENTITIES, "p.yaml": f"product: p\nroot: user\n{text}"}).products["p"]


def value(text: str) -> object:
    selection = load_product(text).selection
    assert isinstance(selection, BareValue)
    return selection.expression


@pytest.mark.parametrize(
    ("takes", "gives", "scale"), [("decimal", "decimal", None), ("decimal", "string", None), ("decimal", "int", "same")]
)
def test_a_function_whose_result_shows_a_scale_says_its_scale(takes: str, gives: Any, scale: Any) -> None:
    with pytest.raises(TypeError, match="twice"):
        define("twice", takes, gives, lambda number: number * 2, "({0} * 2)", scale=scale)
    assert "twice" not in OVERLOADS


def test_a_call_names_its_overload_and_keeps_what_the_author_wrote() -> None:
    call = Call(function="+(int,int)", args=(Column(name="id"), Literal(value=1, type="int")), type="int")
    assert value("value: id + 1") == Computed(text="id + 1", node=call)


def test_a_text_literal_takes_the_type_of_the_other_side() -> None:
    of = value("value: at > '2026-01-01'").node  # type: ignore[attr-defined]
    assert of.function == ">(timestamp,timestamp)"
    assert of.args[1] == Literal(value="2026-01-01T00:00:00Z", type="timestamp")


@pytest.mark.parametrize("text", ["(name)", '"name"', '("name")', "name"])
def test_a_column_in_brackets_or_quotes_is_a_column(text: str) -> None:
    assert value(f"value: '{text}'") == Column(name="name")


@pytest.mark.parametrize("text", ["order + 1", "end and true", '"order" * 2', "parent - 1"])
def test_words_of_sql_can_name_columns(text: str) -> None:
    if text.startswith("end"):
        text = text.replace("end", '"end"', 1)
    assert isinstance(value(f"value: '{text}'"), Computed)


@pytest.mark.parametrize("text", ["1", "true", "null", "'x'", "1.5", "-3"])
def test_a_constant_is_an_expression_however_yaml_reads_it(text: str) -> None:
    assert isinstance(value(f"value: {text}" if "'" not in text else f'value: "{text}"').node, Literal)  # type: ignore[attr-defined]


def test_an_expression_may_have_several_lines() -> None:
    assert isinstance(value("value: |\n  case when id > 1\n    then name\n  end\n"), Computed)


def test_parent_is_the_row_above_unless_a_join_has_that_name() -> None:
    up = "join: {parent: {one: user, on: {id: parent}}}"
    assert value(f"value: parent.name\n{up}") == Column(name="name", path=("parent",))
    product = load_product(
        "fields: [id]\nembed: {j: {many: user, on: {parent: id}, fields: {a: parent.name, b: parent}}}"
    )
    members = product.joins[0].selection.members  # type: ignore[union-attr]
    assert members == (("a", Column(name="name", up=1)), ("b", Column(name="parent")))


def test_a_bare_name_is_a_join_before_it_is_a_column() -> None:
    join = "join: {name: {one: user, on: {id: parent}, value: price}}"
    assert value(f"value: name\n{join}") == Computed(text="name", node=Shown(path=("name",), type="float"))


def test_an_average_is_a_sum_divided_by_a_count() -> None:
    product = load_product("fields: [id]\nembed: {j: {many: user, on: {parent: id}, value: avg(id)}}")
    average = product.joins[0].selection.expression.node  # type: ignore[union-attr]
    assert isinstance(average, Call)
    total = Aggregate(function="sum", argument=Column(name="id"), over=(), type="decimal")
    assert (average.function, average.args[0]) == ("/(decimal,decimal)", total)
    assert product.joins[0].aggregated


def test_a_described_product_is_read_back() -> None:
    product = load_product(
        """
where: count(js) > 1 and price is not null
fields: {n: sum(js.price * id), up: upper(name)}
join: {js: {many: user, on: {parent: id}, where: parent.price < price, required: true}}
embed: {ks: {many: user, on: {parent: id}, order_by: ["-id % 2", "lower(name)"], limit: 2, total: true}}
"""
    )
    described = describe_product(product)
    assert described["where"] == "count(js) > 1 and price is not null"
    assert described["join"]["js"]["required"] is True
    assert described["embed"]["ks"]["order_by"] == ["-id % 2", "lower(name)"]


def test_the_page_for_authors_names_every_function() -> None:
    page = PAGE.read_text(encoding="utf-8").replace("&#124;", "|")
    words = {
        name.split()[0] for name in OVERLOADS if not name.startswith(("to ", "as stored", "of size", "unary", "fold "))
    } | set(AGGREGATES)
    words -= {"is"}
    assert [word for word in sorted(words) if word not in page] == []


def test_long_conditions_are_flat_and_deep_expressions_are_refused() -> None:
    condition = " or ".join(f"id = {n}" for n in range(200))
    assert len(value(f"value: {condition}").node.args) == 200  # type: ignore[attr-defined]
    with pytest.raises(DefinitionError, match="nests more than 100 calls"):
        value(f"value: {' + '.join(['id'] * 102)}")
    with pytest.raises(DefinitionError, match="nests more than 100 calls"):
        value(f"value: {'(' * 5000}id{')' * 5000} + 1")


@pytest.mark.parametrize(
    "written", ["9" * 5_000, "1." + "9" * 5_000, "1e1000", "1e-5000", f"a::decimal({'9' * 5_000})"]
)
def test_a_number_of_too_many_digits_is_refused(written: str) -> None:
    with pytest.raises(
        DefinitionError, match=r"^p.json:1: the number `.{1,43}` has more than 1000 digits; write a number"
    ):
        _load_field(written)


@pytest.mark.parametrize(
    "written",
    ["a = b is null", "a in (1) = p",
     "a not in (1) = p", "not a = b and p", "p is null is null", "-a::int + b",
     "s || a + b = s", "p and not not p", "s like 'a' = p", "(a < b) < p", "a between 1 and 2 = p",
     "s not like '50!%' escape '!' = p"],
)  # fmt: skip
def test_operators_that_postgresql_groups_need_no_parentheses(written: str) -> None:
    _load_field(written)


def test_joins_too_deep_for_python_are_a_problem() -> None:
    for deep in (48, 400):
        body: dict[str, Any] = {"fields": ["id"]}
        for n in range(deep):
            body = {"fields": ["id"], "embed": {f"j{n}": {"one": "t", "on": {"id": "a"}, **body}}}
        texts = {"entities.yaml": json.dumps(ENTITY), "p.json": json.dumps({"product": "p", "root": "t", **body})}
        if deep == 48:
            load(texts)
        else:
            with pytest.raises(DefinitionError, match="nests more than 100 levels"):
                load(texts)


ENTITY = {"t": {"key": ["id"], "columns": {"id": "int", "a": "int", "b": "int", "p": "bool", "s": "string"}}}


def _load_field(written: str) -> None:
    product = {"product": "p", "root": "t", "fields": {"x": written}}
    load({"entities.yaml": json.dumps(ENTITY), "p.json": json.dumps(product)})


def test_an_interval_keeps_the_time_behind_its_days() -> None:
    product = load_product("fields: {later: \"at + interval '1 day 02:30'\"}\n").selection
    assert "Literal(value='1 day 02:30', type='string')" in str(product)
    with pytest.raises(DefinitionError, match="`interval '1 day ago'` is not offered"):
        load_product("fields: {earlier: \"at + interval '1 day ago'\"}\n")
