"""What a page says of a product: the members of its documents with their types, the sources of their values and the descriptions
of columns; and its versions, as a registry has them. Pure.

The lineage of a product as a picture: entities at the left, joins in the middle, the members of the document at the right.

Pure: it computes boxes and lines in pixels, and a template draws them as SVG. Each sign has the same width, so that the layout
needs no fonts. Each join has a row of its own, next to the members that it shows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from processor.language.definitions.describe import write_expression
from processor.language.product.document_type import (
    DocumentType,
    ListType,
    MapType,
    ObjectType,
    ValueType,
    document_type,
)
from processor.language.product.expressions.expression import (
    Aggregate,
    Built,
    Call,
    Column,
    Expression,
    ExpressionNode,
    Path,
    Shown,
    node_of,
)
from processor.language.product.product import (
    BareValue,
    Definitions,
    Fields,
    Join,
    Note,
    Product,
    WholeRow,
    embeds,
    root_entity,
)
from processor.text import shortened
from processor.tools.inspect.board import PlannedEntry
from registry.fields import shown_field
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
        for path, join in embeds(level.joins):
            joined = (*at, *path)
            text = join_text(join, self._entity(joined[:-1]))
            yield from self._embedded(join.name, text, at, joined, types[join.name], depth)
            if join.total:
                name = f"{join.name}_total"
                text = f"the rows of {join.name} before its limit"
                yield _member(name, text, at, types[name], depth, (joined,))

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
        inner = shown.items if isinstance(shown, ListType | MapType) else shown
        below = tuple(self.level(joined, inner, depth + 1))
        bare = len(below) == 1 and below[0].name == BARE
        text = f"{below[0].source} of {text}" if bare else text
        yield _member(name, text, at, shown, depth, below[0].reads if bare else (joined,))
        if not bare:
            yield from below

    def _entity(self, at: Path) -> str:
        return self.joins[at].entity if at else self.product.root

    def _columns(self, at: Path) -> tuple[str, ...]:
        entities = self.definitions.entities
        return tuple(entities[self._entity(at)].columns if at else root_entity(self.product, entities).columns)


def _member(name: str, text: str, at: Path, shown: DocumentType, depth: int, reads: tuple[Path, ...]) -> Member:
    return Member(name=name, level=at, depth=depth, type=_type_text(shown), source=text, description="", reads=reads)


def _reads(node: ExpressionNode, at: Path) -> Iterator[Path]:
    """The levels whose rows an expression reads. An aggregate reads those of its join, also where it only counts them."""
    match node:
        case Column(path=path, up=up):
            yield at[: len(at) - up] + path
        case Shown(path=path):
            yield at + path
        case Call(args=args) | Built(parts=args):
            for arg in args:
                yield from _reads(arg, at)
        case Aggregate(over=over):
            yield at + over
            for part in node.read:
                yield from _reads(part, at + over)


def _type_text(shown: DocumentType, *, several: bool = False) -> str:
    """The type in words. `several`: of the elements of a list."""
    match shown:
        case ValueType(column=column):
            text = "null" if column is None else str(column)
        case ObjectType():
            text = "objects" if several else "object"
        case ListType(items=items, most=most):
            text = f"list of {_type_text(items, several=True)}" + (f", at most {most:,}" if most else "")
        case MapType(items=items, most=most):
            text = f"map of {_type_text(items, several=True)}" + (f", at most {most:,}" if most else "")
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


LINE, PAD, GAP, SIGN = 20, 8, 22, 7.3
"""Pixels: of a line of text, around it, between boxes, and of a sign."""
INDENT = 16
"""How much further to the right a join below a join is."""
MOST_MEMBERS = 40
"""Members that a box shows; of further ones it shows only the number."""
HUES = 6


class _Column(NamedTuple):
    """A column of boxes, in pixels."""

    x: int
    width: int


ENTITIES, JOINS, MEMBERS = _Column(0, 140), _Column(185, 220), _Column(460, 210)


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureText:
    """A line of text, with its baseline. `full`: the whole text where `text` is cut, else empty."""

    x: int
    y: int
    text: str
    full: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureBox:
    """A box with its title and further lines. `hue`: the number of its colour, one for each entity; `entity`: whose page it leads
    to, or empty."""

    x: int
    y: int
    width: int
    height: int
    hue: int
    lines: tuple[PictureText, ...]
    entity: str = ""

    @property
    def middle(self) -> int:
        """Where a line meets its title."""
        return self.y + PAD + LINE // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureLine:
    """A line, as the path of SVG. `tree`: from a join to a join below it."""

    path: str
    hue: int
    tree: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The picture of a product."""

    width: int
    height: int
    boxes: tuple[PictureBox, ...]
    lines: tuple[PictureLine, ...]


def lineage_picture(product: Product, members: Sequence[Member]) -> Picture:
    """The picture of a product with these members."""
    layout = _Layout(product, members)
    boxes = [*layout.joins.values(), *layout.entities.values(), *layout.members.values()]
    return Picture(
        width=MEMBERS.x + MEMBERS.width + 2,
        height=max(box.y + box.height for box in boxes) + 2,
        boxes=tuple(boxes),
        lines=tuple(layout.lines()),
    )


class _Layout:
    """The boxes: of entities by their names, of joins by their paths (the root's too), and of members by their level."""

    def __init__(self, product: Product, members: Sequence[Member]) -> None:
        self.entities: dict[str, PictureBox] = {}
        self.joins: dict[Path, PictureBox] = {}
        self.members: dict[Path, PictureBox] = {}
        joins = levels_of(product)
        self._read: Mapping[Path, str] = {(): product.root} | {at: join.entity for at, join in joins.items()}
        self._hues = {name: number % HUES for number, name in enumerate(dict.fromkeys(self._read.values()))}
        self._shown: dict[Path, list[Member]] = {at: [] for at in self._read}
        for member in members:
            self._shown[member.level].append(member)
        y = 0
        for at in self._read:
            y = self._add_row(at, y, _join_texts(product, at, joins)) + GAP

    def _add_row(self, at: Path, y: int, texts: Sequence[str]) -> int:
        """Adds the boxes of a join, of its members, and of its entity at its first join. Returns the bottom of the first two."""
        entity = self._read[at]
        indent = INDENT * len(at)
        boxes = [_box(_Column(JOINS.x + indent, JOINS.width - indent), y, self._hues[entity], texts)]
        self.joins[at] = boxes[0]
        if entity not in self.entities:
            self.entities[entity] = _box(ENTITIES, y, self._hues[entity], [entity], entity)
        if mine := [member.name for member in self._shown[at]]:
            more = [f"and {len(mine) - MOST_MEMBERS} more"] if len(mine) > MOST_MEMBERS else []
            title = ".".join(at) or "document"
            self.members[at] = _box(MEMBERS, y, self._hues[entity], [title, *mine[:MOST_MEMBERS], *more])
            boxes.append(self.members[at])
        return max(box.y + box.height for box in boxes)

    def lines(self) -> Iterator[PictureLine]:
        """The lines from entities to joins, from joins to those below them, and from joins to the members that they fill."""
        for at, entity in self._read.items():
            source, join, hue = self.entities[entity], self.joins[at], self._hues[entity]
            yield PictureLine(path=_curve(source, join.x, join.middle), hue=hue)
            if at:
                above = self.joins[at[:-1]]
                path = f"M{above.x + INDENT // 2} {above.y + above.height}V{join.middle}H{join.x}"
                yield PictureLine(path=path, hue=hue, tree=True)
        for at, box in self.members.items():
            for number, member in enumerate(self._shown[at][:MOST_MEMBERS], start=1):
                for read in member.reads:
                    path = _curve(self.joins[read], box.x, box.middle + number * LINE)
                    yield PictureLine(path=path, hue=self._hues[self._read[read]])


def _join_texts(product: Product, at: Path, joins: Mapping[Path, Join]) -> tuple[str, str]:
    if not at:
        return product.name, f"a document for each {f'group of {product.root}' if product.by else product.root}"
    return at[-1], f"{'many' if joins[at].many else 'one'}, by {', '.join(map(shown_field, joins[at].child_columns))}"


def _box(column: _Column, y: int, hue: int, texts: Sequence[str], entity: str = "") -> PictureBox:
    lines = []
    for number, text in enumerate(texts):
        cut = shortened(text, int((column.width - 2 * PAD) / SIGN))
        baseline = y + PAD + number * LINE + LINE * 3 // 4
        lines.append(PictureText(x=column.x + PAD, y=baseline, text=cut, full=text if cut != text else ""))
    height = 2 * PAD + LINE * len(texts)
    return PictureBox(x=column.x, y=y, width=column.width, height=height, hue=hue, lines=tuple(lines), entity=entity)


def _curve(box: PictureBox, x: int, y: int) -> str:
    """A line from the right side of a box."""
    begin = box.x + box.width
    middle = (begin + x) // 2
    return f"M{begin} {box.middle}C{middle} {box.middle} {middle} {y} {x} {y}"
