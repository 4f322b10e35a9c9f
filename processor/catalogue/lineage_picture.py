"""The lineage of a product as a picture: entities at the left, joins in the middle, the members of the document at the right.

Pure: it computes boxes and lines in pixels, and a template draws them as SVG. The text has one width for each sign, so that the
layout needs no fonts. Each join is in a row of its own, next to the members that it shows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from processor.catalogue.document_members import Member, levels_of
from processor.first_of import shortened
from processor.product.expressions.expression import Path
from processor.product.product import Product

LINE, PAD, GAP, SIGN = 20, 8, 22, 7.3
"""Pixels: of a line of text, around it, between boxes, and of a sign."""
LEFT, MIDDLE, RIGHT = (0, 170), (230, 250), (550, 250)
"""The columns: x and width of their boxes."""
INDENT = 16
"""How much further to the right a join below a join is."""
MOST_MEMBERS = 40
"""A box shows so many members; of further ones only how many."""
HUES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureText:
    """A line of text. `full`: the whole text, where `text` is cut."""

    x: int
    y: int
    text: str
    full: str = ""
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureBox:
    """A box with its lines. `hue`: the number of the entity's colour; `link`: the entity whose page it leads to, or empty."""

    x: int
    y: int
    width: int
    height: int
    hue: int
    lines: tuple[PictureText, ...]
    link: str = ""

    def middle(self) -> int:
        """Where a line meets its sides."""
        return self.y + PAD + LINE // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureLine:
    """A line of the picture, as the path of SVG."""

    path: str
    hue: int
    tree: bool = False


@dataclass(slots=True, kw_only=True)
class Picture:
    """The picture of a product."""

    width: int = RIGHT[0] + RIGHT[1] + 2
    height: int = 0
    boxes: list[PictureBox] = field(default_factory=list)
    lines: list[PictureLine] = field(default_factory=list)


def lineage_picture(product: Product, members: Sequence[Member]) -> Picture:
    """The picture of a product with these members."""
    joins = levels_of(product)
    entities = {(): product.root} | {at: join.entity for at, join in joins.items()}
    hues = {name: number % HUES for number, name in enumerate(dict.fromkeys(entities.values()))}
    picture = Picture()
    sources: dict[str, PictureBox] = {}
    places: dict[Path, PictureBox] = {}
    shown: dict[Path, list[tuple[Member, int]]] = {}
    y = 0
    for at, entity in entities.items():
        texts = [product.name, f"a document for each {entity}"]
        if at:
            on = ", ".join(child for child, _ in joins[at].on)
            texts = [at[-1], f"{'many' if joins[at].many else 'one'}, by {on}"]
        indent = INDENT * len(at)
        places[at] = _box(MIDDLE[0] + indent, y, MIDDLE[1] - indent, hues[entity], texts)
        picture.boxes.append(places[at])
        if entity not in sources:
            sources[entity] = _box(*(LEFT[0], y, LEFT[1]), hues[entity], [entity], link=entity)
            picture.boxes.append(sources[entity])
        bottom = places[at].y + places[at].height
        if mine := [member for member in members if member.level == at]:
            names = [member.name for member in mine[:MOST_MEMBERS]]
            further = [f"and {len(mine) - MOST_MEMBERS} more"] if len(mine) > MOST_MEMBERS else []
            box = _box(*(RIGHT[0], y, RIGHT[1]), hues[entity], ["document" if not at else _title(at), *names, *further])
            picture.boxes.append(box)
            ys = [text.y - LINE // 4 for text in box.lines[1:]]
            shown[at] = list(zip(mine[:MOST_MEMBERS], ys, strict=False))
            bottom = max(bottom, box.y + box.height)
        y = bottom + GAP
    picture.height = y - GAP + 2
    picture.lines = list(_lines(entities, hues, sources, places, shown))
    return picture


def _title(at: Path) -> str:
    return ".".join(at)


def _lines(
    entities: dict[Path, str],
    hues: dict[str, int],
    sources: dict[str, PictureBox],
    places: dict[Path, PictureBox],
    shown: dict[Path, list[tuple[Member, int]]],
) -> Iterator[PictureLine]:
    """The lines from entities to joins, from joins to the joins below them, and from joins to members."""
    for at, entity in entities.items():
        box, hue = places[at], hues[entity]
        start = sources[entity]
        yield PictureLine(path=_curve(start.x + start.width, start.middle(), box.x, box.middle()), hue=hue)
        if at:
            above = places[at[:-1]]
            path = f"M{above.x + INDENT // 2} {above.y + above.height}V{box.middle()}H{box.x}"
            yield PictureLine(path=path, hue=hue, tree=True)
    for found in shown.values():
        for member, y in found:
            for place in member.reads:
                box = places[place]
                path = _curve(box.x + box.width, box.middle(), RIGHT[0], y)
                yield PictureLine(path=path, hue=hues[entities[place]])


def _curve(x: int, y: int, to_x: int, to_y: int) -> str:
    middle = (x + to_x) // 2
    return f"M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}"


def _box(x: int, y: int, width: int, hue: int, texts: Sequence[str], link: str = "") -> PictureBox:
    most = int((width - 2 * PAD) / SIGN)
    lines = []
    for number, text in enumerate(texts):
        cut = shortened(text, most)
        at = y + PAD + number * LINE + LINE * 3 // 4
        full = text if cut != text else ""
        lines.append(PictureText(x=x + PAD, y=at, text=cut, full=full, strong=number == 0))
    return PictureBox(
        x=x, y=y, width=width, height=2 * PAD + LINE * len(texts), hue=hue, lines=tuple(lines), link=link
    )
