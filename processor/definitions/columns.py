"""Simple expressions: `title`, a column of the level's own row; `repo.name`, `repo.owner_user.email`, a column reached
through `one` joins of the level. Names are case-sensitive; one that is no identifier stands in double quotes,
as in SQL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from processor.definitions.errors import Place, Problems, suggest
from processor.model.entity import ColumnType, Entity
from processor.model.product import Column, Join

_IDENTIFIER = r"[^\W\d][\w$]*"
_PART = re.compile(rf'({_IDENTIFIER})|"((?:[^"]|"")+)"')
_PATH = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What the expressions of one level can name: its entity's columns and its joins (None: one with problems)."""

    entities: Mapping[str, Entity | None]
    entity: str
    joins: Mapping[str, Join | None] = field(default_factory=dict)

    @property
    def columns(self) -> Mapping[str, ColumnType] | None:
        """The declared columns; None when the entity is unknown or has problems of its own."""
        entity = self.entities.get(self.entity)
        return entity.columns if entity else None


def parse_path(text: str) -> tuple[str, ...] | None:
    """The parts of a dotted path; None when the text is any other expression."""
    if not _PATH.fullmatch(text):
        return None
    return tuple(plain or quoted.replace('""', '"') for plain, quoted in _PART.findall(text))


def write_path(column: Column) -> str:
    """The expression that names the column; the inverse of `parse_path`."""
    parts = (*column.path, column.name)
    return ".".join(p if re.fullmatch(_IDENTIFIER, p) else '"' + p.replace('"', '""') + '"' for p in parts)


def own_column(text: str, place: Place, level: Level, problems: Problems) -> Column:
    """A column of the level's own row by its plain name, as lists of columns and `on` have it."""
    columns = level.columns
    if columns is not None and text not in columns:
        path = parse_path(text)
        if path and path[0] in level.joins:
            problems.add(
                place, f"`{text}` is no column of `{level.entity}`", f"name it: `fields: {{{path[-1]}: {text}}}`"
            )
        else:
            problems.add(place, f"entity `{level.entity}` has no column `{text}`", suggest(text, columns))
    return Column(name=text)


def read_column(text: str, place: Place, level: Level, problems: Problems) -> Column:
    """The column that an expression names; a bare name is a join of the level, else a column of the row itself."""
    path = parse_path(text)
    if path is None:
        what = f"the expression `{text}` is not supported by this version"
        problems.add(place, what, "name a column (`title`) or a column of a `one` join (`repo.name`)")
        return Column(name=text)
    if len(path) == 1 and path[0] in level.joins:
        what = f"`{path[0]}` is a join here, and a join as a whole is no value"
        problems.add(place, what, f"name a column of it (`{path[0]}.<column>`), show it by `embed`, or rename the join")
    elif len(path) == 1:
        own_column(path[0], place, level, problems)
    else:
        _check_path(path, place, level, problems)
    return Column(name=path[-1], path=path[:-1])


def _check_path(path: tuple[str, ...], place: Place, level: Level, problems: Problems) -> None:
    for name in path[:-1]:
        if name not in level.joins:
            what, cure = f"`{name}` in `{'.'.join(path)}` is no join here", suggest(name, level.joins)
            if name == "parent":
                what, cure = "`parent` is not supported by this version", "remove it"
            elif level.columns and name in level.columns:
                what = f"`{name}` in `{'.'.join(path)}` is a column, not a join"
            problems.add(place, what, cure)
            return
        join = level.joins[name]
        if join is None:
            return
        if join.many:
            what = f"`{name}` in `{'.'.join(path)}` is a `many`: it has no single value"
            problems.add(place, what, "show it by `embed`, or make it `one`")
            return
        level = Level(entities=level.entities, entity=join.entity, joins={below.name: below for below in join.joins})
    own_column(path[-1], place, level, problems)


def check_ordered(column: Column, place: Place, level: Level, problems: Problems) -> None:
    """Note a column that has no order: json and arrays."""
    for name in column.path:
        join = level.joins.get(name)
        if join is None:
            return
        level = Level(entities=level.entities, entity=join.entity, joins={below.name: below for below in join.joins})
    declared = (level.columns or {}).get(column.name)
    if declared is not None and declared.kind is None:
        problems.add(place, f"`{write_path(column)}` is {declared}, which has no order", "order by a scalar column")
