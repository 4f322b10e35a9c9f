"""A product as its definition describes it: a tree of joins below a root, and the selection of each level. No access paths."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from processor.product.expressions.expression import Column as Column
from processor.product.expressions.expression import Expression, aggregates, node_of
from processor.product.gate import OPEN, Gate
from processor.product.join_fields import array_of
from processor.records.entity import Compare, Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderTerm:
    """One term of `order_by`. Nulls come last in both directions."""

    by: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRow:
    """A level without `fields` and `value`: the declared columns in their order, then the undeclared ones by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """`fields`: an object with these members, in this order."""

    members: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BareValue:
    """`value`: a bare value instead of an object."""

    expression: Expression


Selection = WholeRow | Fields | BareValue


def expressions(selection: Selection) -> tuple[Expression, ...]:
    """The expressions of a selection. `WholeRow` has none: it takes every column."""
    match selection:
        case Fields(members=members):
            return tuple(expression for _, expression in members)
        case BareValue(expression=expression):
            return (expression,)
        case WholeRow():
            return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A join below a level.

    on: pairs of child and parent column, in the order of the definition; a side may be the elements of an array column (`ids[]`,
    `inner[].id`). compare: how the text of each pair compares; empty where all pairs compare as they are. shown: True for an
    `embed`, whose result is the member `name`; False for a `join`, which serves only expressions.
    where: the condition on rows that count. required: the row above counts only if this join has a row.
    total: `<name>_total` shows the number of rows before `limit`. strong: the join is read without an index.
    """

    name: str
    entity: str
    many: bool
    shown: bool
    on: tuple[tuple[str, str], ...]
    order_by: tuple[OrderTerm, ...] = ()
    limit: int | None = None
    total: bool = False
    where: Expression | None = None
    required: bool = False
    selection: Selection = WholeRow()
    joins: tuple["Join", ...] = ()
    strong: bool = False
    compare: tuple[Compare, ...] = ()

    @property
    def listed(self) -> bool:
        """Whether this is a list join: it looks up each element of the parent's array. `required` then leaves out elements."""
        return array_of(self.parent_columns) is not None

    @property
    def child_columns(self) -> tuple[str, ...]:
        return tuple(child for child, _ in self.on)

    @property
    def parent_columns(self) -> tuple[str, ...]:
        return tuple(parent for _, parent in self.on)

    def equalities(self, above: str) -> list[str]:
        """The pairs as people read them, with how their text compares: `code = customer.country (ci, trimmed)`."""
        compares = self.compare or ((),) * len(self.on)
        return [
            f"{child} = {above}.{parent}" + (f" ({', '.join(compare)})" if compare else "")
            for (child, parent), compare in zip(self.on, compares, strict=True)
        ]

    @property
    def aggregated(self) -> bool:
        """Whether aggregates make one value or object of all rows."""
        return any(True for e in expressions(self.selection) for _ in aggregates(node_of(e)))


DocumentFormat = Literal["json", "avro"]
Compares = Mapping[str, Mapping[str, Compare]]
"""Entity -> column -> how its text compares. A column that is not in it compares as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """The definition of a document. `where`: the condition on root rows that have a document. `format`: of the documents in the
    topic. `gate`: when they go out. `compare`: how the columns that it reads compare; joins and expressions have it already, and
    do not ask the entities."""

    name: str
    topic: str
    root: str
    selection: Selection
    joins: tuple[Join, ...]
    where: Expression | None = None
    format: DocumentFormat = "json"
    gate: Gate = OPEN
    compare: Compares = field(default_factory=dict)

    @property
    def gated(self) -> bool:
        """Whether a changed root may have to wait."""
        return self.gate != OPEN

    def walk(self) -> Iterator[tuple[str, Join]]:
        """Each join with the entity above it: parents first, in the order of the definition."""

        def below(entity: str, joins: tuple[Join, ...]) -> Iterator[tuple[str, Join]]:
            for join in joins:
                yield entity, join
                yield from below(join.entity, join.joins)

        yield from below(self.root, self.joins)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The words of an author for readers, about an entity with its columns, or about a product. Empty where there are none."""

    description: str = ""
    owner: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """The entities and products of a definitions directory. Entities keep their order in entities.yaml, products follow the order
    of their file names. The notes stand apart: no registry, plan or job has them, so their edit changes no version."""

    entities: dict[str, Entity]
    products: dict[str, Product]
    entity_notes: Mapping[str, Note] = field(default_factory=dict, compare=False)
    product_notes: Mapping[str, Note] = field(default_factory=dict, compare=False)
