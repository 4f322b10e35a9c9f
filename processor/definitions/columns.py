"""Names: what a dotted name means at a level: a column of the row itself (`title`), of a row that `one` joins reach
(`repo.owner_user.email`), of a row above (`parent.cash`), or the value of a join.

Names are case-sensitive; one that is no identifier stands in double quotes, as in SQL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from processor.definitions.errors import Elsewhere, Place, Problems, Wrong, suggest
from processor.model.entity import ColumnType, Entity
from processor.model.expression import Column, Expression, Path, Shown, Type
from processor.model.product import Bare, Join

_IDENTIFIER = r"[^\W\d][\w$]*"
_PART = re.compile(rf'({_IDENTIFIER})|"((?:[^"]|"")+)"')
_PATH = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
PARENT = "parent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What the expressions of one level can name: its entity's columns, its joins (None: one with problems), and the columns of
    the levels `above`. `many`: its rows are many, so that aggregates can be taken over them."""

    entities: Mapping[str, Entity | None]
    entity: str
    joins: Mapping[str, Join | None] = field(default_factory=dict)
    above: "Level | None" = None
    many: bool = False

    @property
    def columns(self) -> Mapping[str, ColumnType] | None:
        """The declared columns; None when the entity is unknown or has problems of its own."""
        entity = self.entities.get(self.entity)
        return entity.columns if entity else None

    def below(self, join: Join) -> "Level":
        """The level of a join's rows."""
        joins: Mapping[str, Join | None] = {inner.name: inner for inner in join.joins}
        return Level(entities=self.entities, entity=join.entity, joins=joins, above=self, many=join.many)


def parse_path(text: str) -> Path | None:
    """The parts of a dotted path; None when the text is any other expression."""
    if not _PATH.fullmatch(text):
        return None
    return tuple(plain or quoted.replace('""', '"') for plain, quoted in _PART.findall(text))


def write_path(column: Column) -> str:
    """The expression that names the column; the inverse of `parse_path`."""
    parts = (*[PARENT] * column.up, *column.path, column.name)
    return ".".join(p if re.fullmatch(_IDENTIFIER, p) else '"' + p.replace('"', '""') + '"' for p in parts)


def own_column(text: str, place: Place, level: Level, problems: Problems) -> Column:
    """A column of the level's own row by its plain name, as lists of columns and `on` have it."""
    columns = level.columns
    if columns is not None and text not in columns:
        path = parse_path(text)
        if path and (path[0] in level.joins or path[0] == PARENT):
            problems.add(
                place, f"`{text}` is no column of `{level.entity}`", f"name it: `fields: {{{path[-1]}: {text}}}`"
            )
        else:
            problems.add(place, f"entity `{level.entity}` has no column `{text}`", suggest(text, columns))
    return Column(name=text)


def resolve(path: Path, level: Level) -> tuple[Column | Shown, Type]:
    """What a dotted name means here, and its type: a bare name is a join of the level, else a column of the row itself.

    Raises Wrong for what is unknown or no single value, Elsewhere where a join or an entity on the way has problems of its own.
    """
    if path[0] == PARENT and path[1:] and PARENT not in level.joins:
        return _above(path, level)
    if len(path) == 1 and path[0] in level.joins:
        return Shown(path=path, type=(type_ := _shown_type(path[0], level))), type_
    reached = level
    for name in path[:-1]:
        reached = _step(name, path, reached)
    if path[1:] and path[-1] not in (reached.columns or ()) and path[-1] in reached.joins:
        return Shown(path=path, type=(type_ := _shown_type(path[-1], reached))), type_
    return Column(name=path[-1], path=path[:-1]), _column_type(path[-1], reached)


def type_of(expression: Expression, level: Level) -> Type:
    """The type of an expression that was read at this level."""
    if not isinstance(expression, Column):
        return expression.of.type
    for _ in range(expression.up):
        assert level.above is not None
        level = level.above
    return _column_type(expression.name, reach(expression.path, level))


def reach(path: Path, level: Level) -> Level:
    """The level of the rows at the end of the path of joins, whose last may be a `many`."""
    for name in path:
        join = level.joins[name]
        if join is None:
            raise Elsewhere
        level = level.below(join)
    return level


def _above(path: Path, level: Level) -> tuple[Column, Type]:
    up = 0
    while path[up] == PARENT and path[up + 1 :]:
        up += 1
        if level.above is None:
            raise Wrong(f"`{'.'.join(path)}` looks above the root", "remove a `parent`: the root has no row above it")
        level = level.above
    if path[up + 1 :]:
        cure = "join that row at this level as well, and name its column"
        raise Wrong(f"`{'.'.join(path)}`: of a row above only its own columns can be named", cure)
    return Column(name=path[up], up=up), _column_type(path[up], level)


def _step(name: str, path: Path, level: Level) -> Level:
    dotted = ".".join(path)
    if name not in level.joins:
        what = f"`{name}` in `{dotted}` is no join here"
        if level.columns and name in level.columns:
            what = f"`{name}` in `{dotted}` is a column, not a join"
        raise Wrong(what, suggest(name, level.joins))
    join = level.joins[name]
    if join is None:
        raise Elsewhere
    if join.many:
        what = f"`{name}` in `{dotted}` is a `many`: it has no single value"
        raise Wrong(what, f"put it into an aggregate (`max({dotted})`), show it by `embed`, or make it `one`")
    return level.below(join)


def _column_type(name: str, level: Level) -> Type:
    columns = level.columns
    if columns is None:
        raise Elsewhere
    if name not in columns:
        raise Wrong(f"entity `{level.entity}` has no column `{name}`", suggest(name, columns))
    return "json" if columns[name].array else columns[name].name


def _shown_type(name: str, level: Level) -> Type:
    """The type of the one value that a join is."""
    join = level.joins[name]
    if join is None:
        raise Elsewhere
    if join.many and not join.aggregated:
        what = f"`{name}` is a `many` here, and its rows are no value"
        raise Wrong(what, f"put it into an aggregate (`count({name})`), or show it by `embed`")
    if not isinstance(join.selection, Bare):
        what = f"`{name}` is a join here, and a join as a whole is no value"
        cure = f"name a column of it (`{name}.<column>`), show it by `embed`, or rename the join"
        raise Wrong(what, cure)
    return type_of(join.selection.of, level.below(join))
