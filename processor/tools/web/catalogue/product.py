"""What a page says of a product: the members of its documents with their types, the sources of their values and the descriptions
of columns; and its versions, as a registry has them. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from processor.language.definitions.describe import write_expression
from processor.language.product.document_type import DocumentType, ListType, ObjectType, ValueType, document_type
from processor.language.product.expressions.expression import (
    Aggregate,
    Call,
    Column,
    Expression,
    ExpressionNode,
    Path,
    Shown,
    node_of,
)
from processor.language.product.product import BareValue, Definitions, Fields, Join, Note, Product, WholeRow
from processor.tools.inspect.changes import PlannedEntry
from registry.model import HistoryEntry, Snapshot

BARE = "(value)"
"""The name of the value of a level without members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member. `level`: the path of joins to the level that shows it, () for the root; `depth`: of the member in the document;
    `source`: its expression, or its join; `reads`: the levels whose rows give its value."""

    name: str
    level: Path
    depth: int
    type: str
    source: str
    description: str
    reads: tuple[Path, ...]


def document_members(product: Product, definitions: Definitions) -> tuple[Member, ...]:
    """The members from the top down, each object or list before its own members."""
    shown = document_type(product, definitions.entities)
    return tuple(_Reader(product, definitions, levels_of(product)).level((), shown, 0))


def levels_of(product: Product) -> dict[Path, Join]:
    """The joins of a product by their paths, parents first."""

    def below(at: Path, joins: tuple[Join, ...]) -> Iterator[tuple[Path, Join]]:
        for join in joins:
            yield (*at, join.name), join
            yield from below((*at, join.name), join.joins)

    return dict(below((), product.joins))


def join_text(join: Join, above: str) -> str:
    """The join as its author means it: its kind, columns, and the rows that count."""
    on = ", ".join(join.equalities(above))
    order = ", ".join(("-" if term.descending else "") + write_expression(term.by) for term in join.order_by)
    parts = [
        f"{'many' if join.many else 'one'} {join.entity} by {on}",
        f"where {write_expression(join.where)}" if join.where else "",
        f"in the order of {order}" if order else "",
        "required" if join.required else "",
    ]
    return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class _Reader:
    product: Product
    definitions: Definitions
    joins: Mapping[Path, Join]

    def level(self, at: Path, shown: DocumentType, depth: int) -> Iterator[Member]:
        """The members of the level at a path. `shown`: the type of what it makes of a row."""
        level = self.joins[at] if at else self.product
        types: Mapping[str, DocumentType] = dict(shown.members) if isinstance(shown, ObjectType) else {BARE: shown}
        match level.selection:
            case WholeRow():
                named: tuple[tuple[str, Expression], ...] = tuple((n, Column(name=n)) for n in self._columns(at))
            case Fields(members=named):
                pass
            case BareValue(expression=expression):
                named = ((BARE, expression),)
        for name, expression in named:
            yield from self._member(name, expression, at, types[name], depth)
        for join in (join for join in level.joins if join.shown):
            text = join_text(join, self._entity(at))
            yield from self._embedded(join.name, text, at, (*at, join.name), types[join.name], depth)
            if join.total:
                name = f"{join.name}_total"
                text = f"the rows of {join.name} before its limit"
                yield _member(name, text, at, types[name], depth, ((*at, join.name),))

    def _member(self, name: str, expression: Expression, at: Path, shown: DocumentType, depth: int) -> Iterator[Member]:
        node, text = node_of(expression), write_expression(expression)
        if isinstance(node, Shown):
            yield from self._embedded(name, text, at, at + node.path, shown, depth)
            return
        member = _member(name, text, at, shown, depth, tuple(dict.fromkeys(_reads(node, at))) or (at,))
        if isinstance(node, Column):
            (place,) = member.reads
            note = self.definitions.entity_notes.get(self._entity(place), Note())
            member = replace(member, description=note.columns.get(node.name, ""))
        yield member

    def _embedded(
        self, name: str, text: str, at: Path, joined: Path, shown: DocumentType, depth: int
    ) -> Iterator[Member]:
        """The member that shows a join, and the members of its rows."""
        inner = shown.items if isinstance(shown, ListType) else shown
        below = tuple(self.level(joined, inner, depth + 1))
        bare = len(below) == 1 and below[0].name == BARE
        text = f"{below[0].source} of {text}" if bare else text
        yield _member(name, text, at, shown, depth, below[0].reads if bare else (joined,))
        if not bare:
            yield from below

    def _entity(self, at: Path) -> str:
        return self.joins[at].entity if at else self.product.root

    def _columns(self, at: Path) -> tuple[str, ...]:
        return tuple(self.definitions.entities[self._entity(at)].columns)


def _member(name: str, text: str, at: Path, shown: DocumentType, depth: int, reads: tuple[Path, ...]) -> Member:
    return Member(name=name, level=at, depth=depth, type=_type_text(shown), source=text, description="", reads=reads)


def _reads(node: ExpressionNode, at: Path) -> Iterator[Path]:
    """The levels whose rows an expression reads. An aggregate reads those of its join, also where it only counts them."""
    match node:
        case Column(path=path, up=up):
            yield at[: len(at) - up] + path
        case Shown(path=path):
            yield at + path
        case Call(args=args):
            for arg in args:
                yield from _reads(arg, at)
        case Aggregate(argument=argument, over=over):
            yield at + over
            yield from () if argument is None else _reads(argument, at + over)


def _type_text(shown: DocumentType, *, several: bool = False) -> str:
    """The type in words. `several`: of the elements of a list."""
    match shown:
        case ValueType(column=column):
            text = "null" if column is None else str(column)
        case ObjectType():
            text = "objects" if several else "object"
        case ListType(items=items, most=most):
            text = f"list of {_type_text(items, several=True)}" + (f", at most {most:,}" if most else "")
    return f"{text} or null" if shown.nullable and text != "null" else text


_TABLES = ("products", "waiting_products")


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a product, with its edit."""

    number: int
    at: datetime
    who: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductVersions:
    """The versions of a product, the newest first. `states`: sentences about the live version, one that waits, and what these
    definitions would change."""

    states: tuple[str, ...]
    versions: tuple[Version, ...]


def product_versions(
    stored: Snapshot, planned: Iterable[PlannedEntry], history: Iterable[HistoryEntry], names: Iterable[str]
) -> Mapping[str, ProductVersions]:
    """The versions of these products. `planned`: what an apply of the definitions changes; `history`: of the registry, the newest
    entry first."""
    entries = {entry.name: entry for entry in planned if entry.kind == "product"}
    made: dict[str, dict[int, Version]] = {}
    for entry in history:
        row = entry.new or {}
        if entry.entry in _TABLES and "version" in row:
            version = Version(number=row["version"], at=entry.at, who=entry.who, why=entry.why or "")
            made.setdefault(row["name"], {})[version.number] = (
                version  # the last one is the oldest: it made the version
            )
    return {
        name: ProductVersions(
            states=tuple(_states(name, stored, entries.get(name))),
            versions=tuple(made.get(name, {})[number] for number in sorted(made.get(name, ()), reverse=True)),
        )
        for name in names
    }


def _states(name: str, stored: Snapshot, planned: PlannedEntry | None) -> Iterator[str]:
    live = [one for one in stored.products if one.name == name]
    for product in live:
        state = "is being removed" if product.retracted else "is paused" if product.paused else "is live"
        yield f"Version {product.version} {state}."
    for product in (one for one in stored.waiting if one.name == name):
        yield f"Version {product.version} waits until its slots are full."
    if planned and planned.action != "withdraw":
        details = f": {'; '.join(planned.details)}" if planned.details else ""
        does = "keeps" if any(product.version == planned.version for product in live) else "makes"
        yield f"These definitions are not applied yet. `apply` {does} version {planned.version}{details}."
