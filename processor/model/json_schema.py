"""The JSON Schema (draft 2020-12) of a product's documents, from the declared types.

Every member is there; what may be null says so. Not null are the key columns of a row, and the columns by which a joined row
was found, since null joins nothing. A column of a `one` join is null where nothing was found, unless it is required; what is
computed may be null, but for `count`. What is stored but not declared is allowed where a level shows whole rows, and not
described.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from processor.model.elements import type_of
from processor.model.entity import ColumnType, Entity
from processor.model.expression import Aggregate, Column, Expression, Literal, Path, Shown, node_of
from processor.model.product import Bare, Fields, Join, Product, Selection, Whole

Schema = dict[str, Any]

_TYPES: Mapping[str, Schema] = {
    "int": {"type": "integer"},
    "string": {"type": "string"},
    "float": {"type": "number"},
    "decimal": {"type": "number"},
    "bool": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "timestamp": {"type": "string", "format": "date-time"},
    "json": {},
}


def document_schema(product: Product, entities: Mapping[str, Entity]) -> Schema:
    """The schema of a product's documents. Tombstones are no documents: a message's value may be null, too."""
    heading = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": product.name}
    return heading | _Writer(entities).document(product)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """A level of the tree: its entity, the columns that are not null in its rows, its joins, and the level above. `absent`: it
    may be that of an element of a list join without a row, where all is null but for the join columns; `anything`: those that
    show what an element of json says."""

    entity: Entity
    known: Collection[str]
    joins: Sequence[Join]
    above: "_Level | None" = None
    absent: bool = False
    anything: Collection[str] = ()


class _Writer:
    """Writes the schema of each level."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self._entities = entities

    def document(self, product: Product) -> Schema:
        """What the root shows."""
        root = self._entities[product.root]
        return self._shown(product.selection, _Level(entity=root, known=root.key, joins=product.joins))

    def _shown(self, selection: Selection, level: _Level) -> Schema:
        """What a row shows."""
        match selection:
            case Bare(of=expression):
                return self._value(expression, level)
            case Fields(members=selected):
                named = selected
            case Whole():
                named = tuple((name, Column(name=name)) for name in level.entity.columns)
        members = {name: self._value(expression, level) for name, expression in named}
        for join in level.joins:
            if join.shown:
                members[join.name] = self._embed(join, level)
                members |= {f"{join.name}_total": {"type": "integer"}} if join.total else {}
        closed = {} if isinstance(selection, Whole) else {"additionalProperties": False}
        return {"type": "object", "properties": members, "required": list(members), **closed}

    def _embed(self, join: Join, above: _Level) -> Schema:
        shown = self._shown(join.selection, self._below(join, above))
        if join.aggregated or (not join.many and join.required and not above.absent):
            return shown
        if not join.many:
            return _nullable(shown)
        cut = {} if join.limit is None else {"maxItems": join.limit}
        return {"type": "array", "items": shown, **cut}

    def _below(self, join: Join, above: _Level) -> _Level:
        entity = self._entities[join.entity]
        if not join.listed or join.required:
            return _Level(entity=entity, known={*entity.key, *join.child_columns}, joins=join.joins, above=above)
        anything = {child for child, parent in join.on if type_of(parent, above.entity).name == "json"}
        return _Level(entity=entity, known=(), joins=join.joins, above=above, absent=True, anything=anything)

    def _value(self, expression: Expression, level: _Level) -> Schema:
        """A column of the level's own row, of one above, or of a `one` join; or what is computed."""
        node = node_of(expression)
        if isinstance(node, Column):
            if node.name in level.anything and not (node.up or node.path):
                return {}
            for _ in range(node.up):
                assert level.above is not None, node
                level = level.above
            found, at = self._reach(node.path, level)
            schema = _typed(at.entity.columns[node.name])
            return schema if found and node.name in at.known else _nullable(schema)
        if isinstance(node, Shown):
            found, at = self._reach(node.path[:-1], level)
            schema = self._embed(_named(at.joins, node.path[-1]), at)
            return schema if found else _nullable(schema)
        schema = {"type": "null"} if node.type is None else dict(_TYPES[node.type])
        counted = isinstance(node, Aggregate) and node.function == "count"
        return schema if not level.absent and (counted or isinstance(node, Literal)) else _nullable(schema)

    def _reach(self, path: Path, level: _Level) -> tuple[bool, _Level]:
        """The level at the end of a path of `one` joins, and whether there always is a row."""
        found = True
        for name in path:
            join = _named(level.joins, name)
            found, level = found and join.required, self._below(join, level)
        return found, level


def _named(joins: Sequence[Join], name: str) -> Join:
    return next(join for join in joins if join.name == name)


def _typed(column: ColumnType) -> Schema:
    return {"type": "array", "items": _nullable(_TYPES[column.name])} if column.array else dict(_TYPES[column.name])


def _nullable(schema: Schema) -> Schema:
    """The schema, or null. One without a type allows null already."""
    kind = schema.get("type")
    return schema | {"type": [kind, "null"]} if isinstance(kind, str) and kind != "null" else schema
