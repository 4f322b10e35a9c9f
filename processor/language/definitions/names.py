"""Resolves a dotted name at a level of a product.

A name means a column of the row itself (`title`), a column of a row that `one` joins reach (`repo.owner_user.email`), a column of
a row above (`parent.cash`), or the value of a join. Names are case-sensitive. As in SQL, an author writes a name that is not an
identifier in double quotes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from processor.language.definitions.problems import AlreadyReported, Location, Problems, WrongDefinition, suggest
from processor.language.product.expressions.expression import Column, Expression, Path, Shown, Type
from processor.language.product.product import BareValue, Join, lifted
from processor.values.entity import ColumnType, Compare, ComputedColumn, Entity

_IDENTIFIER = r"[^\W\d][\w$]*"
_PART = re.compile(rf'({_IDENTIFIER})|"((?:[^"]|"")+)"')
_PATH = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_CONSTANT = re.compile(r"'(?:[^']|'')*'|-?\d{1,18}")
PARENT = "parent"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameScope:
    """The names that expressions of one level can use: the columns of its entity, its joins, and the columns of the levels
    `above`. A join with problems has None. `many`: the level has many rows, so aggregates can read them. `rows`: at the root,
    the join that finds the rows of a group, which aggregates read that name no `many`. `level`: of a recursive join, else 0.
    `reads`: collects the computed columns that the product reads, each with its entity. `clock`: the step of the product's clock,
    0 without one. `tzdata`: the release of its time zones; empty: the installed one."""

    entities: Mapping[str, Entity | None]
    entity: str
    joins: Mapping[str, Join | None] = field(default_factory=dict)
    above: "NameScope | None" = None
    many: bool = False
    rows: str = ""
    level: int = 0
    reads: set[tuple[str, str]] = field(default_factory=set)
    clock: int = 0
    tzdata: str = ""

    @property
    def columns(self) -> Mapping[str, ColumnType] | None:
        """The declared columns. None: the entity is unknown, or has problems of its own."""
        entity = self.entities.get(self.entity)
        return entity.columns if entity else None

    @property
    def computed(self) -> Mapping[str, ComputedColumn]:
        """The columns that expressions make of the declared ones."""
        entity = self.entities.get(self.entity)
        return entity.computed if entity else {}

    @property
    def names(self) -> tuple[str, ...]:
        """The declared and the computed columns."""
        return (*(self.columns or ()), *self.computed)

    def type_of(self, column: str) -> ColumnType | None:
        """The type of a column; None for an unknown one."""
        computed = self.computed.get(column)
        return computed.type if computed else (self.columns or {}).get(column)

    def physical(self, path: Path) -> Path:
        """The path by the joins of each level, for a name of this level. A member of the level may hang below another join."""
        at = path[:1]
        if path and path[0] not in self.joins:
            at = next(
                (way for way, join in lifted(tuple(filter(None, self.joins.values()))) if join.name == path[0]), at
            )
        scope = self
        for name in at:
            join = scope.joins.get(name)
            if join is None:
                return (*at, *path[1:])
            scope = scope.below(join)
        return (*at, *(scope.physical(path[1:]) if path[2:] else path[1:]))

    def below(self, join: Join) -> "NameScope":
        """The scope of a join's rows."""
        joins: Mapping[str, Join | None] = {inner.name: inner for inner in join.joins}
        return NameScope(
            entities=self.entities,
            entity=join.entity,
            joins=joins,
            above=self,
            many=join.many,
            reads=self.reads,
            clock=self.clock,
            tzdata=self.tzdata,
        )


class UnknownColumn(WrongDefinition):
    """An expression names a column that the entity does not have. `column`: its name."""

    def __init__(self, column: str, scope: NameScope, columns: Mapping[str, ColumnType]) -> None:
        known = (*columns, *scope.computed)
        super().__init__(f"entity `{scope.entity}` has no column `{column}`", suggest(column, known))
        self.column = column


def aggregated_column(path: Path, scope: NameScope) -> str:
    """The name to aggregate, for an author who named the rows of a `many` itself: the column that it shows, if it shows one."""
    join = scope.joins.get(path[-1])
    shown = join.selection.expression if join and isinstance(join.selection, BareValue) else None
    return ".".join((*path, shown.name if isinstance(shown, Column) else "<column>"))


def find_many(column: str, scope: NameScope) -> str | None:
    """The dotted name of a column of a joined `many`, for an author who left the name of the join out."""
    for name, join in scope.joins.items():
        if join is not None and join.many and column in (scope.below(join).columns or ()):
            return f"{name}.{column}"
    return None


def parse_path(text: str) -> Path | None:
    """The parts of a dotted path. None: the text is another kind of expression."""
    if not _PATH.fullmatch(text):
        return None
    return tuple(plain or quoted.replace('""', '"') for plain, quoted in _PART.findall(text))


def write_path(column: Column) -> str:
    """The dotted path of the column, as text. The inverse of `parse_path`."""
    parts = (*[PARENT] * column.up, *column.path, column.name)
    return ".".join(p if re.fullmatch(_IDENTIFIER, p) else '"' + p.replace('"', '""') + '"' for p in parts)


def of_each_row(text: str, scope: NameScope) -> str:
    """A constant, as an expression over a row, whose key is never null. Any other text as it is."""
    entity = scope.entities.get(scope.entity)
    if entity is None or text in scope.names or not _CONSTANT.fullmatch(text.strip()):
        return text
    return f"case when {write_path(Column(name=entity.key[0]))} is not null then {text} end"


def read_own_column(text: str, location: Location, scope: NameScope, problems: Problems) -> Column:
    """The column of the level's own row with this plain name, from a list of `fields`. Adds a problem for an unknown name."""
    columns = scope.columns
    if columns is not None and text not in scope.names:
        path = parse_path(text)
        if path and (path[0] in scope.joins or path[0] == PARENT):
            what = f"`{text}` is not a column of `{scope.entity}` itself"
            problems.add(location, what, f"give it a name: `fields: {{{path[-1]}: {text}}}`")
        else:
            problems.add(location, f"entity `{scope.entity}` has no column `{text}`", suggest(text, scope.names))
    return Column(name=text)


def resolve(path: Path, scope: NameScope) -> tuple[Column | Shown, Type]:
    """The meaning and the type of a dotted name in this scope. A bare name is a join of the level, else a column of the row.

    Raises: WrongDefinition for a name that is unknown or has no single value; AlreadyReported where a join or an entity on the
    path has problems of its own.
    """
    if path[0] == PARENT and path[1:] and PARENT not in scope.joins:
        return _resolve_parent(path, scope)
    if len(path) == 1 and path[0] in scope.joins:
        return Shown(path=path, type=(type_ := _shown_type(path[0], scope))), type_
    if len(path) == 1 and (at := scope.physical(path)) != path:
        return Shown(path=at, type=(type_ := _shown_type(at[-1], scope_at_path(at[:-1], scope))), flat=True), type_
    path, reached = scope.physical(path), scope
    for name in path[:-1]:
        reached = _follow_join(name, path, reached)
    if path[1:] and path[-1] not in reached.names and path[-1] in reached.joins:
        return Shown(path=path, type=(type_ := _shown_type(path[-1], reached))), type_
    return Column(name=path[-1], path=path[:-1]), _column_type(path[-1], reached)


def expression_type(expression: Expression, scope: NameScope) -> Type:
    """The type of an expression that was read in this scope."""
    if not isinstance(expression, Column):
        return expression.node.type
    for _ in range(expression.up):
        assert scope.above is not None
        scope = scope.above
    return _column_type(expression.name, scope_at_path(expression.path, scope))


def compare_of_expression(expression: Expression, scope: NameScope) -> Compare:
    """How the text of an expression of this scope compares."""
    return compare_of(expression, scope) if isinstance(expression, Column) else expression.compare


def compare_of(node: Column | Shown, scope: NameScope) -> Compare:
    """How the text of a column or of a join's value compares, in the scope that its path begins at."""
    if isinstance(node, Column):
        for _ in range(node.up):
            assert scope.above is not None
            scope = scope.above
        column = scope_at_path(node.path, scope).type_of(node.name)
        return column.compare if column else ()
    above = scope_at_path(node.path[:-1], scope)
    join = above.joins[node.path[-1]]
    if join is None or not isinstance(join.selection, BareValue):
        return ()
    shown = join.selection.expression
    return compare_of_expression(shown, above.below(join))


def scope_at_path(path: Path, scope: NameScope) -> NameScope:
    """The scope of the rows at the end of a path of joins. The last join may be a `many`. Raises: AlreadyReported."""
    for name in path:
        join = scope.joins[name]
        if join is None:
            raise AlreadyReported
        scope = scope.below(join)
    return scope


def _resolve_parent(path: Path, scope: NameScope) -> tuple[Column, Type]:
    up = 0
    while path[up] == PARENT and path[up + 1 :]:
        up += 1
        if scope.above is None:
            cure = "remove one `parent`: the root has no row above it"
            raise WrongDefinition(f"`{'.'.join(path)}` names a row above the root", cure)
        scope = scope.above
    if path[up + 1 :]:
        what = f"`{'.'.join(path)}` names more than a column of the row above"
        raise WrongDefinition(what, "join that row at this level as well, and name its column")
    return Column(name=path[up], up=up), _column_type(path[up], scope)


def _follow_join(name: str, path: Path, scope: NameScope) -> NameScope:
    dotted = ".".join(path)
    if name not in scope.joins:
        what = f"`{name}` in `{dotted}` is not a join of this level"
        if name in scope.names:
            what = f"`{name}` in `{dotted}` is a column, not a join"
            if (declared := scope.type_of(name)) is not None and declared.name == "json" and not declared.array:
                raise WrongDefinition(what, f"write `{name} ->> '{path[-1]}'` for its text, `->` for json")
        raise WrongDefinition(what, suggest(name, scope.joins))
    join = scope.joins[name]
    if join is None:
        raise AlreadyReported
    if join.many:
        what = f"`{name}` in `{dotted}` is a `many`, which has no single value"
        raise WrongDefinition(
            what, f"put it into an aggregate (`max({dotted})`), show it with `embed`, or make it a `one`"
        )
    return scope.below(join)


def _column_type(name: str, scope: NameScope) -> Type:
    columns = scope.columns
    if columns is None:
        raise AlreadyReported
    declared = scope.type_of(name)
    if declared is None:
        raise UnknownColumn(name, scope, columns)
    return "json" if declared.array else declared.name


def _shown_type(name: str, scope: NameScope) -> Type:
    """The type of a join's single value."""
    join = scope.joins[name]
    if join is None:
        raise AlreadyReported
    if join.many and not join.aggregated:
        what = f"`{name}` is a `many`, which has no single value"
        raise WrongDefinition(what, f"put it into an aggregate (`count({name})`), or show it with `embed`")
    if not isinstance(join.selection, BareValue):
        what = f"`{name}` is a join, which has no single value"
        cure = f"name a column of it (`{name}.<column>`), show it with `embed`, or rename the join"
        raise WrongDefinition(what, cure)
    return expression_type(join.selection.expression, scope.below(join))
