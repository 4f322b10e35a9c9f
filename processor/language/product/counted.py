"""Joins whose rows are counted as they change (`counted: true`), so that their aggregates need no row.

A **measure** is what the totals of a key have for an aggregate, as numbers with a name: the rows that count, the sum of their
values. The write of a row adds what the row contributes now, less what it has contributed before (`statestore.writes`).

Promises: an aggregate of totals equals that of the rows, to the digit: a sum keeps the scale of its values. Each row contributes
by its own columns alone. Totals also count the rows with a value that is too wide for an exact sum, or that cannot be computed:
then the rows are read. Does not: `min` and `max`, for which `ordered: true` reads one row.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Context, Decimal
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

from processor.language.product.expressions import functions
from processor.language.product.expressions.expression import (
    Aggregate,
    Column,
    Evaluate,
    Expression,
    ExpressionNode,
    Match,
    Path,
    compile_node,
    node_of,
    parts_of,
    reads_clock,
    references,
)
from processor.language.product.product import Join, Product, expressions
from processor.values.record import Value
from statestore.items import Numbers
from statestore.writes import ROWS

_FUNCTIONS: Final = ("count", "sum", "bool_and", "bool_or")
_OWN: Final = ("PK", "SK", "_f")
_EXACT: Final = Context(prec=100)
_MOST: Final = Decimal(10) ** 18
_MOST_DIGITS: Final = 12
"""Values below 10^18 with 12 digits behind the point have an exact sum in the 38 digits of a number, for 10^8 rows."""


class Measure(NamedTuple):
    """What an aggregate needs of each row. `name`: of its numbers; `where`: the conditions on rows that count."""

    name: str
    function: str
    argument: ExpressionNode | None
    where: tuple[ExpressionNode, ...]


def measure_of(node: Aggregate, join: Join) -> Measure:
    """The measure of an aggregate over the rows of a join."""
    where = tuple(one for one in (None if join.where is None else node_of(join.where), node.where) if one is not None)
    name = sha256(repr((node.argument, where)).encode()).hexdigest()[:8]
    function = "truth" if node.function.startswith("bool") else node.function
    return Measure(name, function, node.argument, where)


def measures_of(product: Product) -> dict[Path, tuple[Measure, ...]]:
    """The measures of the counted joins of a product, by their paths from the root."""
    found: dict[Path, dict[Measure, None]] = {}
    for at, join, node in _counted_aggregates(product):
        found.setdefault(at, {})[measure_of(node, join)] = None
    return {at: tuple(measures) for at, measures in found.items()}


def contribution(measures: tuple[Measure, ...], columns: Mapping[str, Value]) -> dict[str, Any]:
    """The numbers that a row with these columns adds to the totals of its key; none where it counts for no measure."""
    found: dict[str, Any] = {}
    for measure in measures:
        found |= _numbers(measure, columns)
    return {ROWS: 1, **found} if found else found


class Totals(list[Any]):
    """In the place of the rows that a join found, which it leaves out: their totals."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__()
        self.numbers = numbers


def sum_up(items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The numbers of all shards of the totals of a key."""
    found: dict[str, Any] = {}
    for item in items:
        for name, number in item.items():
            if name not in _OWN:
                found[name] = _EXACT.add(found.get(name, 0), number)
    return found


def aggregate_of_totals(node: Aggregate, join: Join) -> Callable[[Numbers], Value]:
    """The function that gives the value of an aggregate of the rows that made these totals."""
    return partial(_value_of, node, measure_of(node, join).name)


def _value_of(node: Aggregate, name: str, totals: Numbers) -> Value:
    rows = int(totals.get(f"{name}.n", 0))
    if node.function == "count":
        return rows
    if not rows:
        return None
    if node.function == "sum":
        scale = max((n for n in range(1, _MOST_DIGITS + 1) if totals.get(f"{name}.d{n}")), default=0)
        return functions.add(Decimal(totals.get(f"{name}.s", 0)), Decimal((0, (0,), -scale)))
    true = int(totals.get(f"{name}.t", 0))
    return true == rows if node.function == "bool_and" else true > 0


def is_exact(totals: Numbers) -> bool:
    """Whether no row that made these totals is unfit."""
    return not any(number for name, number in totals.items() if name.endswith(".x"))


def _numbers(measure: Measure, columns: Mapping[str, Value]) -> dict[str, Any]:
    name, scope = measure.name, (Match(columns, {}), None)
    try:
        if not all(evaluate(scope) is True for evaluate in map(_evaluate, measure.where)):
            return {}
        value: Any = 1 if measure.argument is None else _evaluate(measure.argument)(scope)
        if value is None:
            return {}
        counted = {f"{name}.n": 1}
        if measure.function == "truth":
            return counted | ({f"{name}.t": 1} if value is True else {})
        return counted | _summed(name, Decimal(value)) if measure.function == "sum" else counted
    except Exception:  # the document shows the error, where it stops one product alone
        return {f"{name}.x": 1}


def _summed(name: str, value: Decimal) -> dict[str, Any]:
    scale = max(0, -int(value.as_tuple().exponent))
    if abs(value) >= _MOST or scale > _MOST_DIGITS:
        return {f"{name}.x": 1}
    return {f"{name}.s": value} | ({f"{name}.d{scale}": 1} if scale else {})


@lru_cache(maxsize=1024)
def _evaluate(node: ExpressionNode) -> Evaluate:
    level: Any = None
    return compile_node(node, level)


def obstacles(product: Product) -> Iterator[tuple[str, str]]:
    """Why totals cannot answer the counted joins of a product, each with its cure."""
    counted = {at: join for at, join in _paths((), product.joins) if join.counted}
    reads: dict[Path, list[Aggregate]] = {at: [] for at in counted}
    for at, _, node in _counted_aggregates(product):
        reads[at].append(node)
    for at, join in counted.items():
        found = _obstacle(join) or next(filter(None, map(_obstacle_of, reads[at])), None)
        if found is None and product.by:
            found = "its document is of groups, which need a row of their own", "remove `counted`"
        if found is None and any(len(over) > 1 and over == at[-len(over) :] for over in _long_paths(product)):
            found = "an aggregate reads its rows through another join", "aggregate one level after the other"
        if found is None and not reads[at]:
            found = "no aggregate reads its rows", "remove `counted`"
        if found is not None:
            yield f"`{join.name}` is `counted`, but {found[0]}", found[1]


def _obstacle(join: Join) -> tuple[str, str] | None:
    if not join.many or (join.shown and not join.aggregated):
        return "it shows rows", "show its aggregates alone, or join the rows a second time with `counted`"
    if join.joins:
        return "joins below it read other rows", "count columns of its own rows alone"
    if join.strong or join.listed or any("[" in column for column in join.child_columns):
        kind = "`strong`" if join.strong else "a list join"
        return f"it is {kind}, which has no key of a slot", "remove `counted`"
    if join.required or join.ordered or join.total or join.distinct or join.limit is not None or join.key is not None:
        return "another word reads its rows", "leave `required`, `ordered`, `total`, `distinct`, `limit` and `key` out"
    if join.level or join.part or join.parts or join.lift or join.as_list:
        return "its rows are those of several joins", "remove `counted`"
    return None if join.where is None else _obstacle_in(node_of(join.where))


def _obstacle_of(node: Aggregate) -> tuple[str, str] | None:
    if node.function in ("min", "max"):
        return f"no total gives its `{node.function}`", "use a `one` with `order_by` and `ordered: true`"
    if node.function not in _FUNCTIONS or node.distinct or node.order:
        kind = "distinct" if node.distinct else "order" if node.order else node.function
        return f"no total gives `{kind}`", "use count, sum, avg, bool_and and bool_or"
    if node.function == "sum" and node.type == "float":
        return "a sum of floats depends on their order", "declare the column as decimal"
    return next(filter(None, map(_obstacle_in, node.read)), None)


def _obstacle_in(node: ExpressionNode) -> tuple[str, str] | None:
    if reads_clock(node):
        return "it reads the clock, and rows then change without a write", "remove `counted`"
    if not all(isinstance(one, Column) and not one.path and not one.up for one in references(node)):
        return "it reads columns of other rows", "read columns of its own rows"
    return None


def _counted_aggregates(product: Product) -> Iterator[tuple[Path, Join, Aggregate]]:
    """The aggregates that read a counted join, with the path and the join."""
    joins = dict(_paths((), product.joins))
    for at, node in _aggregates(product):
        over = (*at, *node.over)
        if len(node.over) < 2 and over in joins and joins[over].counted:
            yield over, joins[over], node


def _long_paths(product: Product) -> set[Path]:
    return {node.over for _, node in _aggregates(product) if len(node.over) > 1}


def _aggregates(product: Product) -> Iterator[tuple[Path, Aggregate]]:
    """All aggregates, with the path of the level that names them."""
    written: list[tuple[Path, tuple[Expression | None, ...]]] = [
        ((), (*expressions(product.selection), product.where)),
        *(
            (at, (*expressions(join.selection), join.where, join.key, *(term.by for term in join.order_by)))
            for at, join in _paths((), product.joins)
        ),
    ]
    for at, some in written:
        for one in some:
            yield from ((at, node) for node in _within(node_of(one))) if one is not None else ()


def _within(node: ExpressionNode) -> Iterator[Aggregate]:
    if isinstance(node, Aggregate):
        yield node
    for part in parts_of(node):
        yield from _within(part)


def _paths(above: Path, joins: tuple[Join, ...]) -> Iterator[tuple[Path, Join]]:
    for join in joins:
        yield (*above, join.name), join
        yield from _paths((*above, join.name), join.joins)
