"""Expressions evaluated: each node compiled once to a function of a row and what stands above it.

Inside, a float is a float and a timestamp lacks its `Z` (processor/model/functions.py); `read` and `written` are the border.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import reduce
from typing import Any, Final, Protocol

from processor.model import arithmetic
from processor.model.change import Value
from processor.model.expression import Aggregate, Call, Column, Expression, Literal, Node, Path, Shown, Type
from processor.model.functions import FUNCTIONS


@dataclass(slots=True)
class Match:
    """A row's columns, `more` the undeclared ones, and, by the name of each join below it, the rows that the join found."""

    columns: Mapping[str, Value]
    more: Mapping[str, Value]
    found: "dict[str, list[Match]]" = field(default_factory=dict)


Scope = tuple[Match, Any]
"""A row, and the scope of the row above it; None above the root."""
Evaluate = Callable[[Scope], Value]

GROUP: Final = ""
"""Where the stand-in for a group of rows, at which aggregates are evaluated, has those rows."""


class Level(Protocol):
    """What compiling asks of a level: the joins below it."""

    def below(self, join: str) -> "Level":
        """The level of a join's rows."""

    def shown(self, join: str) -> Evaluate:
        """What a join is, at a row of this level."""


def compiled(expression: Expression, level: Level) -> Evaluate:
    """The value of an expression in a document."""
    if isinstance(expression, Column):
        return _column(expression)
    evaluate, write = _node(expression.of, level), WRITTEN.get(expression.of.type)
    if write is None or isinstance(expression.of, Shown):
        return evaluate

    def written(scope: Scope) -> Value:
        value = evaluate(scope)
        return None if value is None else write(value)

    return written


WRITTEN: Final[dict[Type, Callable[[Value], Value]]] = {
    "float": lambda value: arithmetic.canonical(Decimal(repr(value))),
    "decimal": arithmetic.canonical,
    "timestamp": lambda value: f"{value}Z",
}


def _node(node: Node, level: Level) -> Evaluate:
    match node:
        case Column():
            return _column(node)
        case Literal(value=value, type=type_):
            read = FUNCTIONS.get(f"as stored({type_})")
            constant = read.run(value) if read and value is not None else value
            return lambda scope: constant
        case Call():
            return _call(node, level)
        case Aggregate():
            return _aggregate(node, level)
        case Shown(path=path):
            return _shown(path, level)


def _column(column: Column) -> Evaluate:
    name = column.name
    evaluate: Evaluate = lambda scope: scope[0].columns.get(name)  # noqa: E731
    if column.path:
        evaluate = _joined(column.path, evaluate)
    return _above(column.up, evaluate) if column.up else evaluate


def _above(up: int, evaluate: Evaluate) -> Evaluate:
    def above(scope: Scope) -> Value:
        for _ in range(up):
            scope = scope[1]
        return evaluate(scope)

    return above


def _joined(path: Path, evaluate: Evaluate) -> Evaluate:
    """Evaluates at the row that `one` joins reach; null where one of them found none."""

    def joined(scope: Scope) -> Value:
        for step in path:
            found = scope[0].found[step]
            if not found:
                return None
            scope = (found[0], scope)
        return evaluate(scope)

    return joined


def _call(call: Call, level: Level) -> Evaluate:
    function = FUNCTIONS[call.function]
    run, args = function.run, [_node(arg, level) for arg in call.args]
    if not function.strict:
        return lambda scope: run(*[arg(scope) for arg in args])

    def strict(scope: Scope) -> Value:
        values = [arg(scope) for arg in args]
        return None if None in values else run(*values)

    return strict


def _shown(path: Path, level: Level) -> Evaluate:
    for step in path[:-1]:
        level = level.below(step)
    evaluate = level.shown(path[-1])
    return _joined(path[:-1], evaluate) if path[1:] else evaluate


def _aggregate(node: Aggregate, level: Level) -> Evaluate:
    for step in node.over:
        level = level.below(step)
    of, total = None if node.of is None else _node(node.of, level), _TOTALS[node.function]
    name = node.over[-1] if node.over else GROUP

    def aggregate(scope: Scope) -> Value:
        rows = scope[0].found[name]
        if of is None:
            return len(rows)
        above = scope if name else scope[1]
        values = [of((row, above)) for row in rows]
        return total([value for value in values if value is not None], node.type)

    if not node.over[1:]:
        return aggregate
    none = 0 if node.function == "count" else None
    reached = _joined(node.over[:-1], lambda scope: (aggregate(scope),))
    return lambda scope: found[0] if (found := reached(scope)) else none


def _sum(values: Sequence[Value], type_: Type) -> Value:
    if not values:
        return None
    if type_ == "float":  # not `sum`: it compensates rounding, which PostgreSQL does not
        return arithmetic.in_range(reduce(operator.add, values))
    return reduce(arithmetic.add, values, Decimal(0))


_TOTALS: Final[dict[str, Callable[[Sequence[Value], Type], Value]]] = {
    "count": lambda values, _: len(values),
    "sum": _sum,
    "min": lambda values, _: min(values, default=None),
    "max": lambda values, _: max(values, default=None),
}
