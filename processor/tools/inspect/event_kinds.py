"""The kinds of event of a plan's entities, each with rows to try it on: a small world in which every join finds one row.

Columns that joins compare hold the same value, so that a row of one entity joins one row of each other entity. There are two
such worlds (`WORLD`, `OTHER`), so that a row can move from one document to another. Values of `FRESH` join nothing.

Further pairs of worlds have values of their own, so that the same event can happen to several roots. A bool has no further
values: a join on bools alone finds the rows of all pairs.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta

from processor.engine.plan.plan import EntityPlan, Plan
from processor.engine.plan.product_plan import JoinPlan, ProductPlan
from processor.language.product.expressions.expression import Column, Expression, Path, node_of, references
from processor.language.product.join_fields import parse_compared, parse_element, type_of
from processor.language.product.product import Columns, Join, Product, expressions
from processor.values.column_types import parse_type
from processor.values.entity import ColumnType, Entity
from processor.values.record import Value
from registry.model import column_of
from registry.slots import equal_groups

UNREAD = "update of nothing that is used"
"""The name of an update of columns that no product reads."""
_UPDATE, _JOIN_KEY = "update of ", " (join key)"
WORLD, OTHER, FRESH = 1, 2, 3
VALUES = 3
"""So many values a column has in each pair of worlds."""
RowValues = Mapping[str, Value]
"""A row: column -> value."""
EntityColumn = tuple[str, str]
"""Entity and column, or entity and field of an array's elements."""
ProductNode = tuple[str, int | None]
"""Product and index of a node, None for the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event on the row of `WORLD`, or on a `new` row. `row`: after the event, None if it is deleted; `replay`: the same
    change arrives again; `decides`: the event changes a column that a `where` or an expression reads, and with it whether a row
    counts, or the value of the expression. The sample values need not change them: a date may stay in its year.
    `unread`: no product reads the columns that the event changes."""

    entity: str
    name: str
    row: RowValues | None
    new: bool = False
    replay: bool = False
    decides: bool = False
    unread: bool = False


class World:
    """The rows of a pair of worlds, for a plan's entities. `pair`: its number."""

    def __init__(self, plan: Plan, pair: int = 0) -> None:
        self._plan = plan
        self._pair = pair
        self._nodes = [node for product in plan.products.values() for node in product.nodes]
        self._class = _classes(plan, self._nodes)
        self._deciding = set(_deciding(plan))
        self._computed = set(_computed(plan))

    def row(self, entity: str, number: int) -> dict[str, Value]:
        """The row of an entity in the world `number`."""
        return {name: self._value((entity, name), number) for name in self._plan.entities[entity].entity.columns}

    def events(self) -> Iterator[Event]:
        """Every kind of event of every entity that some product reads."""
        for entity in self._plan.entities.values():
            if entity.name in self._plan.occurrences:
                row = self.row(entity.name, WORLD)
                yield Event(entity=entity.name, name="first seen", row=self._new(entity, row), new=True)
                yield from self._updates(entity, row)
                yield Event(entity=entity.name, name=UNREAD, row=row, unread=True)
                yield Event(entity=entity.name, name="delete", row=None)
                yield Event(entity=entity.name, name="replay", row=row, replay=True)

    def _new(self, entity: EntityPlan, row: RowValues) -> RowValues:
        """A row with a new key that joins the same rows above, and none below."""
        mine = [node for node in self._nodes if node.own_slot is not None and node.join.entity == entity.name]
        child_columns = {column_of(field) for node in mine for field in node.child_columns}
        below = {column_of(field) for node in self._nodes if node.above == entity.name for field in node.parent_columns}
        fresh = {*entity.entity.key, *below} - child_columns
        if fresh.isdisjoint(entity.entity.key):
            fresh.add(entity.entity.key[-1])
        return {**row, **self._values(entity.name, fresh, FRESH)}

    def _updates(self, entity: EntityPlan, row: RowValues) -> Iterator[Event]:
        """One event for each group of columns that the same products read at the same nodes and the same slots hold."""
        indexed: dict[int | str, Columns] = dict(entity.slots.items())
        indexed.update(entity.edges.items())
        groups: dict[tuple[frozenset[ProductNode], frozenset[int | str], bool], list[str]] = {}
        for column in entity.entity.columns:
            places = self._places(entity.name, column)
            if places and column not in entity.entity.key:
                joined = frozenset(name for name, fields in indexed.items() if column in map(column_of, fields))
                groups.setdefault((places, joined, (entity.name, column) in self._deciding), []).append(column)
        own = {column_of(field) for n in self._nodes if n.join.entity == entity.name for field in n.child_columns}
        for (_, joined, decides), columns in groups.items():
            moves = bool(joined) and own.intersection(columns)
            new = {**row, **self._values(entity.name, columns, OTHER if moves else FRESH)}
            kind = _JOIN_KEY if joined else ""
            decides |= any((entity.name, column) in self._computed for column in columns)
            yield Event(entity=entity.name, name=f"{_UPDATE}{', '.join(columns)}{kind}", row=new, decides=decides)

    def _places(self, entity: str, column: str) -> frozenset[ProductNode]:
        """The nodes of products that read the column."""

        def used(place: ProductNode) -> bool:
            product = self._plan.products[place[0]]
            names = product.used if place[1] is None else product.nodes[place[1]].used
            return names is None or column in names

        return frozenset(filter(used, self._plan.occurrences[entity]))

    def _values(self, entity: str, columns: Collection[str], number: int) -> dict[str, Value]:
        return {column: self._value((entity, column), number) for column in columns}

    def _value(self, column: EntityColumn, number: int) -> Value:
        """The value of a column: that of its class, or an array of one element with the values of its fields."""
        entity = self._plan.entities[column[0]].entity
        number += VALUES * self._pair
        read = {
            f: e for name, f in self._class if name == column[0] and (e := parse_element(f)) and e.column == column[1]
        }
        if not read:
            return _value(entity.columns[column[1]], self._class.get(column, column), number)
        values = {e.member: _value(_kind(f, entity), self._class[column[0], f], number) for f, e in read.items()}
        return [values.get(None, values)]


def columns_of(event: str) -> frozenset[str]:
    """The columns that an update of this name changes; none of another event."""
    if not event.startswith(_UPDATE) or event == UNREAD:
        return frozenset()
    return frozenset(event.removeprefix(_UPDATE).removesuffix(_JOIN_KEY).split(", "))


def _kind(field: str, entity: Entity) -> ColumnType:
    """The type of a field of an array's elements; for json, the type of its kind, which joins need."""
    declared, read = type_of(field, entity), parse_element(field)
    if declared.name != "json" or read is None or read.kind is None:
        return declared
    return parse_type("int" if read.kind == "number" else read.kind)


def _classes(plan: Plan, nodes: Collection[JoinPlan]) -> dict[EntityColumn, EntityColumn]:
    """Column -> the representative of all columns that joins compare with it."""
    return equal_groups(
        ((node.above, _valued(parent)), (node.join.entity, _valued(child)))
        for node in nodes
        for child, parent in zip(node.child_columns, node.parent_columns, strict=True)
    )


def _valued(field: str) -> str:
    """The field whose values the world makes. Values of one class are the same text, however their text compares."""
    compared = parse_compared(field)
    return compared[0] if compared else field


def without_filters(plan: Plan) -> Plan:
    """The plan without `where` and `required`, so that every row counts. The columns that it reads stay the same."""

    def lenient(joins: Iterable[Join]) -> tuple[Join, ...]:
        return tuple(replace(join, where=None, required=False, joins=lenient(join.joins)) for join in joins)

    def lenient_product(product: ProductPlan) -> ProductPlan:
        tree = replace(product.product, where=None, joins=lenient(product.product.joins))
        nodes = tuple(replace(node, join=lenient((node.join,))[0]) for node in product.nodes)
        return replace(product, product=tree, nodes=nodes)

    return replace(plan, products={name: lenient_product(product) for name, product in plan.products.items()})


def _deciding(plan: Plan) -> Iterator[EntityColumn]:
    """The columns that some `where` reads."""
    return _read_by(plan, lambda level: () if level.where is None else (level.where,))


def _computed(plan: Plan) -> Iterator[EntityColumn]:
    """The columns that some expression of a document reads, other than a column alone."""
    return _read_by(
        plan, lambda level: [one for one in expressions(level.selection) if not isinstance(node_of(one), Column)]
    )


def _read_by(plan: Plan, read_at: Callable[[Product | Join], Iterable[Expression]]) -> Iterator[EntityColumn]:
    """The columns that the expressions of each level read. `read_at`: the expressions of a level."""
    for product in plan.products.values():
        places: dict[Path, str] = {(): product.product.root}
        levels: list[tuple[Path, Product | Join]] = [((), product.product)]
        for node, path in zip(product.nodes, _paths(product), strict=True):
            places[path] = node.join.entity
            levels.append((path, node.join))
        for at, level in levels:
            for read in (read for expression in read_at(level) for read in references(node_of(expression))):
                if isinstance(read, Column):
                    yield places[at[: len(at) - read.up] + read.path], read.name


def _paths(product: ProductPlan) -> list[Path]:
    """The path of each node, as the names of the joins from the root to it."""
    paths: list[Path] = []
    for node in product.nodes:
        paths.append((*(() if node.parent is None else paths[node.parent]), node.join.name))
    return paths


def _value(kind: ColumnType, column: EntityColumn, number: int) -> Value:
    match kind.name:
        case "string":
            value: Value = f"{column[1]}{number}"
        case "int" | "float" | "decimal":
            value = number
        case "bool":
            value = number % VALUES == WORLD
        case "date":
            value = _day(number)
        case "timestamp":
            value = f"{_day(number)}T00:00:00Z"
        case "json":
            value = {"value": number}
    return [value] if kind.array else value


def _day(number: int) -> str:
    return str(date(2019, 12, 31) + timedelta(days=number))
