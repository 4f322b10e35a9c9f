"""Expressions as plain, typed data: a definition's SQL, after its names are resolved and its types are checked.

`expressions/evaluate.py` evaluates a node at a row, and `sql_printer/sql_expression.py` prints it as PostgreSQL.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from processor.records.entity import Compare, TypeName
from processor.records.record import Value

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
