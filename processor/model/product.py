"""A product as its definition describes it: a tree of joins below a root, and what each level selects. No access paths here."""

from collections.abc import Iterator
from dataclasses import dataclass

from processor.model.elements import array_of
from processor.model.entity import Entity
from processor.model.expression import Column as Column
from processor.model.expression import Expression, aggregates, node_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One term of `order_by`; nulls come last either way."""

    by: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Neither `fields` nor `value`: the declared columns in their order, then the stored undeclared ones by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """An object with these members, in this order."""

    members: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bare:
    """`value`: a bare value instead of an object."""

    of: Expression


Selection = Whole | Fields | Bare


def expressions(selection: Selection) -> tuple[Expression, ...]:
    """What a selection evaluates; of `Whole` nothing, for it takes every column."""
    match selection:
        case Fields(members=members):
            return tuple(of for _, of in members)
        case Bare(of=of):
            return (of,)
        case Whole():
            return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A join below a level. `on`: (child column, parent column) pairs in the order written. `shown`: an `embed` (its result is a
    member under `name`), not a `join` (only available to its level). `where`: which rows count; `required`: the row above
    counts only with a row here; `total`: `<name>_total` shows how many rows there were before `limit`. A side of `on` may be
    the elements of an array column (`ids[]`, `inner[].id`). `strong`: read without an index."""

    name: str
    entity: str
    many: bool
    shown: bool
    on: tuple[tuple[str, str], ...]
    order_by: tuple[Order, ...] = ()
    limit: int | None = None
    total: bool = False
    where: Expression | None = None
    required: bool = False
    selection: Selection = Whole()
    joins: tuple["Join", ...] = ()
    strong: bool = False

    @property
    def listed(self) -> bool:
        """Whether it is a list join: each element of the parent's array is looked up, and `required` leaves out elements."""
        return array_of(self.parent_columns) is not None

    @property
    def child_columns(self) -> tuple[str, ...]:
        return tuple(child for child, _ in self.on)

    @property
    def parent_columns(self) -> tuple[str, ...]:
        return tuple(parent for _, parent in self.on)

    @property
    def aggregated(self) -> bool:
        """Whether the rows become one value or object, by aggregates over them."""
        return any(True for e in expressions(self.selection) for _ in aggregates(node_of(e)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A document definition. `where`: which rows of the root have a document."""

    name: str
    topic: str
    root: str
    selection: Selection
    joins: tuple[Join, ...]
    where: Expression | None = None

    def walk(self) -> Iterator[tuple[str, Join]]:
        """Each join with the entity above it, parents first, in the order written."""

        def below(entity: str, joins: tuple[Join, ...]) -> Iterator[tuple[str, Join]]:
            for join in joins:
                yield entity, join
                yield from below(join.entity, join.joins)

        yield from below(self.root, self.joins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """Everything a definitions directory says; order as written (entities.yaml; products by file name)."""

    entities: dict[str, Entity]
    products: dict[str, Product]
