"""The tables of a query whose rows are the documents, each with its place: the table above it, by the equalities that join them.

A table is a `Source`: the name of an entity, or a subquery or LATERAL that sql_rewrites.py has not merged. `Scope` has the tables
that a part of the query can name. `TablesReader` puts each table below the one that its ON or WHERE names. sql_groups.py finds
the root, and sql_views.py writes the tree.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from processor.language.definitions.expressions import AGGREGATE_ALIASES, AGGREGATES
from processor.language.definitions.problems import AlreadyReported, WrongDefinition, suggest
from processor.language.definitions.sql_parser import filled, text_of
from processor.values.entity import Entity

Path = tuple[str, ...]
OF_GROUPS: Final = "of groups"
"""Marks a join that the query has around its GROUP BY: it joins a row to each group."""
NO_UNION: Final = "write a product for each part of it, or a `union` of joins below one root"
RECURSIVE: Final = "recursive"
"""Marks a table of which a join reads the rows of all levels of a tree."""
_WORDS: Final = {
    "locks": "FOR UPDATE", "windows": "WINDOW", "with_": "WITH", "sample": "TABLESAMPLE", "only": "ONLY", "into": "INTO",
    "ordinality": "WITH ORDINALITY", "pivots": "PIVOT",
}  # fmt: skip
"""Clauses in SQL's words, where sqlglot has others."""


@dataclass(slots=True, kw_only=True, eq=False)
class Source:
    """A table of the query, as a join.

    name: of the join. alias: of the table in its part of the query. inner: the rows above need one. on: the parent's source and
    column of each own column. conditions: on its rows. first: the query takes one row, the first of `order`. below: the tables
    that are joins of its level. shown: of a subquery, its terms by their names. grouped: these are aggregates. partition: the
    columns that it is grouped by. having: conditions on the aggregates. number: the name of its `row_number()`. inside: the scope
    of its own expressions. value: of a subquery in an `expression`. parent: the source whose rows it joins. lists: of a subquery,
    the lists below its main table, each below the one before. owner: of such a list, the subquery. of_groups: the query joins it
    to each of its groups. recursive: its rows are those of all levels of a tree.
    in_list: of a grouped subquery, it joins groups to the rows of a list. host: of a subquery in an
    aggregate, the list at whose level its join is."""

    name: str
    alias: str
    entity: Entity
    line: int
    inner: bool = True
    on: dict[str, tuple["Source", str]] = field(default_factory=dict)
    conditions: list[Any] = field(default_factory=list)
    order: list[Any] = field(default_factory=list)
    first: bool = False
    below: list["Source"] = field(default_factory=list)
    shown: dict[str, Any] | None = None
    grouped: bool = False
    partition: set[str] = field(default_factory=set)
    having: list[Any] = field(default_factory=list)
    number: str = ""
    inside: "Scope | None" = None
    value: str | None = None
    expression: bool = False
    parent: "Source | None" = None
    lists: list["Source"] = field(default_factory=list)
    owner: "Source | None" = None
    of_groups: bool = False
    recursive: bool = False
    in_list: bool = False
    host: "Source | None" = None

    @property
    def many(self) -> bool:
        return self.recursive or (not self.first and not set(self.entity.key) <= set(self.on))

    @property
    def counted(self) -> "Source":
        """The join whose rows are those that a subquery aggregates."""
        return self.lists[-1] if self.lists else self

    @property
    def present(self) -> "Source":
        """The join that has a row where the subquery has one."""
        return self.counted if all(one.inner for one in self.lists) else self


@dataclass(slots=True, kw_only=True, eq=False)
class Scope:
    """The tables that a part of the query can name, with their paths in the expressions of its level. `above`: of the query
    around a subquery. `rows`: the list that its aggregates read."""

    sources: dict[str, tuple[Source, Path]] = field(default_factory=dict)
    above: "Scope | None" = None
    rows: Source | None = None


def is_aggregate(node: Any) -> bool:
    """Whether a node is the call of an aggregate, without its filter."""
    return node.key == "anonymous" and str(node.this).lower() in {*AGGREGATES, *AGGREGATE_ALIASES}


class TablesReader:
    """Reads the tables of one query, and what it says about each."""

    def __init__(self, tree: Any, exp: Any, entities: Mapping[str, Entity | None], line_of: Any) -> None:
        self._exp, self._entities, self._line_of = exp, entities, line_of
        self._names: set[str] = set()
        self._joins: list[Source] = []
        self._scope = Scope()
        self._tree = tree

    # Tables of FROM

    def _tables(self, select: Any) -> Iterator[tuple[Source, list[Any], bool]]:
        """The tables of a FROM with the conditions of their ON; those of brackets, too. The last: whether ON is a left join's."""
        origin = select.args.get("from_")
        if origin is None:
            raise self._error(select, "the query has no FROM", "write `from entity`")
        yield from self._flattened(origin.this, [], inner=True)
        before = origin.this
        for join in select.args.get("joins") or ():
            kind = " ".join(filter(None, (join.args.get("method"), join.side, join.kind)))
            if kind not in ("", "INNER", "LEFT", "LEFT OUTER", "CROSS"):
                what = f"a product given as SQL cannot have {kind.lower()} joins"
                raise self._error(join, what, "write `left join` or `inner join`")
            on = self._on(join, before)
            for source, conditions, inner in self._flattened(join.this, on, inner=join.side != "LEFT"):
                source.of_groups = bool(join.meta.get(OF_GROUPS))
                yield source, conditions, inner

    def _on(self, join: Any, before: Any) -> list[Any]:
        """The conditions of a join. `before`: the first table of its FROM or of its bracket, which USING names."""
        exp = self._exp
        on = list(conjuncts(join.args["on"], exp)) if join.args.get("on") else []
        for column in join.args.get("using") or ():
            left = exp.column(column.this, table=before.alias_or_name)
            on.append(exp.EQ(this=left, expression=exp.column(column.this, table=join.this.alias_or_name)))
        return on

    def _flattened(self, node: Any, on: list[Any], *, inner: bool) -> Iterator[tuple[Source, list[Any], bool]]:
        exp = self._exp
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery) and not node.alias:
            node = node.this
        if isinstance(node, exp.Paren):
            node = node.this
        joins = node.args.get("joins") or ()
        if joins and not inner:
            raise self._error(node, "a bracket of joins behind `left join`", "write the joins one after the other")
        source = self._source(node)
        source.inner = inner
        yield source, on, inner
        for join in joins:
            yield from self._flattened(join.this, self._on(join, node), inner=join.side != "LEFT")

    def _source(self, node: Any) -> Source:
        """The source of a table, a subquery or a LATERAL."""
        exp, alias = self._exp, node.alias_or_name
        if isinstance(node, exp.Lateral):
            node = node.this
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            return self._derived(node.this, alias, node)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.SetOperation):
            raise self._error(node, f"`{alias}` is a {node.this.key.upper()}", NO_UNION)
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            what = f"`{text_of(node)}` is no table"
            raise self._error(node, what, "group by a part of the time: `group by date_trunc('hour', at)`")
        if extra := sorted(filled(node) & {"sample", "only", "ordinality", "pivots"}):
            raise self._error(node, f"`{text_of(node)}` has {_WORDS[extra[0]]}", "join the table alone")
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self._error(node, f"`{text_of(node)}` is no table, and no subquery of one", "write the entity's name")
        entity = self._entities.get(node.name)
        if node.name not in self._entities:
            raise self._error(node, f"there is no entity `{node.name}`", suggest(node.name, self._entities))
        if entity is None:
            raise AlreadyReported
        found = Source(name=alias, alias=alias, entity=entity, line=self._line_of(node))
        found.recursive = bool(node.meta.get(RECURSIVE))
        return found

    def _derived(self, select: Any, alias: str, node: Any) -> Source:
        """The source of a subquery: its main table, with the others below it."""
        exp = self._exp
        if not isinstance(select, exp.Select):
            raise self._error(node, f"`{alias}` is no plain select", "join the tables of UNION one by one")
        self._refuse(select, ("limit", "distinct", "with_"))
        for window in select.find_all(exp.Window):
            if str(window.this.this).lower() != "row_number" or not isinstance(window.parent, exp.Alias):
                raise self._window(window)
        tables = list(self._tables(select))
        wheres = where_of(select, exp)
        main = self._main_table(select, tables, wheres)
        if main.shown is not None:
            raise self._error(node, f"`{alias}` is a subquery of a subquery", "write one of them")
        self._make_main(main, tables)
        inside = Scope(sources={main.alias: (main, ())}, above=self._scope, rows=main)
        pool = [*wheres, *(condition for one, on, _ in tables if one is main for condition in on)]
        main.parent = None
        pool = self._placed(main, [one for one in tables if one[0] is not main], pool, inside)
        main.name = main.alias = alias
        main.line, main.inside, main.shown = self._line_of(node), inside, {}
        for condition in pool:
            target = next((one for one in reversed(main.lists) if self._mentions(condition, one, inside)), main)
            if target is not main and not target.inner:
                self._check_strict(condition, target, inside)
                self._make_inner(target)
            target.conditions.append(condition)
        self._read_terms(select, main)
        self._read_choice(select, main)
        if select.args.get("having"):
            main.having = list(conjuncts(select.args["having"].this, exp))
        if main.lists and (not main.grouped or main.first):
            last = main.lists[-1]
            what = f"the subquery joins many rows of `{last.alias}` to each row"
            raise self._error(
                None, what, "aggregate in the subquery, or join that table in the query itself", last.line
            )
        return main

    def _main_table(self, select: Any, tables: Sequence[Any], wheres: Sequence[Any]) -> Source:
        """The table of a subquery that the query around it joins: by a condition of WHERE, or by the columns of GROUP BY."""
        exp = self._exp
        own: dict[str, Source] = {one.alias: one for one, _, _ in tables}
        for condition in (*wheres, *(c for _, on, _ in tables for c in on)):
            for mine, other in self._both_ways(condition):
                if mine.table in own and other.table and other.table not in own:
                    return own[mine.table]
        scope = Scope(sources={one.alias: (one, ()) for one in own.values()})
        for one in select.args["group"].expressions if select.args.get("group") else ():
            if isinstance(one, exp.Column) and (found := self._maybe(one, scope)) and found[0].shown is None:
                return found[0]
        first: Source = tables[0][0]
        return first

    def _make_main(self, main: Source, tables: list[Any]) -> None:
        """A subquery joined by columns of a table that it joins by a left join: only rows with a row of that table count."""
        exp, wanted = self._exp, {main.alias}
        for place in range(len(tables) - 1, -1, -1):
            one, on, inner = tables[place]
            if one.alias in wanted and not inner:
                tables[place] = (one, on, True)
                wanted |= {c.table for condition in on for c in condition.find_all(exp.Column)}

    def _check_strict(self, condition: Any, target: Source, scope: Scope) -> None:
        """Refuses a condition that a row without a row of the list may fulfil."""
        around, self._scope = self._scope, scope
        try:
            strict = self._strict(condition, target)
        finally:
            self._scope = around
        if not strict:
            what = f"`{text_of(condition)}` in WHERE chooses rows without a row of `{target.alias}`"
            raise self._error(condition, what, "write it in the ON of that table")

    def _mentions(self, condition: Any, source: Source, scope: Scope) -> bool:
        """Whether a condition reads a row of a source, or of a table below it."""
        found = (self._maybe(c, scope) for c in condition.find_all(self._exp.Column))
        return any(one is not None and (one[0] is source or self._is_below(one[0], source)) for one in found)

    def _read_terms(self, select: Any, source: Source) -> None:
        exp, group = self._exp, select.args.get("group")
        assert source.shown is not None
        for term in select.expressions:
            node = term.unalias()
            if isinstance(node, exp.Window):
                if str(node.this.this).lower() != "row_number" or set(filled(node)) - {
                    "this",
                    "partition_by",
                    "order",
                    "over",
                }:
                    raise self._window(node)
                source.number = term.alias
                source.partition = {c.name for c in node.args.get("partition_by") or ()}
                source.order = list(node.args["order"].expressions) if node.args.get("order") else []
            elif isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                for column in source.entity.columns:
                    source.shown[column] = exp.column(column)
            else:
                source.shown[term.alias or node.name] = node
        calls = [one for node in source.shown.values() for one in node.find_all(exp.Anonymous) if is_aggregate(one)]
        if group or calls:
            source.grouped = True
            terms = {one.alias: one.unalias() for one in select.expressions if one.alias}
            for one in group.expressions if group else ():
                place = str(one.this) if isinstance(one, exp.Literal) else ""
                if place.isdecimal() and 0 < int(place) <= len(select.expressions):
                    one = select.expressions[int(place) - 1].unalias()
                elif isinstance(one, exp.Column) and not one.table and one.name not in source.entity.columns:
                    one = terms.get(one.name, one)
                source.partition.add(self._own(one, source))

    def _read_choice(self, select: Any, source: Source) -> None:
        """The one row that a subquery takes: by DISTINCT ON or LIMIT 1."""
        exp, distinct, limit = self._exp, select.args.get("distinct"), select.args.get("limit")
        order = list(select.args["order"].expressions) if select.args.get("order") else []
        if distinct and not distinct.args.get("on"):
            raise self._error(select, "DISTINCT in a subquery", "group by the columns, or use `count(distinct ...)`")
        if distinct:
            columns = [one.name for one in distinct.args["on"].expressions]
            source.partition, source.first = set(columns), True
            source.order = [
                one for one in order if one.this.name not in columns or not isinstance(one.this, exp.Column)
            ]
        elif limit:
            if str(limit.expression) != "1" or source.grouped:
                raise self._error(
                    select, f"LIMIT {limit.expression} in a subquery", "write a tree, where a `many` may have `limit`"
                )
            source.first, source.order = True, order

    def _own(self, node: Any, source: Source) -> str:
        """The column of the main table that a term of a subquery is."""
        if not isinstance(node, self._exp.Column) or node.name not in source.entity.columns:
            raise self._error(
                node, f"`{text_of(node)}` is no column of `{source.entity.name}`", "group by columns of one table"
            )
        return str(node.name)

    # The place of each table

    def _placed(self, top: Source, tables: list[Any], wheres: list[Any], scope: Scope) -> list[Any]:
        """Puts each table below one that has a place. Returns the conditions of WHERE that no table took."""
        pool = list(wheres)
        for _, on, inner in tables:
            pool += on if inner else []
        waiting = [one for one in tables if one[0] is not top]
        for source, _, _ in waiting:
            if source.alias in scope.sources or source.alias == top.alias:
                raise self._error(
                    None, f"two tables are called `{source.alias}`", "give one of them another name", source.line
                )
        known = {one.alias: one for one, _, _ in waiting} | {top.alias: top}
        while waiting:
            for entry in waiting:
                source, on, inner = entry
                mine = pool if inner else on
                pairs = [(c, pair) for c in mine if (pair := self._equality(c, source, known, scope))]
                correlated = source.inside is not None and self._correlate(source, scope)
                if pairs or correlated:
                    break
            else:
                source = waiting[0][0]
                what = f"nothing joins `{source.alias}` to the other tables by an equality of two columns"
                raise self._error(None, what, f"write `on {source.alias}.column = table.column`", source.line)
            waiting.remove(entry)
            self._place(source, pairs, mine, inner, top, scope)
        return pool

    def _place(self, source: Source, pairs: list[Any], mine: list[Any], inner: bool, top: Source, scope: Scope) -> None:
        exp = self._exp
        for condition, (column, parent, other) in pairs:
            if source.on and next(iter(source.on.values()))[0] is not parent:
                continue
            if column not in source.on:
                source.on[column] = (parent, other)
                mine.remove(condition)
        source.parent = next(iter(source.on.values()))[0]
        source.inner = inner
        source.name = self._unique(source.alias, source.parent.entity.columns)
        if source.of_groups and self._many_on_path(source.parent) is not None:
            what = f"`{source.alias}` joins a row to each row of `{source.parent.alias}`, not to each group"
            raise self._error(None, what, "join it by columns of the groups", source.line)
        chained = [one for one in mine if self._is_alone(one, source) or (not inner and self._is_constant(one))]
        for condition in chained:
            if self._is_number(condition, source):
                source.first = True
                mine.remove(condition)
            elif inner and (not source.many or self._is_absent(condition, source)):
                continue
            elif (own := self._over_rows(condition, source)) is not None:
                source.conditions.append(own)
                mine.remove(condition)
        source.inside = source.inside or Scope(sources={source.alias: (source, ())}, above=scope)
        for condition in [] if inner else [one for one in mine if not (isinstance(one, exp.Boolean) and one.this)]:
            if source.shown is not None or not self._is_of(condition, source, scope):
                what = f"`{text_of(condition)}` in the ON of `{source.alias}` reads a table that is not above it"
                raise self._error(condition, what, "write it as a tree, where `parent.column` names the row above")
            source.conditions.append(condition)
        if source.partition and source.partition != set(source.on) and (source.grouped or source.first):
            columns = ", ".join(sorted(source.partition))
            what = f"`{source.alias}` is grouped by {columns}, and joined by {', '.join(sorted(source.on))}"
            raise self._error(None, what, "join it by the columns that it is grouped by", source.line)
        if inner and (source.partition or not source.grouped):
            self._make_inner(source)
        if source.grouped and scope is self._scope and self._many_on_path(source.parent) is not None:
            self._place_in_list(source)
            return
        lists = source.many or source.grouped
        if scope is self._scope and (lists or source.parent is top):
            scope.sources[source.alias] = (source, (source.name,))
            self._joins += [source, *source.lists]
            return
        if lists:
            self._place_below(source, scope)
            return
        _, path = scope.sources[source.parent.alias]
        scope.sources[source.alias] = (source, (*path, source.name))
        source.parent.below.append(source)
        above: Source | None = source.parent
        relative: Path = (source.name,)
        while above and above is not top and above.inside is not None:
            above.inside.sources[source.alias] = (source, relative)
            relative = (above.name, *relative)
            above = above.parent

    def _over_rows(self, condition: Any, source: Source) -> Any:
        """The condition over the columns of a source's rows. None for a subquery that groups or chooses rows before."""
        exp, shown = self._exp, source.shown
        if shown is None:
            return condition
        chosen = source.grouped or source.first or source.number
        if chosen or any(column.name not in shown for column in condition.find_all(exp.Column)):
            return None
        return condition.transform(
            lambda one: exp.Paren(this=shown[one.name].copy()) if isinstance(one, exp.Column) else one
        )

    def _place_in_list(self, source: Source) -> None:
        """Puts a grouped subquery below each row of a list. Only aggregates over the list read it."""
        assert source.parent is not None
        if source.lists or source.having or not source.partition:
            what = f"`{source.alias}` joins groups to each row of `{source.parent.alias}`"
            raise self._error(
                None, what, f"group by the key of `{source.parent.alias}`, and group that query", source.line
            )
        source.in_list = True
        self._scope.sources[source.alias] = (source, (*self._scope.sources[source.parent.alias][1], source.name))
        if source.inner:
            source.parent.below.append(source)

    def _place_below(self, source: Source, scope: Scope) -> None:
        """Puts a list below the main table of a subquery, or below its last list. All lists are joins of the root's level."""
        main = scope.rows
        assert main is not None
        if source.shown is not None or not (
            source.parent is main.counted or self._is_below(source.parent, main.counted)
        ):
            what = f"the subquery joins many rows of `{source.alias}` to each row"
            raise self._error(None, what, "join that table in the query itself", source.line)
        source.owner, source.expression = main, True
        main.lists.append(source)
        scope.sources[source.alias] = (source, (source.name,))

    def _is_of(self, condition: Any, source: Source, scope: Scope) -> bool:
        """Whether a condition is over a source, and over tables above it."""
        if condition.find(self._exp.Select):
            return False
        assert source.inside is not None
        for column in condition.find_all(self._exp.Column):
            if self._maybe(column, source.inside) is None:
                found = self._maybe(column, scope)
                if found is None or not self._above_path(source, found[0]):
                    return False
        return True

    def _above_path(self, source: Source, above: Source) -> Path:
        """The path from the rows of a source to a row above them; empty where there is none."""
        at, path = source.parent, ["parent"]
        while at is not None and at is not above:
            at = at.parent
            path.append("parent")
        return () if at is None else tuple(path)

    def _correlate(self, source: Source, scope: Scope) -> bool:
        """Takes the equalities of a subquery's WHERE with a table of the query around it."""
        assert source.inside is not None
        taken = False
        for condition in list(source.conditions):
            sides = self._sides(condition)
            if sides is None:
                continue
            inner = [c for c in sides if self._maybe(c, source.inside) == (source, c.name)]
            outer = [c for c in sides if c.table not in source.inside.sources and c.table in scope.sources]
            if len(inner) == 1 and len(outer) == 1:
                parent, name = self._resolved(outer[0], scope)
                if not (name := self._plain_column(parent, name)):
                    continue
                if source.on and next(iter(source.on.values()))[0] is not parent:
                    continue
                source.on[inner[0].name] = (parent, name)
                source.conditions.remove(condition)
                taken = True
        return taken

    def _sides(self, condition: Any) -> tuple[Any, Any] | None:
        exp = self._exp
        if not isinstance(condition, exp.EQ):
            return None
        left, right = condition.left.unnest(), condition.right.unnest()
        return (left, right) if isinstance(left, exp.Column) and isinstance(right, exp.Column) else None

    def _both_ways(self, condition: Any) -> list[tuple[Any, Any]]:
        """The sides of an equality of two columns, each first."""
        sides = self._sides(condition)
        return [sides, sides[::-1]] if sides else []

    def _equality(self, condition: Any, source: Source, known: Mapping[str, Source], scope: Scope) -> Any:
        """(own column, parent, its column) of a condition that sets a column of the source equal to one of a placed table."""
        both = Scope(sources={name: (one, ()) for name, one in known.items()})
        for mine, other in self._both_ways(condition):
            found, above = self._maybe(mine, both), self._maybe(other, scope)
            if found and above and found[0] is source:
                column, name = self._plain_column(*found), self._plain_column(*above)
                return (column, above[0], name) if column and name else None
        return None

    def _plain_column(self, source: Source, name: str) -> str:
        """The column of its table that a column of a source is; empty where it is an expression."""
        if source.shown is None:
            return name
        shown = source.shown.get(name)
        if not isinstance(shown, self._exp.Column) or shown.name not in source.entity.columns:
            return ""
        return str(shown.name) if shown.table in ("", *self._main_names(source)) else ""

    def _main_names(self, source: Source) -> list[str]:
        assert source.inside is not None
        return [alias for alias, (one, _) in source.inside.sources.items() if one is source]

    def _maybe(self, column: Any, scope: Scope) -> tuple[Source, str] | None:
        try:
            return self._resolved(column, scope)
        except WrongDefinition:
            return None

    def _resolved(self, column: Any, scope: Scope) -> tuple[Source, str]:
        """The table of a column, and the column's name."""
        table, name = column.table, column.name
        if table:
            if table not in scope.sources:
                raise self._error(column, f"there is no table `{table}`", suggest(table, scope.sources))
            source = scope.sources[table][0]
            known = self._columns(source, scope)
            if name not in known:
                raise self._error(column, f"`{table}` has no column `{name}`", suggest(name, known))
            return source, name
        found = [one for one, _ in scope.sources.values() if name in self._columns(one, scope)]
        if len(found) != 1:
            tables = " and ".join(f"`{one.alias}`" for one in found) or "no table"
            raise self._error(column, f"`{name}` is a column of {tables}", "write `table.column`")
        return found[0], name

    def _columns(self, source: Source, scope: Scope) -> Iterable[str]:
        inside = source.inside is not None and source.inside is scope
        return source.entity.columns if source.shown is None or inside else {**source.shown, source.number: None}

    def _is_alone(self, condition: Any, source: Source) -> bool:
        """Whether a condition is over one source alone."""
        exp = self._exp
        if condition.find(exp.Select):
            return False
        columns = list(condition.find_all(exp.Column))
        return bool(columns) and all(
            c.table == source.alias or (not c.table and c.name in source.entity.columns) for c in columns
        )

    def _is_constant(self, condition: Any) -> bool:
        """Whether a condition reads no table, and is more than `true`."""
        exp = self._exp
        return not condition.find(exp.Column, exp.Select) and not (
            isinstance(condition, exp.Boolean) and condition.this
        )

    def _is_number(self, condition: Any, source: Source) -> bool:
        exp = self._exp
        if not source.number or not isinstance(condition, exp.EQ):
            return False
        return condition.left.name == source.number and str(condition.right) == "1"

    def _is_absent(self, condition: Any, source: Source) -> bool:
        """Whether a condition is `key is null`, which no row fulfils: an anti-join."""
        exp = self._exp
        test = condition.unnest()
        if not isinstance(test, exp.Is) or test.args.get("negate") or not isinstance(test.expression, exp.Null):
            return False
        never_null = {*source.entity.key, *source.on}
        return isinstance(test.this, exp.Column) and test.this.name in never_null

    def _deepest(self, lists: list[Source]) -> Source | None:
        """The list whose rows are those of the grouped query; None for several that are no chain."""
        if not lists:
            return None
        last = lists[-1]
        above, at = set(), last.parent
        while at is not None:
            above.add(id(at))
            at = at.parent
        return last if all(id(one) in above for one in lists[:-1]) else None

    def _pushed(self, condition: Any) -> bool:
        """Whether a condition of WHERE went to the list whose rows it chooses. A left join becomes an inner one by it."""
        exp = self._exp
        if condition.find(exp.Select):
            return False
        sources = [self._source_of(c) for c in condition.find_all(exp.Column)]
        lists = list({id(m): m for one in sources if (m := self._many_on_path(one)) is not None}.values())
        found = next((one for one in lists if all(two is one or self._is_below(one, two) for two in lists)), None)
        if found is None:
            return False
        assert found.inside is not None
        if found.shown is not None or any(
            one is not found and one.alias not in found.inside.sources and not self._above_path(found, one)
            for one in sources
        ):
            return False
        if not found.inner and (self._is_absent(condition, found) or not self._strict(condition, found)):
            return False
        found.conditions.append(condition)
        self._make_inner(found)
        return True

    def _make_inner(self, source: Source | None) -> None:
        """An inner join below a left join makes the left join an inner one."""
        while source is not None and source.parent is not None:
            source.inner, source = True, source.parent

    def _check_lists(self, wheres: Sequence[Any], *, grouped: bool) -> None:
        """Refuses a query that has a row for each row of a list."""
        for one in self._joins:
            absent = any(self._is_alone(w, one) and self._is_absent(w, one) for w in wheres)
            if one.many and not one.grouped and not one.expression and not absent and (not grouped or one.of_groups):
                what = f"the query has a row for each row of `{one.alias}`, but a document is one row of `{self._root_alias()}`"
                cure = f"group by the key of `{self._root_alias()}` and aggregate, or take the first row in a subquery"
                raise self._error(None, what, cure, one.line)

    # What the expressions of the query say about a table

    def _root_alias(self) -> str:
        return next(iter(self._scope.sources))

    def _many_on_path(self, source: Source | None) -> Source | None:
        while source is not None:
            if source.parent is not None and source.many and (not source.grouped or source.in_list):
                return source.parent if source.in_list else source
            source = source.parent
        return None

    def _is_below(self, source: Source | None, above: Source) -> bool:
        while source is not None:
            source = source.parent
            if source is above:
                return True
        return False

    def _source_of(self, column: Any) -> Source:
        return self._resolved(column, self._scope)[0]

    def _strict(self, node: Any, target: Source) -> bool:
        """Whether the value is null where all columns of the target are null."""
        exp = self._exp
        match node:
            case exp.Column():
                source = self._source_of(node)
                if source is not target and not self._is_below(source, target):
                    return False
                return source.shown is None or isinstance(source.shown.get(node.name), exp.Column)
            case exp.Paren() | exp.Neg() | exp.Cast() | exp.Not():
                return self._strict(node.this, target)
            case (
                exp.Add()
                | exp.Sub()
                | exp.Mul()
                | exp.Div()
                | exp.Mod()
                | exp.DPipe()
                | exp.EQ()
                | exp.NEQ()
                | exp.LT()
                | exp.LTE()
                | exp.GT()
                | exp.GTE()
                | exp.Like()
                | exp.ILike()
            ):
                return self._strict(node.left, target) or self._strict(node.right, target)
            case exp.In() if node.expressions:
                return self._strict(node.this, target)
            case exp.Between():
                return self._strict(node.this, target)
            case exp.Anonymous() if str(node.this).lower() in (
                "lower",
                "upper",
                "round",
                "abs",
                "trim",
                "length",
                "date_trunc",
            ):
                return any(self._strict(part, target) for part in node.expressions)
        return False

    def _unique(self, name: str, columns: Iterable[str] = ()) -> str:
        """A name for a join. `columns`: of the row above, which it must not hide."""
        found = free_name(name, {*self._names, *columns, "parent"})
        self._names.add(found)
        return found

    def _refuse(self, select: Any, clauses: Collection[str]) -> None:
        """Refuses the clauses that no part of a product is. `clauses`: others that this query may have."""
        known = {"expressions", "from_", "joins", "where", "group", "having", "order", *clauses}
        for clause, value in select.args.items():
            if value and clause not in known:
                word = _WORDS.get(clause, clause.upper())
                cure = (
                    f"remove {word}: each row of the root has a document" if select is self._tree else f"remove {word}"
                )
                raise self._error(select, f"a product given as SQL cannot have {word}", cure)

    def _window(self, node: Any) -> WrongDefinition:
        cure = "join its first row, `row_number() = 1` in a subquery, or aggregate in a subquery"
        return self._error(node, f"`{text_of(node)}` is a window", cure)

    def _error(self, node: Any, what: str, cure: str, line: int = 0) -> WrongDefinition:
        return WrongDefinition(what, cure, line or (self._line_of(node) if node is not None else 1))


def conjuncts(node: Any, exp: Any) -> Iterator[Any]:
    """Each condition that AND connects."""
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from conjuncts(node.this, exp)
        yield from conjuncts(node.expression, exp)
    else:
        yield node


def where_of(select: Any, exp: Any) -> list[Any]:
    """The conditions of WHERE."""
    where = select.args.get("where")
    return list(conjuncts(where.this, exp)) if where else []


def joined(conditions: Sequence[str]) -> str:
    """The conditions as one."""
    return conditions[0] if len(conditions) == 1 else " and ".join(f"({one})" for one in conditions)


def output_name(term: Any, exp: Any) -> str:
    """The name of a column of a query, as PostgreSQL gives it; empty where that is `?column?`."""
    if term.alias:
        return str(term.alias)
    node = term.unalias()
    while isinstance(node, exp.Paren | exp.Filter | exp.Window | exp.Bracket):
        node = node.this
    match node:
        case exp.Column() | exp.Dot():
            return "" if isinstance(node.this, exp.Star) else str(node.name)
        case exp.Anonymous():
            return str(node.this).lower()
        case exp.Cast():
            return output_name(node.this, exp)
        case exp.Exists():
            return "exists"
        case exp.Array():
            return "array"
        case exp.Case():
            return (output_name(node.args["default"], exp) if node.args.get("default") else "") or "case"
        case exp.Subquery() if isinstance(node.this, exp.Select) and len(node.this.expressions) == 1:
            return output_name(node.this.expressions[0], exp)
    return ""


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with a number behind it where it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
