"""Expressions as plain, typed data, and their evaluation. Pure.

An expression is a definition's SQL, after its names are resolved and its types are checked. `compile_expression` makes of each
node, once, a function of a row and of the rows above it. `catalogue.py` has the functions themselves, with the forms that values
have during evaluation (a timestamp without its `Z`). `sql_printer.py` prints a node as PostgreSQL.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce
from typing import Any, Final, Protocol

from processor.language.product.expressions import functions
from processor.language.product.expressions.catalogue import FUNCTIONS, compared_function
from processor.values.entity import Compare, TypeName
from processor.values.record import Value

Type = TypeName | None
"""The type of a value. None: the value is always null. Arrays and the objects of joins have type json: they stay unchanged."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the row itself, of the row of a `one` join (`repo.name`, path `repo`), or of the row `up` levels above
    (`parent.cash`)."""

    name: str
    path: Path = ()
    up: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant, canonical for its type."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a function or operator. `function`: the key of one overload in `expressions/catalogue.py`, as `+(int,int)`."""

    function: str
    args: tuple["ExpressionNode", ...]
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """`count`, `sum`, `min` or `max` of `argument` over the rows of the `many` at `over`; an empty `over` takes the level's own
    rows. `argument` None: the rows are counted. `compare`: how the text of `min` and `max` compares."""

    function: str
    argument: "ExpressionNode | None"
    over: Path
    type: Type
    compare: Compare = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The value or object that the join at `path` makes of its rows."""

    path: Path
    type: Type


ExpressionNode = Column | Literal | Call | Aggregate | Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """An expression other than a bare column: the author's text, its meaning, and how its text compares."""

    text: str
    node: Literal | Call | Aggregate | Shown
    compare: Compare = ()


Expression = Column | Computed


def node_of(expression: Expression) -> ExpressionNode:
    """The meaning of an expression."""
    return expression.node if isinstance(expression, Computed) else expression


def references(node: ExpressionNode) -> Iterator[Column | Shown]:
    """The columns and shown joins that a node reads, as paths from the node's level."""
    match node:
        case Column() | Shown():
            yield node
        case Call(args=args):
            for arg in args:
                yield from references(arg)
        case Aggregate(argument=argument, over=over) if argument is not None:
            for inner in references(argument):
                yield _seen_from_above(inner, over)


def _seen_from_above(inner: Column | Shown, over: Path) -> Column | Shown:
    """A reference of a row of the `many` at `over`, as a path from the level above that join."""
    if isinstance(inner, Column) and inner.up:
        below = max(0, len(over) - inner.up)
        return replace(inner, path=over[:below] + inner.path, up=max(0, inner.up - len(over)))
    return replace(inner, path=over + inner.path)


def aggregates(node: ExpressionNode) -> Iterator[Aggregate]:
    """The aggregates over the level's own rows in a node. An aggregate that occurs twice comes twice."""
    match node:
        case Aggregate(over=()):
            yield node
        case Call(args=args):
            for arg in args:
                yield from aggregates(arg)


@dataclass(slots=True)
class Match:
    """A row in documents. `columns`: the declared columns; `more`: the undeclared ones. `found`: the rows of each join below, by
    its name or by its number in the tree; and what products share of them, by the part that made it."""

    columns: Mapping[str, Value]
    more: Mapping[str, Value]
    found: dict[Any, Any] = field(default_factory=dict)


Scope = tuple[Match, Any]
"""A row, and the scope of the row above it. Above the root there is None."""
Evaluate = Callable[[Scope], Value]
FindRows = Callable[[Scope], list[Match]]
"""The rows of a join that count, in order."""

GROUP: Final = ""
"""A group of rows is evaluated as one `Match` without columns: its `found[GROUP]` has the rows."""


class RowLevel(Protocol):
    """A level of the product's tree, as the compiler sees it: the joins below its rows."""

    def below(self, join: str) -> "RowLevel":
        """The level of a join's rows."""

    def rows(self, join: str) -> FindRows:
        """The function that finds the rows of a join below a row of this level."""

    def shown(self, join: str) -> Evaluate:
        """The function that makes the value of a join at a row of this level."""


def compile_expression(expression: Expression, level: RowLevel) -> Evaluate:
    """The function that gives the value of an expression as the document has it."""
    if isinstance(expression, Column):
        return _compile_column(expression, level)
    evaluate, write = _compile_node(expression.node, level), _DOCUMENT_FORMS.get(expression.node.type)
    if write is None or isinstance(expression.node, Shown):
        return evaluate

    def written(scope: Scope) -> Value:
        value = evaluate(scope)
        return None if value is None else write(value)

    return written


_DOCUMENT_FORMS: Final[dict[Type, Callable[[Value], Value]]] = {
    "float": lambda value: functions.canonical_number(Decimal(repr(value))),
    "decimal": functions.canonical_number,
    "timestamp": lambda value: f"{value}Z",
}


def _compile_node(node: ExpressionNode, level: RowLevel) -> Evaluate:
    match node:
        case Column():
            return _compile_column(node, level)
        case Literal(value=value, type=type_):
            read = FUNCTIONS.get(f"as stored({type_})")
            constant = read.run(value) if read and value is not None else value
            return lambda scope: constant
        case Call():
            return _compile_call(node, level)
        case Aggregate():
            return _compile_aggregate(node, level)
        case Shown(path=path):
            return _compile_shown(path, level)


def _compile_column(column: Column, level: RowLevel) -> Evaluate:
    name = column.name
    evaluate: Evaluate = lambda scope: scope[0].columns.get(name)  # noqa: E731
    if column.path:
        evaluate = _through_joins(column.path, level, evaluate)
    return _at_row_above(column.up, evaluate) if column.up else evaluate


def _at_row_above(up: int, evaluate: Evaluate) -> Evaluate:
    def above(scope: Scope) -> Value:
        for _ in range(up):
            scope = scope[1]
        return evaluate(scope)

    return above


def _through_joins(path: Path, level: RowLevel, evaluate: Evaluate) -> Evaluate:
    """Evaluates at the row that the `one` joins of `path` reach. If one of them found no row, the value is null."""
    steps: list[FindRows] = []
    for name in path:
        steps.append(level.rows(name))
        level = level.below(name)

    def joined(scope: Scope) -> Value:
        for find in steps:
            found = find(scope)
            if not found:
                return None
            scope = (found[0], scope)
        return evaluate(scope)

    return joined


def _compile_call(call: Call, level: RowLevel) -> Evaluate:
    function = FUNCTIONS[call.function]
    run, args = function.run, [_compile_node(arg, level) for arg in call.args]
    if not function.strict:
        return lambda scope: run(*[arg(scope) for arg in args])

    def strict(scope: Scope) -> Value:
        values = [arg(scope) for arg in args]
        return None if None in values else run(*values)

    return strict


def _compile_shown(path: Path, level: RowLevel) -> Evaluate:
    evaluate = _level_at(path[:-1], level).shown(path[-1])
    return _through_joins(path[:-1], level, evaluate) if path[1:] else evaluate


def _level_at(path: Path, level: RowLevel) -> RowLevel:
    for step in path:
        level = level.below(step)
    return level


def _compile_aggregate(node: Aggregate, level: RowLevel) -> Evaluate:
    over = _level_at(node.over, level)
    argument = None if node.argument is None else _compile_node(node.argument, over)
    total = _folded_total(node) if node.compare else _TOTALS[node.function]
    find = _level_at(node.over[:-1], level).rows(node.over[-1]) if node.over else _find_group

    def aggregate(scope: Scope) -> Value:
        rows = find(scope)
        if argument is None:
            return len(rows)
        above = scope if node.over else scope[1]
        values = [argument((row, above)) for row in rows]
        return total([value for value in values if value is not None], node.type)

    if not node.over[1:]:
        return aggregate
    none = 0 if node.function == "count" else None
    reached = _through_joins(node.over[:-1], level, lambda scope: (aggregate(scope),))
    return lambda scope: found[0] if (found := reached(scope)) else none


def _folded_total(node: Aggregate) -> Callable[[Sequence[Value], Type], Value]:
    """The `min` or `max` of texts by their folded text; of those that are equal, by their code points."""
    pick = FUNCTIONS[compared_function({"min": "least", "max": "greatest"}[node.function], node.compare)].run
    return lambda values, _: pick(*values)


def _find_group(scope: Scope) -> list[Match]:
    rows: list[Match] = scope[0].found[GROUP]
    return rows


def _sum(values: Sequence[Value], type_: Type) -> Value:
    if not values:
        return None
    if type_ == "float":  # Python's `sum` compensates rounding; PostgreSQL does not
        return functions.in_range(reduce(operator.add, values))
    return reduce(functions.add, values, Decimal(0))


_TOTALS: Final[dict[str, Callable[[Sequence[Value], Type], Value]]] = {
    "count": lambda values, _: len(values),
    "sum": _sum,
    "min": lambda values, _: min(values, default=None),
    "max": lambda values, _: max(values, default=None),
}
