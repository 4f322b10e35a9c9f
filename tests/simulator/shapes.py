"""The products that the simulator runs, and the rows of their tables.

    pair     one product over two tables, with the smallest join, for histories written by hand
    tiny     `pair`, with two stars
    totals   a document for each group of the stars of `pair`
    newest   lists that end at their limit, and a `one`, by slots that have the rows in their order
    prices   `pair`, whose stars have a decimal (`tests.simulator.settled_forms`)
    stars    two products over four tables, two and three levels, joined by slots both ways; a column that no product reads
    github   the example of the README: one slot shared by siblings, a `one` join by a slot, key reads
    lists, strong   joins by edges (`tests.simulator.edge_shapes`)
    edits    the tables of `stars`; operators edit the products during the run (`tests.simulator.registry_edits`)
    drawn N  some random products, by their number, which operators edit (`tests.simulator.mixed`); `drawn computed N` with
             expressions in joins and computed columns, `drawn grouped N` with documents of groups, `drawn every N` with all
             words of the language
    any N    a random product, by its number, with every feature that a product can have (`tests.integration.product.products`)
    flat N   the same with the words of lists: lists of several joins, each element once, by a key, nested fields
    tree N   the same with recursive joins
    ordered N    the same with joins whose order an index has
    compared N   the same over columns that say how their text compares, with other spellings of each text
    computed N   the same with expressions in joins, computed columns, and arrays within json
    clocked N    products with a clock (`tests.simulator.clocked_products`); from 60 on, two of three cut it in a time zone
    grouped N    the same with a document for each group of rows
    every N      the same with all words of the language, and all functions

Values are few, so keys collide, move A -> B -> A, and become null. In `pair` and `stars` each change that a product reads has a
stamp `n`, which only rises. Every document shows the stamps, and so the version of each row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.language.definitions.load import load, read_directory
from processor.language.product.product import Definitions
from tests.integration.product.every_word import draw_word_definitions
from tests.integration.product.products import (
    ENTITIES,
    NESTED,
    draw_compared_definitions,
    draw_computed_definitions,
    draw_definitions,
    draw_group_definitions,
    draw_list_definitions,
    draw_ordered_definitions,
    draw_row,
    draw_tree_definitions,
    respell,
)
from tests.simulator.edge_shapes import LIST_ROWS, LISTS, strong
from tests.simulator.edit_shapes import all_texts, drawn_contents, drawn_entities
from tests.simulator.shape_definitions import NEWEST, PAIR, PRICES, STARS, TOTALS

Row = dict[str, Any]
MOST_SLOTS = 20
STAMP, PRICE = "n", "price"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Products, and functions that draw the rows of their entities. `moving`: the entities whose rows move between documents;
    an entity may be there more often. `unused_columns`: by entity, a column that no product reads. `join_columns`: by
    entity, the columns that move a row. `stamped`: whether rows have the column `n`."""

    name: str
    definitions: Definitions
    draw_row: Mapping[str, Callable[[Random], Row]]
    moving: tuple[str, ...]
    unused_columns: Mapping[str, str]
    join_columns: Mapping[str, tuple[str, ...]]
    stamped: bool
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        definitions = self.definitions
        entities = {name: replace(entity, truncate="delete") for name, entity in definitions.entities.items()}
        object.__setattr__(self, "definitions", replace(definitions, entities=entities))
        object.__setattr__(self, "plan", plan_alone(self.definitions, 20))

    @property
    def slots(self) -> int:
        """How many slots the plan needs."""
        if self.name.startswith("drawn"):
            return MOST_SLOTS
        return max((k for entity in self.plan.entities.values() for k in entity.slots), default=1)

    def key(self, entity: str, row: Row) -> Row:
        return {c: row[c] for c in self.definitions.entities[entity].key}


def _name(r: Random) -> str | None:
    return None if r.random() < 0.15 else r.choice("abc")


def _pair() -> Shape:
    return Shape(
        name="pair",
        definitions=load(PAIR),
        draw_row={
            "user": lambda r: {"email": r.choice("xy"), "username": _name(r), "bio": r.choice("01")},
            "star": lambda r: {"id": r.randrange(3), "username": _name(r), "note": r.choice("01")},
        },
        moving=("user", "star", "star"),
        unused_columns={"user": "bio", "star": "note"},
        join_columns={"user": ("username",), "star": ("username",)},
        stamped=True,
    )


def _tiny() -> Shape:
    pair = _pair()
    star = {"star": lambda r: {**pair.draw_row["star"](r), "id": r.randrange(1, 3)}}
    return replace(pair, name="tiny", draw_row={**pair.draw_row, **star})


def _totals() -> Shape:
    return replace(_pair(), name="totals", definitions=load(TOTALS), moving=("star",), stamped=False)


def _few() -> Shape:
    return replace(
        _pair(),
        name="few",
        draw_row={
            "user": lambda r: {"email": r.choice("xy"), "username": r.choice("ac"), "bio": r.choice("01")},
            "star": lambda r: {"id": r.randrange(2), "username": r.choice("ac"), "note": r.choice("01")},
        },
    )


def _newest() -> Shape:
    return replace(
        _pair(),
        name="newest",
        definitions=load(NEWEST),
        draw_row={
            "user": lambda r: {"email": r.choice("xy"), "username": r.choice("ab"), "bio": r.choice("01")},
            "star": lambda r: {
                "id": r.randrange(6, 13),  # 10 is behind 9, and before it as text
                "username": None if r.random() < 0.1 else r.choice("aab"),
                "at": r.choice((None, 1, 2, 2, 3, 4)),
                "good": r.random() < 0.7,
            },
        },
        moving=("star", "star", "star"),
        unused_columns={"user": "bio"},
        join_columns={"user": ("username",), "star": ("username", "at", "at")},
    )


def _prices() -> Shape:
    pair = _pair()
    texts = ("1234", "1234", "1000", "12.34", "BNI=")
    star = {"star": lambda r: {**pair.draw_row["star"](r), PRICE: r.choice(texts)}}
    return replace(pair, name="prices", definitions=load(PRICES), draw_row={**pair.draw_row, **star})


def _owner(r: Random) -> str | None:
    return None if r.random() < 0.15 else "o"


def _stars() -> Shape:
    return Shape(
        name="stars",
        definitions=load(STARS),
        draw_row={
            "user": lambda r: {
                "email": r.choice("xy"),
                "id": r.randrange(2),
                "username": _name(r),
                "bio": r.choice("01"),
            },
            "repo": lambda r: {"owner": "o", "name": r.choice("rs"), "stars": r.randrange(9), "about": r.choice("01")},
            "star": lambda r: {
                "id": r.randrange(3),
                "username": _name(r),
                "repo_owner": _owner(r),
                "repo_name": r.choice("rs"),
                "at": r.randrange(3),
                "note": r.choice("01"),
            },
            "label": lambda r: {
                "id": r.randrange(3),
                "repo_owner": _owner(r),
                "repo_name": r.choice("rs"),
                "text": r.choice("01"),
            },
        },
        moving=("user", "star", "star", "star"),
        unused_columns={"user": "bio", "repo": "stars", "star": "note"},
        join_columns={"user": ("username",), "star": ("username", "username", "repo_name"), "label": ("repo_name",)},
        stamped=True,
    )


def _time(r: Random) -> str | None:
    return r.choice((None, "2015-01-01T00:00:00Z", "2015-01-01T00:00:00.5Z"))


def _github() -> Shape:
    return Shape(
        name="github",
        definitions=load(read_directory(Path(__file__).parents[2] / "examples" / "github")),
        draw_row={
            "user": lambda r: {
                "email": r.choice("xy"),
                "id": r.choice((None, 1, 2)),
                "username": _name(r),
                "registered_at": _time(r),
            },
            "repo": lambda r: {
                "owner": "o",
                "name": r.choice("rs"),
                "description": r.choice("01"),
                "star_count": r.randrange(9),
            },
            "star": lambda r: {
                "username": r.choice("abc"),
                "repo_name": r.choice("rs"),
                "repo_owner": "o",
                "created_at": _time(r),
            },
            "pull_request": lambda r: {
                "repo": "r",
                "repo_owner": "o",
                "index": r.randrange(3),
                "author": _name(r),
                "title": r.choice("01"),
                "status": r.choice(("open", "merged")),
                "created_at": _time(r),
            },
            "payment_info": lambda r: {
                "id": r.randrange(2),
                "user_id": r.choice((None, 1, 2)),
                "verified": r.choice((None, True, False)),
            },
        },
        moving=("user", "pull_request", "pull_request", "payment_info"),
        unused_columns={"user": "registered_at", "repo": "star_count"},
        join_columns={"user": ("username", "id"), "pull_request": ("author",), "payment_info": ("user_id",)},
        stamped=False,
    )


def _lists() -> Shape:
    return Shape(
        name="lists",
        definitions=load(LISTS),
        draw_row=LIST_ROWS,
        moving=("team", "team", "user", "badge"),
        unused_columns={"team": "motto"},
        join_columns={"team": ("ids", "people"), "user": ("login",), "badge": ("user",)},
        stamped=False,
    )


def _strong() -> Shape:
    return replace(_stars(), name="strong", definitions=load(strong(STARS)))


def _edits() -> Shape:
    entities = {"entities.yaml": STARS["entities.yaml"]}
    return replace(_stars(), name="edits", definitions=load(entities | all_texts()), unused_columns={"repo": "about"})


def _any(name: str) -> Shape:
    return Shape(
        name=name,
        definitions=draw_definitions(Random(name)),
        draw_row={entity: partial(draw_row, entity=entity) for entity in ENTITIES},
        moving=("node", "item", "tag", "link"),
        unused_columns={},
        join_columns={
            "node": ("up", "k", "ids"),
            "item": ("node", "objects"),
            "tag": ("item", "words"),
            "link": ("n",),
        },
        stamped=False,
    )


def _compared(name: str) -> Shape:
    def drawn(r: Random, entity: str) -> Row:
        row: Row = respell(r, draw_row(r, entity))
        return row

    definitions = draw_compared_definitions(Random(name))
    return replace(_any(name), definitions=definitions, draw_row={e: partial(drawn, entity=e) for e in ENTITIES})


def _flat(name: str) -> Shape:
    return replace(_any(name), definitions=draw_list_definitions(Random(name)))


def _grouped(name: str) -> Shape:
    return replace(_any(name), definitions=draw_group_definitions(Random(name)))


def _ordered(name: str) -> Shape:
    return replace(_any(name), definitions=draw_ordered_definitions(Random(name)))


def _clocked(name: str) -> Shape:
    from tests.simulator.clocked_products import CLOCKED_ROWS, LOCAL_CLOCKS, draw_clocked  # they need a whole run

    number = int(name.split()[1])
    return Shape(
        name=name,
        definitions=draw_clocked(Random(name), ("clock", *LOCAL_CLOCKS)[number % 3 if number >= 60 else 0]),
        draw_row=CLOCKED_ROWS,
        moving=("user", "star", "star"),
        unused_columns={},
        join_columns={"user": ("username",), "star": ("username", "at")},
        stamped=False,
    )


def _tree(name: str) -> Shape:
    return replace(_any(name), definitions=draw_tree_definitions(Random(name)))


def _computed(name: str) -> Shape:
    return replace(_any(name), definitions=draw_computed_definitions(Random(name)), draw_row=_computed_rows())


def _every(name: str) -> Shape:
    return replace(_any(name), definitions=draw_word_definitions(Random(name)), draw_row=_computed_rows())


def _computed_rows() -> dict[str, Callable[[Random], Row]]:
    def drawn(r: Random, entity: str) -> Row:
        row = draw_row(r, entity)
        return {**row, "x": r.choice(NESTED)} if entity == "tag" else row

    return {entity: partial(drawn, entity=entity) for entity in ENTITIES}


def _drawn(name: str) -> Shape:
    texts = {"entities.yaml": drawn_entities(name), **all_texts(drawn_contents(name))}
    shape = replace(_any(name), name=name, definitions=load(texts))
    return replace(shape, draw_row=_computed_rows()) if "computed" in name or "every" in name else shape


SHAPES = {
    shape.name: shape
    for shape in (
        *(_pair(), _tiny(), _totals(), _few(), _newest(), _prices(), _stars(), _github(), _lists(), _strong()),
        _edits(),
    )
}


@lru_cache
def shape_of(name: str) -> Shape:
    """The shape of this name."""
    if name in SHAPES:
        return SHAPES[name]
    kinds = {
        "clocked": _clocked,
        "compared": _compared,
        "computed": _computed,
        "drawn": _drawn,
        "every": _every,
        "any": _any,
        "flat": _flat,
        "grouped": _grouped,
        "ordered": _ordered,
        "tree": _tree,
    }
    return kinds[name.split()[0]](name)
