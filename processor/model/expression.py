"""Expressions as plain, typed data: what a definition's SQL says once its names are resolved and its types are checked.

A node is evaluated at a row (`processor.model.evaluate`), and printed as PostgreSQL (`processor.model.sql_expression`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from processor.model.change import Value
from processor.model.entity import TypeName

Type = TypeName | None
"""The type of a value; None: nothing but null. Arrays, and the objects of joins, count as json: passed through as they are."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the row itself, of a `one` join reachable by its name (`repo.name`), or of the row `up` levels above
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
    """A function or operator of `processor.model.functions`, one overload of it: `+(int,int)`."""

    function: str
    args: tuple["Node", ...]
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """`count`, `sum`, `min` or `max` of what `of` says at each row of the `many` at `over`; of the level's own rows where that is
    empty. `of` None: the rows are counted."""

    function: str
    of: "Node | None"
    over: Path
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the join at `path` makes of its rows: one value or object."""

    path: Path
    type: Type


Node = Column | Literal | Call | Aggregate | Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """An expression that is more than a column: as its author wrote it, and what it means."""

    text: str
    of: Literal | Call | Aggregate | Shown


Expression = Column | Computed


def node_of(expression: Expression) -> Node:
    """What an expression means."""
    return expression.of if isinstance(expression, Computed) else expression


def read_by(node: Node) -> Iterator[Column | Shown]:
    """The columns and shown joins that a node reads, as seen from the level where it stands."""
    match node:
        case Column() | Shown():
            yield node
        case Call(args=args):
            for arg in args:
                yield from read_by(arg)
        case Aggregate(of=of, over=over) if of is not None:
            for inner in read_by(of):
                yield _outside(inner, over)


def _outside(inner: Column | Shown, over: Path) -> Column | Shown:
    """What a row of the `many` at `over` reads, as seen from above it."""
    if isinstance(inner, Column) and inner.up:
        below = max(0, len(over) - inner.up)
        return replace(inner, path=over[:below] + inner.path, up=max(0, inner.up - len(over)))
    return replace(inner, path=over + inner.path)


def aggregates(node: Node) -> Iterator[Aggregate]:
    """The aggregates over the level's own rows in a node, each as often as it stands there."""
    match node:
        case Aggregate(over=()):
            yield node
        case Call(args=args):
            for arg in args:
                yield from aggregates(arg)
