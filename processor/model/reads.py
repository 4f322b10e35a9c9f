"""Which columns a product reads of the rows at each place: a change of others does not touch it (rule 8 of the design)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from processor.model.elements import column_of
from processor.model.expression import Column, Expression, Path, node_of, read_by
from processor.model.product import Join, Product, Whole, expressions


def reads(product: Product) -> Mapping[Path, frozenset[str] | None]:
    """Place -> the columns read there, by the joins and by expressions there, above and below; None: all of them. The root's
    place is (), that of a join the names on the way to it."""
    joins = dict(_places((), product.joins))
    found: dict[Path, set[str]] = {at: set() for at in ((), *joins)}
    selections = {(): product.selection} | {at: join.selection for at, join in joins.items()}
    shown = [(), *(at for at, join in joins.items() if join.shown)]

    def read(at: Path, what: Iterable[Expression]) -> None:
        for item in (item for expression in what for item in read_by(node_of(expression))):
            if isinstance(item, Column):
                found[at[: len(at) - item.up] + item.path].add(item.name)
            elif at + item.path not in shown:
                shown.append(at + item.path)

    read((), () if product.where is None else (product.where,))
    for at, join in joins.items():
        found[at].update(map(column_of, join.child_columns))
        found[at[:-1]].update(map(column_of, join.parent_columns))
        read(at, (*(() if join.where is None else (join.where,)), *(term.by for term in join.order_by)))
    for at in shown:  # grows: what is shown may show more
        read(at, expressions(selections[at]))
    whole = {at for at in shown if isinstance(selections[at], Whole)}
    return {at: None if at in whole else frozenset(columns) for at, columns in found.items()}


def _places(above: Path, joins: Sequence[Join]) -> Iterator[tuple[Path, Join]]:
    for join in joins:
        at = (*above, join.name)
        yield at, join
        yield from _places(at, join.joins)
