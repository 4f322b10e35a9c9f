"""The registry numbers the products of each root in the order in which they come, and never gives a number twice."""

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from processor.engine.plan.planning import plan_of, requirements_of
from processor.language.definitions.load import load
from registry.edits.apply import apply
from registry.edits.edit import Signature, edited
from registry.edits.operations import remove
from registry.model import Requirements
from registry.repository import Registry
from tests.integration.registry.by_hand import run

ENTITIES = "{user: {key: [id], columns: {id: int}}, star: {key: [id], columns: {id: int}}}"


def of_products(*products: str) -> Requirements:
    """Products by their names; those of stars begin with `s`."""
    texts = {
        f"{name}.yaml": f"{{product: {name}, root: {'star' if name[0] == 's' else 'user'}, fields: [id]}}"
        for name in products
    }
    return requirements_of(load({"entities.yaml": ENTITIES, **texts}))


def numbers(registry: Registry) -> dict[str, int]:
    return {f"{root} {name}": number for (root, name), number in sorted(registry.snapshot().numbers.items())}


def test_products_get_numbers_by_root_in_the_order_in_which_they_come(registry: Registry) -> None:
    for products in (("z",), ("b", "s1"), ("a", "s0")):
        registry.apply(of_products(*products), who="me", why="one more")
    assert numbers(registry) == {"star s0": 1, "star s1": 0, "user a": 2, "user b": 1, "user z": 0}
    plan = plan_of(registry.snapshot())
    assert {name: product.number for name, product in plan.products.items()} == {
        "z": 0,
        "b": 1,
        "a": 2,
        "s1": 0,
        "s0": 1,
    }


def test_a_number_outlives_its_product_and_goes_to_no_other(registry: Registry) -> None:
    registry.apply(of_products("a", "b"), who="me", why="two")
    registry.operate(Signature("me", "gone"), remove, "b", tombstones=False)
    registry.apply(of_products("c"), who="me", why="another")
    assert numbers(registry) == {"user a": 0, "user b": 1, "user c": 2}
    registry.apply(of_products("b"), who="me", why="again")
    assert numbers(registry) == {"user a": 0, "user b": 1, "user c": 2}
    assert plan_of(registry.snapshot()).products["b"].number == 1


def test_the_pure_edit_gives_the_numbers_that_the_database_gives(registry: Registry) -> None:
    for products in (("m", "s9"), ("k", "l", "s1"), ("a",)):
        stored, wanted = registry.snapshot(), of_products(*products)
        expected = edited(stored, apply(stored, wanted, frozenset()))
        registry.apply(wanted, who="me", why="more")
        assert registry.snapshot().numbers == expected.numbers


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_numbers SET number = number + 9",
        "DELETE FROM ledger_numbers",
        "TRUNCATE ledger_numbers",
        "INSERT INTO ledger_numbers VALUES ('user', 'x', 7)",
    ],
)
def test_psql_changes_no_number(registry: Registry, psql: Engine, statement: str) -> None:
    registry.apply(of_products("a"), who="me", why="one")
    with pytest.raises(IntegrityError, match="the triggers of edits keep it"):
        run(psql, statement)
