"""Finds the columns that a product reads at each level. A change of other columns does not touch the product (rule 8 of
docs/architecture.md)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from processor.product.expressions.expression import Column, Computed, Expression, Path, node_of, references
from processor.product.product import BareValue, Join, Product, WholeRow, expressions
from registry.text import column_of


def used_columns(product: Product) -> Mapping[Path, frozenset[str] | None]:
    """Path of a level -> the columns that joins and expressions of any level read there. None: all columns. The root's path is
    (), a join's path the names of the joins from the root to it."""
    found, whole = _read_columns(product)
    return {at: None if at in whole else frozenset(columns) for at, columns in found.items()}


def compared_by_entity(product: Product) -> Mapping[str, frozenset[str]]:
    """The columns, by entity, whose way to compare may change a document: all that the product reads, but for those that it only
    shows."""
    found, entities = _read_columns(product, compared=True)[0], _entities(product)
    compared: dict[str, frozenset[str]] = {}
    for at, columns in found.items():
        compared[entities[at]] = compared.get(entities[at], frozenset()) | columns
    return compared


def _read_columns(product: Product, *, compared: bool = False) -> tuple[Mapping[Path, set[str]], set[Path]]:
    """The columns that the product names at each level, and the levels that show the whole row. `compared`: without columns that
    are members of an object as they are, and with the expressions of joins that nothing shows."""
    joins = dict(_paths((), product.joins))
    found: dict[Path, set[str]] = {at: set() for at in ((), *joins)}
    selections = {(): product.selection} | {at: join.selection for at, join in joins.items()}
    shown = [(), *(at for at, join in joins.items() if join.shown or compared)]

    def read(at: Path, expressions_there: Iterable[Expression]) -> None:
        for item in (item for expression in expressions_there for item in references(node_of(expression))):
            if isinstance(item, Column):
                found[at[: len(at) - item.up] + item.path].add(item.name)
            elif at + item.path not in shown:
                shown.append(at + item.path)

    read((), () if product.where is None else (product.where,))
    for at, join in joins.items():
        found[at].update(map(column_of, join.child_columns))
        found[at[:-1]].update(map(column_of, join.parent_columns))
        read(at, (*(() if join.where is None else (join.where,)), *(term.by for term in join.order_by)))
    for at in shown:  # `shown` grows: an expression may show another join
        every = isinstance(selections[at], BareValue) or not compared
        read(at, (one for one in expressions(selections[at]) if every or isinstance(one, Computed)))
    return found, {at for at in shown if isinstance(selections[at], WholeRow)}


def used_by_entity(product: Product) -> Iterator[tuple[str, frozenset[str] | None]]:
    """The columns that the product reads at each level, with the level's entity. None: all columns."""
    entities = _entities(product)
    return ((entities[at], columns) for at, columns in used_columns(product).items())


def _entities(product: Product) -> Mapping[Path, str]:
    return {(): product.root} | {at: join.entity for at, join in _paths((), product.joins)}


def _paths(above: Path, joins: Sequence[Join]) -> Iterator[tuple[Path, Join]]:
    for join in joins:
        at = (*above, join.name)
        yield at, join
        yield from _paths(at, join.joins)
