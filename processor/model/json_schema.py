"""The JSON Schema (draft 2020-12) of a product's documents, from the declared types.

Every member is there; what may be null says so. Not null are the key columns of a row, and the columns by which a joined row
was found, since null joins nothing. A column of a `one` join is null where nothing was found, and what is computed may be.
What is stored but not declared is allowed where a level shows whole rows, and not described.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from processor.model.elements import type_of
from processor.model.entity import ColumnType, Entity
from processor.model.expression import Column, Expression, Path, Shown
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
    return heading | _Writer(entities).level((product.root,), (), product.selection, product.joins)


class _Writer:
    """Writes the schema of each level."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self._entities = entities

    def level(self, entities: Path, found_by: Collection[str], selection: Selection, joins: Sequence[Join]) -> Schema:
        """What a row of the last of `entities`, which stand above each other, shows; it was found by these of its columns."""
        known = {*self._entities[entities[-1]].key, *found_by}
        match selection:
            case Bare(of=of):
                return self._member(entities, known, joins, of)
            case Fields(members=selected):
                named = selected
            case Whole():
                named = tuple((name, Column(name=name)) for name in self._entities[entities[-1]].columns)
        members = {name: self._member(entities, known, joins, of) for name, of in named}
        for join in joins:
            if join.shown:
                members[join.name] = self._joined(join, entities)
            if join.total:
                members[f"{join.name}_total"] = dict(_TYPES["int"])
        closed = not isinstance(selection, Whole)
        return {
            "type": "object",
            "properties": members,
            "required": list(members),
            **({"additionalProperties": False} if closed else {}),
        }

    def _joined(self, join: Join, entities: Path) -> Schema:
        """What a join shows below these entities: an object or value or null, or a list."""
        absent = join.listed and not join.required  # an element without a row has all selected members, null
        shown = self.level((*entities, join.entity), () if absent else join.child_columns, join.selection, join.joins)
        if join.aggregated:
            return shown
        if absent:
            shown = self._without_row(shown, join, self._entities[entities[-1]])
        if not join.many:
            return shown if join.required else _nullable(shown)
        cut = {} if join.limit is None else {"maxItems": join.limit}
        return {"type": "array", "items": shown, **cut}

    def _without_row(self, shown: Schema, join: Join, above: Entity) -> Schema:
        """The schema of a list join's element, which may have no row: every member but an embed may be null, and one that shows
        what an element of json says may be anything."""
        by = {child for child, parent in join.on if type_of(parent, above).name == "json"}
        if isinstance(join.selection, Bare):
            return {} if isinstance(join.selection.of, Column) and join.selection.of.name in by else _nullable(shown)
        embeds = {below.name for below in join.joins if below.shown} | {
            f"{b.name}_total" for b in join.joins if b.total
        }
        named = dict(join.selection.members) if isinstance(join.selection, Fields) else {}
        columns = {name: of.name for name, of in named.items() if isinstance(of, Column) and not (of.path or of.up)}
        members = {
            name: schema if name in embeds else {} if columns.get(name, name) in by else _nullable(schema)
            for name, schema in shown["properties"].items()
        }
        return shown | {"properties": members | self._ones(members, join)}

    def _ones(self, members: Schema, join: Join) -> Schema:
        """Embeds of one row: null below an element without a row, also where they are required."""
        ones = [b.name for b in join.joins if b.shown and not b.many]
        return {name: _nullable(members[name]) for name in ones}

    def _member(self, entities: Path, known: Collection[str], joins: Sequence[Join], of: Expression) -> Schema:
        """A column of the level's own row, of which `known` are not null, or of another row; or what is computed."""
        if isinstance(of, Column):
            own = not of.path and not of.up
            at, _ = _reach(entities[: len(entities) - of.up], joins, of.path)
            schema = _typed(self._entities[at[-1]].columns[of.name])
            return schema if own and of.name in known else _nullable(schema)
        if isinstance(of.of, Shown):
            at, beside = _reach(entities, joins, of.of.path[:-1])
            return _nullable(self._joined(_named(beside, of.of.path[-1]), at))
        return {"type": "null"} if of.of.type is None else _nullable(_TYPES[of.of.type])


def _reach(entities: Path, joins: Sequence[Join], path: Path) -> tuple[Path, Sequence[Join]]:
    """The entities down to the end of a path of `one` joins, and the joins there."""
    for name in path:
        join = _named(joins, name)
        entities, joins = (*entities, join.entity), join.joins
    return entities, joins


def _named(joins: Sequence[Join], name: str) -> Join:
    return next(join for join in joins if join.name == name)


def _typed(column: ColumnType) -> Schema:
    return {"type": "array", "items": _nullable(_TYPES[column.name])} if column.array else dict(_TYPES[column.name])


def _nullable(schema: Schema) -> Schema:
    """The schema, or null. One without a type allows null already."""
    kind = schema.get("type")
    return schema | {"type": [kind, "null"]} if isinstance(kind, str) else schema
