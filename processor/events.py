"""The kinds of event that a plan's entities can have, each with rows to try it on: a small world in which every join finds a row.

Columns that joins set equal hold the same value, so that a row of one entity meets one row of each other. The world is there
twice (`WORLD`, `OTHER`), so that a row can move from one document to another; values of `FRESH` meet nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from processor.model.change import Value
from processor.model.elements import column_of, element
from processor.model.entity import ColumnType
from processor.model.plan import EntityPlan, Node, Plan

WORLD, OTHER, FRESH = 1, 2, 3
Row = Mapping[str, Value]
Column = tuple[str, str]
"""Entity and column."""
Place = tuple[str, int | None]
"""Product and node, None for the root."""
_KINDS: Mapping[str, ColumnType] = {
    "number": ColumnType(name="int"),
    "string": ColumnType(name="string"),
    "bool": ColumnType(name="bool"),
    "date": ColumnType(name="date"),
    "timestamp": ColumnType(name="timestamp"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event on the row of `WORLD`, or on a new one. `row` None: it is deleted; `replay`: it comes again as it was."""

    entity: str
    name: str
    row: Row | None
    replay: bool = False


class World:
    """The rows for a plan's entities."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._nodes = [node for product in plan.products.values() for node in product.nodes]
        self._class = _classes(plan, self._nodes)
        self._members: dict[Column, dict[str, str]] = {}
        for entity, _, fields in (side for node in self._nodes for side in node.sides()):
            for read in filter(None, map(element, fields)):
                if read.member is not None and read.kind is not None:
                    self._members.setdefault((entity, read.column), {})[read.member] = read.kind

    def row(self, entity: str, number: int) -> dict[str, Value]:
        """The row of an entity in a world."""
        return {name: self._value((entity, name), number) for name in self._plan.entities[entity].entity.columns}

    def events(self) -> Iterator[Event]:
        """Every kind of event of every entity that some product reads."""
        for entity in self._plan.entities.values():
            if entity.name in self._plan.places:
                row = self.row(entity.name, WORLD)
                yield Event(entity=entity.name, name="first seen", row=self._new(entity, row))
                yield from self._updates(entity, row)
                yield Event(entity=entity.name, name="update of nothing that is used", row=row)
                yield Event(entity=entity.name, name="delete", row=None)
                yield Event(entity=entity.name, name="replay", row=row, replay=True)

    def _new(self, entity: EntityPlan, row: Row) -> Row:
        """A row with a new key, which joins the same rows above, and finds none below."""
        kept = {
            column_of(c)
            for n in self._nodes
            if n.own_slot is not None and n.join.entity == entity.name
            for c in n.child_columns
        }
        below = {column_of(c) for n in self._nodes if n.above == entity.name for c in n.parent_columns}
        fresh = {*entity.entity.key, *below} - kept
        if fresh.isdisjoint(entity.entity.key):
            fresh.add(entity.entity.key[-1])
        return {**row, **self._values(entity.name, fresh, FRESH)}

    def _updates(self, entity: EntityPlan, row: Row) -> Iterator[Event]:
        """One event for the columns that the same products read at the same places; one for each column of a slot."""
        groups: dict[tuple[frozenset[Place], frozenset[int | str]], list[str]] = {}
        keyed: list[tuple[int | str, Sequence[str]]] = [*entity.slots.items(), *entity.edges.items()]
        for column in entity.entity.columns:
            places = self._places(entity.name, column)
            if places and column not in entity.entity.key:
                slots = frozenset(where for where, held in keyed if column in map(column_of, held))
                groups.setdefault((places, slots), []).append(column)
        own = {column_of(c) for n in self._nodes if n.join.entity == entity.name for c in n.child_columns}
        for (_, slots), columns in groups.items():
            moves = bool(slots) and own.intersection(columns)
            new = {**row, **self._values(entity.name, columns, OTHER if moves else FRESH)}
            kind = " (join key)" if slots else ""
            yield Event(entity=entity.name, name=f"update of {', '.join(columns)}{kind}", row=new)

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
        kind, group = self._plan.entities[column[0]].entity.columns[column[1]], self._class.get(column, column)
        if members := self._members.get(column):
            return [{name: _value(_KINDS[kind], group, number) for name, kind in members.items()}]
        return _value(kind, group, number)


def _classes(plan: Plan, nodes: Collection[Node]) -> dict[Column, Column]:
    """Column -> the one that stands for all that joins set equal to it."""
    group: dict[Column, Column] = {}
    for node in nodes:
        for child, parent in zip(node.child_columns, node.parent_columns, strict=True):
            a, b = (node.join.entity, column_of(child)), (node.above, column_of(parent))
            kept, gone = group.get(b, b), group.get(a, a)
            group |= {a: kept, b: kept} | {member: kept for member, its in group.items() if its == gone}
    return group


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
