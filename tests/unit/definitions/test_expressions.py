"""Expressions that are right: what they are read as, and that authors are told of each function."""

from pathlib import Path

import pytest

from processor.definitions.describe import describe_product
from processor.definitions.errors import DefinitionError
from processor.definitions.expressions import AGGREGATES
from processor.definitions.load import load
from processor.model.expression import Aggregate, Call, Column, Computed, Literal, Shown
from processor.model.functions import OVERLOADS
from processor.model.product import Bare, Product

PAGE = Path(__file__).parents[3] / "docs" / "expressions.md"
ENTITIES = """
user: {key: [id], columns: {id: int, name: string, price: float, at: timestamp, order: int, parent: int, end: bool}}
"""


def load_product(text: str) -> Product:
    return load({"entities.yaml": ENTITIES, "p.yaml": f"product: p\nroot: user\n{text}"}).products["p"]


def value(text: str) -> object:
    selection = load_product(text).selection
    assert isinstance(selection, Bare)
    return selection.of


def test_a_call_names_its_overload_and_keeps_what_the_author_wrote() -> None:
    call = Call(function="+(int,int)", args=(Column(name="id"), Literal(value=1, type="int")), type="int")
    assert value("value: id + 1") == Computed(text="id + 1", of=call)


def test_text_that_is_written_out_becomes_what_stands_beside_it() -> None:
    of = value("value: at > '2026-01-01'").of  # type: ignore[attr-defined]
    assert of.function == ">(timestamp,timestamp)"
    assert of.args[1] == Literal(value="2026-01-01T00:00:00Z", type="timestamp")


@pytest.mark.parametrize("text", ["(name)", '"name"', '("name")', "name"])
def test_a_column_in_brackets_or_quotes_is_a_column(text: str) -> None:
    assert value(f"value: '{text}'") == Column(name="name")


@pytest.mark.parametrize("text", ["order + 1", "end and true", '"order" * 2', "parent - 1"])
def test_words_that_sql_has_another_use_for_can_name_columns(text: str) -> None:
    if text.startswith("end"):
        text = text.replace("end", '"end"', 1)
    assert isinstance(value(f"value: '{text}'"), Computed)


@pytest.mark.parametrize("text", ["1", "true", "null", "'x'", "1.5", "-3"])
def test_a_constant_is_an_expression_however_yaml_reads_it(text: str) -> None:
    assert isinstance(value(f"value: {text}" if "'" not in text else f'value: "{text}"').of, Literal)  # type: ignore[attr-defined]


def test_an_expression_may_have_several_lines() -> None:
    assert isinstance(value("value: |\n  case when id > 1\n    then name\n  end\n"), Computed)


def test_parent_is_the_row_above_unless_a_join_is_called_so() -> None:
    up = "join: {parent: {one: user, on: {id: parent}}}"
    assert value(f"value: parent.name\n{up}") == Column(name="name", path=("parent",))
    product = load_product(
        "fields: [id]\nembed: {j: {many: user, on: {parent: id}, fields: {a: parent.name, b: parent}}}"
    )
    members = product.joins[0].selection.members  # type: ignore[union-attr]
    assert members == (("a", Column(name="name", up=1)), ("b", Column(name="parent")))


def test_a_bare_name_is_a_join_before_it_is_a_column() -> None:
    join = "join: {name: {one: user, on: {id: parent}, value: price}}"
    assert value(f"value: name\n{join}") == Computed(text="name", of=Shown(path=("name",), type="float"))


def test_an_average_is_a_sum_divided_by_a_count() -> None:
    product = load_product("fields: [id]\nembed: {j: {many: user, on: {parent: id}, value: avg(id)}}")
    of = product.joins[0].selection.of.of  # type: ignore[union-attr]
    total = Aggregate(function="sum", of=Column(name="id"), over=(), type="decimal")
    assert (of.function, of.args[0]) == ("/(decimal,decimal)", total)
    assert product.joins[0].aggregated


def test_what_is_described_is_read_back() -> None:
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
        name.split()[0] for name in OVERLOADS if not name.startswith(("to ", "as stored", "of size", "unary"))
    } | set(AGGREGATES)
    words -= {"is"}
    assert [word for word in sorted(words) if word not in page] == []


def test_long_conditions_are_flat_and_deep_expressions_are_refused() -> None:
    condition = " or ".join(f"id = {n}" for n in range(200))
    assert len(value(f"value: {condition}").of.args) == 200  # type: ignore[attr-defined]
    with pytest.raises(DefinitionError, match="nests more than 100 calls"):
        value(f"value: {' + '.join(['id'] * 102)}")
    with pytest.raises(DefinitionError, match="nests more than 100 calls"):
        value(f"value: {'(' * 5000}id{')' * 5000} + 1")
