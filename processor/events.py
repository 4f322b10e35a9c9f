"""The kinds of event that a plan's entities can have, each with rows to try it on: a small world in which every join finds a row.

Columns that joins set equal hold the same value, so that a row of one entity meets one row of each other. The world is there
twice (`WORLD`, `OTHER`), so that a row can move from one document to another; values of `FRESH` meet nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from processor.model.access import Columns
from processor.model.change import Value
from processor.model.elements import column_of, element, type_of
from processor.model.entity import ColumnType, Entity
from processor.model.expression import Column as Field
from processor.model.expression import Expression, Path, node_of, read_by
from processor.model.plan import EntityPlan, Node, Plan, ProductPlan
from processor.model.product import Join
from processor.model.types import parse_type

WORLD, OTHER, FRESH = 1, 2, 3
Row = Mapping[str, Value]
Column = tuple[str, str]
"""Entity and column, or field of an array's elements."""
Place = tuple[str, int | None]
"""Product and node, None for the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event on the row of `WORLD`, or on one that is `new`. `row` None: it is deleted; `replay`: it comes again as it was;
    `decides`: it changes what a `where` reads, and with it whether a row counts."""

    entity: str
    name: str
    row: Row | None
    new: bool = False
    replay: bool = False
    decides: bool = False


class World:
    """The rows for a plan's entities."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._nodes = [node for product in plan.products.values() for node in product.nodes]
        self._class = _classes(plan, self._nodes)
        self._deciding = set(_deciding(plan))

    def row(self, entity: str, number: int) -> dict[str, Value]:
        """The row of an entity in a world."""
        return {name: self._value((entity, name), number) for name in self._plan.entities[entity].entity.columns}

    def events(self) -> Iterator[Event]:
        """Every kind of event of every entity that some product reads."""
        for entity in self._plan.entities.values():
            if entity.name in self._plan.places:
                row = self.row(entity.name, WORLD)
                yield Event(entity=entity.name, name="first seen", row=self._new(entity, row), new=True)
                yield from self._updates(entity, row)
                yield Event(entity=entity.name, name="update of nothing that is used", row=row)
                yield Event(entity=entity.name, name="delete", row=None)
                yield Event(entity=entity.name, name="replay", row=row, replay=True)

    def _new(self, entity: EntityPlan, row: Row) -> Row:
        """A row with a new key, which joins the same rows above, and finds none below."""
        mine = [node for node in self._nodes if node.own_slot is not None and node.join.entity == entity.name]
        kept = {column_of(field) for node in mine for field in node.child_columns}
        below = {column_of(field) for node in self._nodes if node.above == entity.name for field in node.parent_columns}
        fresh = {*entity.entity.key, *below} - kept
        if fresh.isdisjoint(entity.entity.key):
            fresh.add(entity.entity.key[-1])
        return {**row, **self._values(entity.name, fresh, FRESH)}

    def _updates(self, entity: EntityPlan, row: Row) -> Iterator[Event]:
        """One event for the columns that the same products read at the same places; one for each column of a slot."""
        held: dict[int | str, Columns] = dict(entity.slots.items())
        held.update(entity.edges.items())
        groups: dict[tuple[frozenset[Place], frozenset[int | str], bool], list[str]] = {}
        for column in entity.entity.columns:
            places = self._places(entity.name, column)
            if places and column not in entity.entity.key:
                joined = frozenset(name for name, fields in held.items() if column in map(column_of, fields))
                groups.setdefault((places, joined, (entity.name, column) in self._deciding), []).append(column)
        own = {column_of(field) for n in self._nodes if n.join.entity == entity.name for field in n.child_columns}
        for (_, joined, decides), columns in groups.items():
            moves = bool(joined) and own.intersection(columns)
            new = {**row, **self._values(entity.name, columns, OTHER if moves else FRESH)}
            kind = " (join key)" if joined else ""
            yield Event(entity=entity.name, name=f"update of {', '.join(columns)}{kind}", row=new, decides=decides)

    def _places(self, entity: str, column: str) -> frozenset[Place]:
        """Where in products the column is read."""

        def used(place: Place) -> bool:
            product = self._plan.products[place[0]]
            names = product.used if place[1] is None else product.nodes[place[1]].used
            return names is None or column in names

        return frozenset(filter(used, self._plan.places[entity]))

    def _values(self, entity: str, columns: Collection[str], number: int) -> dict[str, Value]:
        return {column: self._value((entity, column), number) for column in columns}

    def _value(self, column: Column, number: int) -> Value:
        """A column's value: its class's, or an array of one element, which holds those of its fields."""
        entity = self._plan.entities[column[0]].entity
        read = {f: e for name, f in self._class if name == column[0] and (e := element(f)) and e.column == column[1]}
        if not read:
            return _value(entity.columns[column[1]], self._class.get(column, column), number)
        values = {e.member: _value(_kind(f, entity), self._class[column[0], f], number) for f, e in read.items()}
        return [values.get(None, values)]


def _kind(field: str, entity: Entity) -> ColumnType:
    """The type of a field of an array's elements; of json, one of the kind that joins."""
    declared, read = type_of(field, entity), element(field)
    if declared.name != "json" or read is None or read.kind is None:
        return declared
    return parse_type("int" if read.kind == "number" else read.kind)


def _classes(plan: Plan, nodes: Collection[Node]) -> dict[Column, Column]:
    """Column -> the one that stands for all that joins set equal to it."""
    group: dict[Column, Column] = {}
    for node in nodes:
        for child, parent in zip(node.child_columns, node.parent_columns, strict=True):
            a, b = (node.join.entity, child), (node.above, parent)
            kept, gone = group.get(b, b), group.get(a, a)
            group |= {a: kept, b: kept} | {member: kept for member, its in group.items() if its == gone}
    return group


def passing(plan: Plan) -> Plan:
    """The plan with every row counting: no `where`, nothing required. What it reads stays."""

    def lenient(joins: Iterable[Join]) -> tuple[Join, ...]:
        return tuple(replace(join, where=None, required=False, joins=lenient(join.joins)) for join in joins)

    def of(product: ProductPlan) -> ProductPlan:
        tree = replace(product.product, where=None, joins=lenient(product.product.joins))
        nodes = tuple(replace(node, join=lenient((node.join,))[0]) for node in product.nodes)
        return replace(product, product=tree, nodes=nodes)

    return replace(plan, products={name: of(product) for name, product in plan.products.items()})


def _deciding(plan: Plan) -> Iterator[Column]:
    """The columns that some `where` reads."""
    for product in plan.products.values():
        places: dict[Path, str] = {(): product.product.root}
        filters: list[tuple[Path, Expression | None]] = [((), product.product.where)]
        paths: list[Path] = []
        for node in product.nodes:
            paths.append((*(() if node.parent is None else paths[node.parent]), node.join.name))
            places[paths[-1]] = node.join.entity
            filters.append((paths[-1], node.join.where))
        for at, where in filters:
            for read in read_by(node_of(where)) if where is not None else ():
                if isinstance(read, Field):
                    yield places[at[: len(at) - read.up] + read.path], read.name


def _value(kind: ColumnType, column: Column, number: int) -> Value:
    match kind.name:
        case "string":
            value: Value = f"{column[1]}{number}"
        case "int" | "float" | "decimal":
            value = number
        case "bool":
            value = number == WORLD
        case "date":
            value = f"2020-01-0{number}"
        case "timestamp":
            value = f"2020-01-0{number}T00:00:00Z"
        case "json":
            value = {"value": number}
    return [value] if kind.array else value
