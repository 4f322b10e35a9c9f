"""`load` reads back what `describe` writes, to an equal model."""

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from processor.language.definitions.describe import describe_entity, describe_product
from processor.language.definitions.load import load, read_directory
from processor.language.product.expressions.expression import Column
from processor.language.product.join_fields import parse_element
from processor.language.product.product import (
    BareValue,
    Definitions,
    Fields,
    Join,
    KeyPart,
    OrderTerm,
    Product,
    Selection,
    WholeRow,
)
from processor.values.entity import ColumnType, DeleteFlag, Entity, parse_type
from processor.values.envelopes.kinds import FORMATS

EXAMPLE = Path(__file__).parents[4] / "examples" / "github"
TYPES = [
    "int",
    "string",
    "float",
    "decimal",
    "bool",
    "date",
    "timestamp",
    "decimal(12,2)",
    "decimal(5,0)",
    "timestamp(us)",
]
UNORDERED = ["json", "string[]", "json[]", "timestamp(ms)[]", "decimal(9,4)[]"]
names = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=5) | st.sampled_from(
    ["on", "true", "null", "1", "-x", "a.b", 'q"', "it's", "parent", "😀", "#", "x: y", "[]", "~", "0x1", "2020-01-01"]
)
plain = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,6}", fullmatch=True)


def written_and_read(definitions: Definitions) -> Definitions:
    entities = {name: describe_entity(entity) for name, entity in definitions.entities.items()}
    texts = {"entities.yaml": json.dumps(entities)}
    for number, product in enumerate(definitions.products.values()):
        texts[f"products/{number:03}.json"] = json.dumps(describe_product(product))
    return load(texts)


FLAGS = [DeleteFlag("op_type", ("D", "1", "true"), ("T",)), DeleteFlag("_cdc.op", ("null",)), DeleteFlag("_deleted_at")]


@st.composite
def entities(draw: st.DrawFn, name: str) -> Entity:
    plain_names = names.filter(lambda text: text != "*" and parse_element(text) is None)
    columns = draw(st.dictionaries(plain_names, st.sampled_from(TYPES + UNORDERED), min_size=1, max_size=6))
    scalar = [column for column, written in columns.items() if written in TYPES]
    numbers = [column for column, written in columns.items() if written.startswith(("decimal", "float"))]
    unordered = [column for column, written in columns.items() if written in UNORDERED]
    if not scalar:
        columns["id"], scalar = "int", ["id"]
    record_format: str | None = draw(st.sampled_from([None, *FORMATS]))
    return Entity(
        name=name,
        topic=f"{name}.topic",
        key=tuple(draw(st.lists(st.sampled_from(scalar), min_size=1, max_size=3, unique=True))),
        columns={column: parse_type(written) for column, written in columns.items()},
        shards=draw(st.integers(1, 100)),
        format=record_format,
        truncate=draw(st.sampled_from(["refuse", "ignore", "delete"])),
        unrepresentable=draw(st.sampled_from([None, "null", "refuse", dict.fromkeys(unordered[:1], "null")])),
        decimals=draw(st.sampled_from([None, "text", "bytes", dict.fromkeys(numbers[:1], "bytes")])),
        table=draw(st.sampled_from(["", "orders", "public.orders"]))
        if record_format is None or FORMATS[record_format].names_table
        else "",
        deleted=()
        if record_format and FORMATS[record_format].operation
        else tuple(draw(st.lists(st.sampled_from(FLAGS), min_size=record_format == "row", max_size=2))),
    )


class Tree:
    """Draws the levels of a product over some entities."""

    def __init__(self, draw: st.DrawFn, found: dict[str, Entity]) -> None:
        self.draw = draw
        self.entities = found

    def joins(self, above: str, depth: int, visible: bool) -> tuple[Join, ...]:
        if depth == 0:
            return ()
        joined = self.draw(st.dictionaries(names, st.sampled_from(sorted(self.entities)), max_size=2))
        made = [self.join(name, above, entity, depth, visible) for name, entity in joined.items()]
        found = [join for join in made if join is not None]
        return tuple(sorted(found, key=lambda join: join.shown))

    def join(self, name: str, above: str, entity: str, depth: int, visible: bool) -> Join | None:
        pairs = [
            (child, parent)
            for child, child_type in self.entities[entity].columns.items()
            for parent, parent_type in self.entities[above].columns.items()
            if child_type.kind is not None and child_type.kind == parent_type.kind
        ]
        if not pairs:
            return None
        shown = self.draw(st.booleans())
        many = shown and visible and self.draw(st.booleans())
        below = self.joins(entity, depth - 1, visible and shown)
        selection = self.selection(entity, below)
        return Join(
            name=name,
            entity=entity,
            many=many,
            shown=shown,
            on=tuple(dict(self.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2))).items()),
            order_by=self.order_by(entity, below),
            limit=self.draw(st.none() | st.integers(1, 2**31 - 1)) if many else None,
            selection=selection,
            joins=below,
        )

    def columns(
        self, entity: str, joins: tuple[Join, ...], path: tuple[str, ...] = ()
    ) -> list[tuple[Column, ColumnType]]:
        """The columns that expressions of the level may name."""
        taken = {join.name for join in joins} if not path else set()
        own = self.entities[entity].columns.items()
        found = [(Column(name=name, path=path), column) for name, column in own if name not in taken]
        for join in joins:
            if not join.many:
                found += self.columns(join.entity, join.joins, (*path, join.name))
        return found

    def selection(self, entity: str, joins: tuple[Join, ...]) -> Selection:
        shown = {join.name for join in joins if join.shown}
        choices = [column for column, _ in self.columns(entity, joins)]
        kind = self.draw(st.sampled_from(["whole", "list", "map", "bare"]))
        if kind == "bare" and not shown and choices:
            return BareValue(expression=self.draw(st.sampled_from(choices)))
        if kind == "map" and choices:
            members = self.draw(st.dictionaries(names, st.sampled_from(choices), max_size=4))
            return Fields(members=tuple((name, column) for name, column in members.items() if name not in shown))
        own = [name for name in self.entities[entity].columns if name not in shown]
        if kind == "whole" and len(own) == len(self.entities[entity].columns):
            return WholeRow()
        return Fields(members=tuple((name, Column(name=name)) for name in own))

    def order_by(self, entity: str, joins: tuple[Join, ...]) -> tuple[OrderTerm, ...]:
        choices = [column for column, declared in self.columns(entity, joins) if declared.kind is not None]
        terms = self.draw(st.lists(st.sampled_from(choices), max_size=2)) if choices else []
        return tuple(OrderTerm(by=column, descending=self.draw(st.booleans())) for column in terms)


@st.composite
def message_keys(draw: st.DrawFn, root: Entity) -> tuple[KeyPart, ...]:
    constants = draw(st.dictionaries(names, names | st.integers(-9, 2**60), max_size=2))
    parts = [KeyPart(name, constant=value) for name, value in constants.items() if name not in root.key]
    return (*parts, *(KeyPart(column, column=column) for column in root.key)) if parts else ()


@st.composite
def definitions(draw: st.DrawFn) -> Definitions:
    found = {name: draw(entities(name)) for name in draw(st.lists(plain, min_size=1, max_size=3, unique=True))}
    products: dict[str, Product] = {}
    for name in draw(st.lists(plain, max_size=2, unique=True)):
        tree, root = Tree(draw, found), draw(st.sampled_from(sorted(found)))
        joins = tree.joins(root, 2, True)
        selection = tree.selection(root, joins)
        own = [column for column, _ in tree.columns(root, joins) if not column.path]
        headers = draw(st.dictionaries(names, st.sampled_from(own), max_size=2)) if own else {}
        plain_types = [c for c in own if str(found[root].columns[c.name]) in ("int", "string", "date")]
        chosen = draw(st.lists(st.sampled_from(plain_types), max_size=2, unique=True)) if plain_types else []
        products[name] = Product(
            name=name,
            topic=f"{name}.product",
            root=root,
            selection=selection,
            joins=joins,
            key=draw(message_keys(found[root])),
            headers=tuple(headers.items()),
            partition_by=tuple((column.name, column) for column in chosen),
        )
    return Definitions(entities=found, products=products)


def test_the_example_is_read_back() -> None:
    found = load(read_directory(EXAMPLE))
    assert written_and_read(found) == found


@settings(suppress_health_check=[HealthCheck.too_slow])  # ruamel's parser is slow on a loaded machine
@given(definitions())
def test_any_definitions_are_read_back(found: Definitions) -> None:
    read = written_and_read(found)
    assert read == found
    for name, entity in found.entities.items():
        assert list(read.entities[name].columns) == list(entity.columns)


def test_the_format_of_documents_is_written_and_read() -> None:
    texts = {
        "entities.yaml": "user: {key: [id], columns: {id: int}}",
        "a.yaml": "{product: a, root: user, format: avro}",
        "b.yaml": "{product: b, root: user, format: json}",
    }
    definitions = load(texts)
    assert [product.format for product in definitions.products.values()] == ["avro", "json"]
    assert written_and_read(definitions) == definitions
