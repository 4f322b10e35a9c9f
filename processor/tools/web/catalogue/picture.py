"""The lineage of a product as a picture: entities at the left, joins in the middle, the members of the document at the right.

Pure: it computes boxes and lines in pixels, and a template draws them as SVG. Each sign has the same width, so that the layout
needs no fonts. Each join has a row of its own, next to the members that it shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from processor.language.product.expressions.expression import Path
from processor.language.product.product import Join, Product
from processor.text import shortened
from processor.tools.web.catalogue.product import Member, levels_of

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
        return product.name, f"a document for each {product.root}"
    return at[-1], f"{'many' if joins[at].many else 'one'}, by {', '.join(joins[at].child_columns)}"


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
