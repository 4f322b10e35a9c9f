"""Reads a query whose rows are the documents, as a view has them: grouped, with subqueries, or flat. Into a flat tree.

Each table of the query becomes a `join` of the root's level, and each selected term a member, in the order of the query. A table to
which the query joins many rows may be used inside aggregates only. So a document is one row of the query, with exactly its columns.

    group by the root's key     the tables joined to many rows are lists, and the aggregates read them
    (select ... where t.x = u.y)  a join below the row that it names: of aggregates a list, else `one`
    from (select ...), LATERAL, WITH  the same: grouped by the columns that join it, the first row by `row_number() = 1`,
                                DISTINCT ON or LIMIT 1, or its rows as they are
    EXISTS, IN, an anti-join    `count(t) > 0`, or `= 0`
    HAVING                      `where`

The reader of sql.py keeps its meaning for every query that it takes. This one refuses a query whose rows are not one for each row of
one table, and names the shortest way out. It reads sqlglot's trees without importing sqlglot.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from processor.language.definitions.expressions import AGGREGATE_ALIASES, AGGREGATES
from processor.language.definitions.names import write_path
from processor.language.definitions.problems import AlreadyReported, WrongDefinition, suggest
from processor.language.product.expressions.expression import Column
from processor.values.entity import Entity

Path = tuple[str, ...]
_WHOLE_ROWS: Final = ("row_to_json", "to_json", "to_jsonb")
_LISTS: Final = ("array_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg")
_ONCE: Final = ("min", "max", "bool_and", "bool_or", "every")
"""Aggregates for which a repeated row counts once."""


@dataclass(slots=True, kw_only=True, eq=False)
class Source:
    """A table of the query, as a join. `name`: of the join; `alias`: of the table in its part of the query; `inner`: the rows above
    need one. `on`: the parent's source and column of each own column; `conditions`: on its rows; `first`: the query takes one row;
    `below`: tables of its subquery; `shown`: of a subquery, its terms by their names; `grouped`: these are aggregates."""

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
    number: str = ""
    inside: "Scope | None" = None
    value: str | None = None
    parent: "Source | None" = None

    @property
    def many(self) -> bool:
        return not self.first and not set(self.entity.key) <= set(self.on)


@dataclass(slots=True, kw_only=True, eq=False)
class Scope:
    """The tables that a part of the query can name, with their paths in the expressions of its level. `above`: of the query around a
    subquery, for which `parent` rows it has."""

    sources: dict[str, tuple[Source, Path]] = field(default_factory=dict)
    above: "Scope | None" = None
    rows: Source | None = None


def is_view(tree: Any, exp: Any) -> bool:
    """Whether the query has a part that only this reader takes."""
    if not isinstance(tree, exp.Select):
        return False
    if any(tree.args.get(clause) for clause in ("with_", "group", "having", "distinct", "laterals")):
        return True
    joins = tree.args.get("joins") or ()
    if any(join.args.get("using") or not join.args.get("on") for join in joins):
        return True
    if any(not isinstance(node.this, exp.Table) for node in (tree.args.get("from_"), *joins) if node):
        return True
    return (
        any(True for _ in tree.find_all(exp.Window, exp.Exists))
        or len(list(tree.find_all(exp.Select))) > 1
        or (any(_is_aggregate(call) for call in tree.find_all(exp.Anonymous)))
    )


def _is_aggregate(node: Any) -> bool:
    return node.key == "anonymous" and str(node.this).lower() in {*AGGREGATES, *AGGREGATE_ALIASES}


class ViewReader:
    """Reads one query. `entries`: the plain data of a product file: texts, lists and mappings."""

    def __init__(self, tree: Any, exp: Any, entities: Mapping[str, Entity | None], line_of: Any) -> None:
        self._exp, self._entities, self._line_of = exp, entities, line_of
        self._ctes: dict[str, Any] = {}
        self._names: set[str] = set()
        self._joins: list[Source] = []
        self._scope = Scope()
        self._tree = tree

    def entries(self) -> dict[str, Any]:
        """The root, its joins, condition and members, as values of a product file."""
        exp, tree = self._exp, self._tree
        self._refuse(tree, ("limit", "offset", "distinct", "locks", "windows", "qualify", "sort", "cluster"))
        for cte in tree.args["with_"].expressions if tree.args.get("with_") else ():
            if tree.args["with_"].args.get("recursive"):
                raise self._error(
                    cte, "a product given as SQL cannot have WITH RECURSIVE", "write the product as a tree"
                )
            self._ctes[cte.alias] = cte.this
        tables = list(self._tables(tree))
        root = self._root(tree, tables)
        self._names |= set(root.entity.columns)
        self._scope.sources[root.alias] = (root, ())
        wheres = [*_where_of(tree, exp), *(condition for one, on, _ in tables if one is root for condition in on)]
        wheres = self._placed(root, [one for one in tables if one[0] is not root], wheres, self._scope)
        grouped = tree.args.get("group")
        if grouped:
            self._check_group(grouped, root)
        wheres = [one for one in wheres if not self._pushed(one)]
        self._check_lists(wheres, grouped=bool(grouped))
        wheres += list(_conjuncts(tree.args["having"].this, exp)) if tree.args.get("having") else []
        lists = [one for one in self._joins if one.many and not one.grouped and one.value is None]
        self._scope.rows = self._deepest(lists)
        fields: dict[str, str] = {}
        for term in tree.expressions:
            for name, text in self._selected(term, bool(grouped)):
                if name in fields:
                    raise self._error(term, f"the query selects two columns `{name}`", "rename one of them: `as ...`")
                fields[name] = text
        conditions = [self._condition(one) for one in wheres]
        joins = {one.name: self._join(one) for one in self._joins}
        return {
            "root": root.entity.name,
            **({"where": _joined(conditions)} if conditions else {}),
            **({"join": joins} if joins else {}),
            "fields": fields,
        }

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
            on = list(_conjuncts(join.args["on"], self._exp)) if join.args.get("on") else []
            for column in join.args.get("using") or ():
                left = self._exp.column(column.this, table=before.alias_or_name)
                on.append(
                    self._exp.EQ(this=left, expression=self._exp.column(column.this, table=join.this.alias_or_name))
                )
            yield from self._flattened(join.this, on, inner=join.side != "LEFT")

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
            yield from self._flattened(join.this, list(_conjuncts(join.args["on"], exp)), inner=join.side != "LEFT")

    def _source(self, node: Any) -> Source:
        """The source of a table, a subquery, a LATERAL or a name of WITH."""
        exp, alias = self._exp, node.alias_or_name
        if isinstance(node, exp.Lateral):
            node = node.this
        if isinstance(node, exp.Table) and node.name in self._ctes and not node.args.get("db"):
            return self._derived(self._ctes[node.name].copy(), alias, node)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            return self._derived(node.this, alias, node)
        if not isinstance(node, exp.Table) or node.args.get("db") or (node.args.get("joins") is None and node.name == ""):
            raise self._error(node, f"`{_text(node)}` is no table, and no subquery of one", "write the entity's name")
        entity = self._entities.get(node.name)
        if node.name not in self._entities:
            raise self._error(node, f"there is no entity `{node.name}`", suggest(node.name, self._entities))
        if entity is None:
            raise AlreadyReported
        return Source(name=alias, alias=alias, entity=entity, line=self._line_of(node))

    def _derived(self, select: Any, alias: str, node: Any) -> Source:
        """The source of a subquery: its main table, with the others below it."""
        exp = self._exp
        if not isinstance(select, exp.Select):
            raise self._error(node, f"`{alias}` is no plain select", "join the tables of UNION one by one")
        self._refuse(select, ("having", "offset", "locks", "windows", "qualify"))
        tables = list(self._tables(select))
        wheres = _where_of(select, exp)
        own = {one.alias for one, _, _ in tables}
        outer = [one for one in wheres for c in one.find_all(exp.Column) if c.table and c.table not in own]
        linked = [c.table for one in outer for c in one.find_all(exp.Column) if c.table in own]
        main = next((one for one, _, _ in tables if one.alias in linked), tables[0][0])
        inside = Scope(sources={main.alias: (main, ())}, above=self._scope)
        conditions = self._placed(main, [one for one in tables if one[0] is not main], wheres, inside)
        source = Source(name=alias, alias=alias, entity=main.entity, line=self._line_of(node), below=main.below)
        source.inside, source.conditions, source.shown = inside, conditions, {}
        if main.shown is not None:
            raise self._error(node, f"`{alias}` is a subquery of a subquery", "write one of them")
        inside.sources[main.alias] = (source, ())
        for below in source.below:
            below.parent = source
        inside.rows = source
        self._read_terms(select, source)
        self._read_choice(select, source)
        return source

    def _read_terms(self, select: Any, source: Source) -> None:
        exp, group = self._exp, select.args.get("group")
        assert source.shown is not None
        for term in select.expressions:
            node = term.unalias()
            if isinstance(node, exp.Window):
                if str(node.this.this).lower() != "row_number" or set(_filled(node)) - {
                    "this",
                    "partition_by",
                    "order",
                    "over",
                }:
                    raise self._error(node, f"`{_text(node)}` is a window", "only `row_number() ... = 1` is a `one`")
                source.number = term.alias
                source.partition = {c.name for c in node.args.get("partition_by") or ()}
                source.order = list(node.args["order"].expressions) if node.args.get("order") else []
            elif isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                for column in source.entity.columns:
                    source.shown[column] = exp.column(column)
            else:
                source.shown[term.alias or node.name] = node
        calls = [one for node in source.shown.values() for one in node.find_all(exp.Anonymous) if _is_aggregate(one)]
        if group or calls:
            source.grouped = True
            source.partition = {self._own(one, source) for one in group.expressions} if group else set()

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
                node, f"`{_text(node)}` is no column of `{source.entity.name}`", "group by columns of one table"
            )
        return str(node.name)

    # The place of each table

    def _root(self, tree: Any, tables: Sequence[tuple[Source, list[Any], bool]]) -> Source:
        """The table of which each row is a document: the first one, or that whose key the query groups by."""
        first, group = tables[0][0], tree.args.get("group")
        if group:
            scope = Scope(sources={one.alias: (one, ()) for one, _, _ in tables})
            terms = {one.alias: one.unalias() for one in tree.expressions if one.alias}
            for node in list(group.expressions):
                if isinstance(node, self._exp.Literal) and str(node.this).isdecimal():
                    place = int(str(node.this)) - 1
                    meant = tree.expressions[place].unalias() if place < len(tree.expressions) else node
                elif isinstance(node, self._exp.Column) and not node.table and self._maybe(node, scope) is None:
                    meant = terms.get(node.name, node)
                else:
                    continue
                node.replace(meant.copy())
            columns = [self._resolved(c, scope) for c in group.expressions if isinstance(c, self._exp.Column)]
            keyed = [
                one
                for one, _, inner in tables
                if one.shown is None
                and (inner or one is first)
                and set(one.entity.key) <= {name for at, name in columns if at is one}
            ]
            if not keyed:
                what = f"GROUP BY does not name the key of a table, as `{first.alias}.{', '.join(first.entity.key)}`"
                raise self._error(group, what, "group by the key of the table whose rows have a document each")
            return first if first in keyed else keyed[0]
        if first.shown is not None:
            raise self._error(
                tree.args["from_"].this, "the query begins with a subquery", "begin with the root: `from entity`"
            )
        return first

    def _check_group(self, group: Any, root: Source) -> None:
        for node in group.expressions:
            if not isinstance(node, self._exp.Column):
                continue
            source, _ = self._resolved(node, self._scope)
            while source is not root and not source.many:
                source = source.parent or root
            if source is not root:
                what = f"GROUP BY `{_text(node)}` makes a row for each row of `{source.alias}`"
                raise self._error(node, what, f"group by columns of `{root.alias}` alone")

    def _placed(self, top: Source, tables: list[Any], wheres: list[Any], scope: Scope) -> list[Any]:
        """Puts each table below one that has a place. Returns the conditions of WHERE that no table took."""
        exp, pool = self._exp, list(wheres)
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
        source.name = self._unique(source.alias)
        chained = [one for one in (mine if not inner else list(mine)) if self._is_alone(one, source)]
        for condition in chained:
            if self._is_number(condition, source):
                source.first = True
                mine.remove(condition)
            elif source.shown is None and (not inner or source.many) and not self._is_absent(condition, source):
                source.conditions.append(condition)
                mine.remove(condition)
        if not inner:
            if left := [one for one in mine if not (isinstance(one, exp.Boolean) and one.this)]:
                what = f"`{_text(left[0])}` in the ON of `{source.alias}` is no equality with its table, and not over it alone"
                raise self._error(left[0], what, "write it as a tree, where `parent.column` names the row above")
        if source.partition and source.partition != set(source.on) and (source.grouped or source.first):
            columns = ", ".join(sorted(source.partition))
            what = f"`{source.alias}` is grouped by {columns}, and joined by {', '.join(sorted(source.on))}"
            raise self._error(None, what, "join it by the columns that it is grouped by", source.line)
        source.inside = source.inside or Scope(sources={source.alias: (source, ())}, above=scope)
        if inner and (source.partition or not source.grouped):
            self._make_inner(source)
        lists = source.many or source.grouped
        if scope is self._scope and (lists or source.parent is top):
            scope.sources[source.alias] = (source, (source.name,))
            self._joins.append(source)
            return
        if lists:
            what = f"the subquery joins many rows of `{source.alias}` to each row"
            raise self._error(None, what, "join that table in the query itself", source.line)
        _, path = scope.sources[source.parent.alias]
        scope.sources[source.alias] = (source, (*path, source.name))
        source.parent.below.append(source)
        above, relative = source.parent, (source.name,)
        while above is not None and above is not top and above.inside is not None:
            above.inside.sources[source.alias] = (source, relative)
            above, relative = above.parent, (above.name, *relative)

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

    def _equality(self, condition: Any, source: Source, known: Mapping[str, Source], scope: Scope) -> Any:
        """(own column, parent, its column) of a condition that sets a column of the source equal to one of a placed table."""
        sides = self._sides(condition)
        if sides is None:
            return None
        both = Scope(sources={name: (one, ()) for name, one in known.items()})
        for mine, other in (sides, sides[::-1]):
            found, above = self._maybe(mine, both), self._maybe(other, scope)
            if found and above and found[0] is source:
                column = found[1]
                if source.shown is not None:
                    shown = source.shown.get(column)
                    if not isinstance(shown, self._exp.Column) or shown.name not in source.entity.columns:
                        return None
                    column = shown.name
                return column, above[0], above[1]
        return None

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
        columns = [c for c in condition.find_all(exp.Column)]
        return bool(columns) and all(
            c.table == source.alias or (not c.table and c.name in source.entity.columns) for c in columns
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
        lists = {id(m): m for one in sources if (m := self._many_on_path(one)) is not None}
        if len(lists) != 1:
            return False
        (found,) = lists.values()
        assert found.inside is not None
        if found.shown is not None or any(one is not found and one.alias not in found.inside.sources for one in sources):
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
            if not grouped and one.many and not one.grouped and not absent:
                what = f"the query has a row for each row of `{one.alias}`, but a document is one row of `{self._root_alias()}`"
                cure = f"group by the key of `{self._root_alias()}` and aggregate, or take the first row in a subquery"
                raise self._error(None, what, cure, one.line)

    # Expressions

    def _selected(self, term: Any, grouped: bool) -> Iterator[tuple[str, str]]:
        exp, node = self._exp, term.unalias()
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            wanted = [node.table] if isinstance(node, exp.Column) else list(self._scope.sources)
            for alias in wanted:
                source, _ = self._scope.sources.get(alias) or (None, ())
                if source is None:
                    raise self._error(term, f"there is no table `{alias}`", suggest(alias, self._scope.sources))
                for name in source.entity.columns if source.shown is None else source.shown:
                    yield name, self._write(exp.column(name, table=alias), self._scope)
            return
        name = term.alias or (node.name if isinstance(node, exp.Column) else "")
        if not name:
            raise self._error(term, f"`{_text(node)}` has no name", f"write `{_text(node)} as name`")
        yield name, self._write(node, self._scope)

    def _condition(self, node: Any) -> str:
        exp = self._exp
        for source in self._joins:
            if source.many and self._is_alone(node, source) and self._is_absent(node, source) and not source.inner:
                return f"count({write_path(Column(name=source.name))}) = 0"
        if isinstance(node, exp.In) and node.args.get("query"):
            return self._in(node)
        if (
            isinstance(node, exp.Not)
            and isinstance(node.this.unnest(), exp.In)
            and node.this.unnest().args.get("query")
        ):
            raise self._error(
                node, "NOT IN of a subquery is null where it has a null", "write `not exists (select ...)`"
            )
        return self._write(node, self._scope)

    def _in(self, node: Any) -> str:
        select = node.args["query"].this.copy()
        (term,) = select.expressions
        equality = self._exp.EQ(this=node.this.copy(), expression=term.unalias().copy())
        where = select.args.get("where")
        select.set(
            "where", self._exp.Where(this=self._exp.And(this=where.this, expression=equality) if where else equality)
        )
        return f"count({self._subquery(select, node).name}) > 0"

    def _subquery(self, select: Any, node: Any) -> Source:
        """The join of a subquery in an expression."""
        source = self._derived(select, "sub", node)
        if not self._correlate(source, self._scope):
            what = f"the subquery `{_text(select)[:60]}` is not joined to the query around it by an equality of columns"
            raise self._error(node, what, "write `where t.column = table.column` in it")
        source.inner = False
        source.parent = next(iter(source.on.values()))[0]
        source.name = self._unique("_".join(("sub", source.entity.name)))
        self._joins.append(source)
        return source

    def _scalar(self, select: Any, node: Any) -> str:
        """The name of a join whose value is that of a subquery."""
        source = self._subquery(select, node)
        assert source.shown is not None
        assert source.inside is not None
        if len(source.shown) != 1:
            raise self._error(
                node, "a subquery in an expression selects several columns", "write one subquery for each"
            )
        (value,) = source.shown.values()
        if source.partition and not source.first:
            raise self._error(node, "a subquery in an expression has GROUP BY", "remove it: its WHERE joins one row's")
        if not source.grouped and source.many:
            what = f"the subquery may find several rows of `{source.entity.name}`"
            raise self._error(node, what, "add `order by ... limit 1`, or an aggregate")
        source.value = self._write(value, source.inside)
        return write_path(Column(name=source.name))

    def _write(self, node: Any, scope: Scope) -> str:
        """The expression as an author of a tree writes it in this scope."""
        return _text(self._rewritten(node, scope))

    def _rewritten(self, node: Any, scope: Scope, empty: Source | None = None) -> Any:
        exp = self._exp

        def named(text: str) -> Any:
            return exp.Var(this=text)

        def change(one: Any) -> Any:
            match one:
                case exp.Exists():
                    return named(f"(count({write_path(Column(name=self._subquery(one.this, one).name))}) > 0)")
                case exp.Subquery() if isinstance(one.this, exp.Select):
                    return named(self._scalar(one.this, one))
                case exp.Anonymous() if str(one.this).lower() == "array" and isinstance(
                    (one.expressions or [None])[0], exp.Select
                ):
                    return named(f"coalesce({self._scalar(self._listed(one.expressions[0]), one)}, json_build_array())")
                case exp.Anonymous() if str(one.this).lower() == "coalesce":
                    last = one.expressions[-1]
                    literal = last.this if isinstance(last, exp.Cast) else last
                    built = {"[]": "json_build_array()", "{}": "json_build_object()"}.get(str(literal.this))
                    if built and isinstance(literal, exp.Literal):
                        parts = [self._rewritten(part, scope, empty) for part in one.expressions[:-1]]
                        return exp.Anonymous(this="coalesce", expressions=[*parts, named(built)])
                case exp.Anonymous() if str(one.this).lower() in _WHOLE_ROWS:
                    if whole := self._whole_row(one.expressions[0], scope):
                        return self._rewritten(whole, scope, empty)
                    return self._rewritten(one.expressions[0], scope, empty)
                case exp.Filter() if _is_aggregate(one.this):
                    return self._aggregate(one, scope)
                case exp.Anonymous() if _is_aggregate(one):
                    return self._aggregate(one, scope)
                case exp.Column():
                    return self._column(one, scope, empty)
            return one

        return node.copy().transform(change)

    def _listed(self, select: Any) -> Any:
        """The select of `array(select x ... order by y)` as one of `array_agg(x order by y)`."""
        exp, select = self._exp, select.copy()
        (term,) = select.expressions
        value, order = term.unalias(), select.args.get("order")
        argument = exp.Order(this=value, expressions=order.expressions) if order else value
        select.set("expressions", [exp.Anonymous(this="array_agg", expressions=[argument])])
        select.set("order", None)
        return select

    def _whole_row(self, node: Any, scope: Scope) -> Any:
        """The object of a table's columns, for a term that names the table itself."""
        exp = self._exp
        if not isinstance(node, exp.Column):
            return None
        alias = node.table if isinstance(node.this, exp.Star) else "" if node.table else node.name
        if alias not in scope.sources:
            return None
        source, _ = scope.sources[alias]
        columns = self._columns(source, scope)
        pairs = [part for name in columns if name for part in (exp.Literal.string(name), exp.column(name, table=alias))]
        return exp.Anonymous(this="json_build_object", expressions=pairs)

    def _column(self, column: Any, scope: Scope, empty: Source | None) -> Any:
        exp, at = self._exp, scope
        if column.table and column.table not in scope.sources and scope.above is not None:
            return self._outer(column, scope)
        source, name = self._resolved(column, at)
        if source is empty:
            return exp.Null()
        path = at.sources[source.alias][1] if source.alias in at.sources else ()
        inside = source.inside is at
        if source.shown is not None and not inside:
            return self._shown(source, name, column)
        if at is self._scope and self._many_on_path(source) is not None and not self._in_aggregate:
            many = self._many_on_path(source)
            assert many is not None
            what = f"`{_text(column)}` has a value for each row of `{many.alias}`, but a document is one row of `{self._root_alias()}`"
            raise self._error(
                column, what, "put it into an aggregate and group by the root's key, or leave out what makes it flat"
            )
        return exp.Var(this=write_path(Column(name=name, path=path)))

    _in_aggregate = 0

    def _root_alias(self) -> str:
        return next(iter(self._scope.sources))

    def _many_on_path(self, source: Source | None) -> Source | None:
        while source is not None:
            if source.parent is not None and source.many:
                return source
            source = source.parent
        return None

    def _outer(self, column: Any, scope: Scope) -> Any:
        """A column of the query around a subquery: of the row above the subquery's rows."""
        source = scope.rows
        assert scope.above is not None
        above, name = self._resolved(column, scope.above)
        parent = next(iter(source.on.values()))[0] if source is not None and source.on else None
        steps = 1
        while parent is not None and parent is not above:
            parent, steps = parent.parent, steps + 1
        if parent is None:
            what = f"`{_text(column)}` is a column of another row than that which the subquery joins"
            raise self._error(column, what, "join both tables in the query itself")
        return self._exp.Var(this=".".join(["parent"] * steps + [write_path(Column(name=name))]))

    def _shown(self, source: Source, name: str, column: Any) -> Any:
        """A term of a subquery, in the query around it."""
        exp = self._exp
        assert source.shown is not None
        assert source.inside is not None
        if name == source.number:
            raise self._error(
                column, f"`{_text(column)}` is a number of rows", f"write `{_text(column)} = 1` to join the first row"
            )
        if source.grouped or not source.many:
            outside = Scope(rows=source)
            for alias, (one, path) in source.inside.sources.items():
                outside.sources[alias] = (one, (*self._path_of(source), *path))
            return exp.Paren(this=self._outside(source.shown[name], outside, source))
        what = f"`{_text(column)}` has a value for each row of `{source.alias}`"
        if self._in_aggregate:
            outside = Scope(rows=source)
            for alias, (one, path) in source.inside.sources.items():
                outside.sources[alias] = (one, (*self._path_of(source), *path))
            return self._outside(source.shown[name], outside, source)
        raise self._error(column, what, "put it into an aggregate, and group by the root's key")

    def _path_of(self, source: Source) -> Path:
        """The path of a table of the query in the expressions of the root."""
        return next((path for one, path in self._scope.sources.values() if one is source), (source.name,))

    def _outside(self, node: Any, outside: Scope, source: Source) -> Any:
        exp = self._exp

        def change(one: Any) -> Any:
            match one:
                case exp.Anonymous() if str(one.this).lower() == "count" and source.grouped:
                    rows = isinstance(one.expressions[0], exp.Star | exp.Literal)
                    counted = (
                        f"count({source.name})"
                        if rows
                        else _text(
                            exp.Anonymous(
                                this="count",
                                expressions=[self._outside(part, outside, source) for part in one.expressions],
                            )
                        )
                    )
                    missing = source.partition and not source.inner
                    return exp.Var(
                        this=f"case when count({source.name}) > 0 then {counted} end" if missing else counted
                    )
                case exp.Column():
                    at, name = self._inside_column(one, outside)
                    if source.grouped and not self._within(one) and name in source.on:
                        parent, above = source.on[name]
                        own = _text(self._column(exp.column(above, table=parent.alias), self._scope, None))
                        found = f"count({source.name}) > 0"
                        return exp.Var(this=own if source.inner else f"case when {found} then {own} end")
                    return exp.Var(
                        this=write_path(
                            Column(
                                name=name,
                                path=outside.sources[at.alias if at is not source else self._main(outside, source)][1],
                            )
                        )
                    )
            return one

        return node.copy().transform(change)

    def _inside_column(self, column: Any, outside: Scope) -> tuple[Source, str]:
        if column.table:
            return outside.sources[column.table][0], column.name
        for one, _ in outside.sources.values():
            if column.name in one.entity.columns:
                return one, column.name
        raise self._error(column, f"there is no column `{column.name}`", "write `table.column`")

    def _main(self, outside: Scope, source: Source) -> str:
        return next(alias for alias, (one, _) in outside.sources.items() if one is source)

    def _within(self, node: Any) -> bool:
        """Whether a node is inside an aggregate."""
        while node is not None:
            if _is_aggregate(node) or node.key == "filter":
                return True
            node = node.parent
        return False

    def _aggregate(self, node: Any, scope: Scope) -> Any:
        """An aggregate over the grouped rows of the query, or over the rows of a subquery."""
        exp = self._exp
        call = node.this if isinstance(node, exp.Filter) else node
        name = str(call.this).lower()
        if call.expressions and (whole := self._aggregated_row(call, scope)):
            call.set("expressions", whole)
        rows = scope.rows
        if scope is not self._scope:
            return self._rows_counted(node, call, name, None, scope)
        lists = [one for one in self._joins if one.many and not one.grouped and one.value is None]
        if not lists:
            what = f"`{_text(node)}` aggregates all rows of the query"
            raise self._error(node, what, "group by the root's key, and join the rows to aggregate")
        used = {
            id(m): m for c in node.find_all(exp.Column) if (m := self._many_on_path(self._source_of(c))) is not None
        }
        star = not used
        if star and name in _ONCE and call.find(exp.Column):
            return exp.Paren(this=self._rewritten(call.expressions[0], scope))
        distinct = name in _ONCE or any(isinstance(part, exp.Distinct) for part in call.find_all(exp.Distinct))
        target = rows if star or rows is None else next((m for m in used.values() if m is rows), None)
        if target is None and not star:
            if len(used) > 1:
                raise self._error(node, f"`{_text(node)}` reads several lists", "write one aggregate for each of them")
            (target,) = used.values()
            if any(one.inner and self._is_below(one, target) for one in lists):
                what = f"`{_text(node)}` reads those rows of `{target.alias}` that have a row of another list below"
                raise self._error(node, what, "aggregate in subqueries: `(select ... where ...)`")
            if not distinct:
                what = f"`{_text(node)}` counts each row of `{target.alias}` once for each row of another list that the query joins"
                raise self._error(node, what, "aggregate it in a subquery: `(select ... where ...)`, or use `distinct`")
        if target is None:
            raise self._error(node, f"`{_text(node)}` counts pairs of rows of several lists", "count in subqueries")
        return self._rows_counted(node, call, name, target, scope)

    def _is_below(self, source: Source | None, above: Source) -> bool:
        while source is not None:
            source = source.parent
            if source is above:
                return True
        return False

    def _source_of(self, column: Any) -> Source:
        return self._resolved(column, self._scope)[0]

    def _aggregated_row(self, call: Any, scope: Scope) -> list[Any] | None:
        """The arguments of `json_agg(t)` with the object of the row."""
        exp, (first, *rest) = self._exp, call.expressions
        inner = first.this if isinstance(first, exp.Order) else first
        whole = self._whole_row(inner, scope)
        if whole is None or str(call.this).lower() == "count":
            return None
        return [exp.Order(this=whole, expressions=first.expressions) if isinstance(first, exp.Order) else whole, *rest]

    def _rows_counted(self, node: Any, call: Any, name: str, target: Source | None, scope: Scope) -> Any:
        """The aggregate's text over the rows of `target`; None: of the subquery's own rows. A left join without a row has one row of
        nulls."""
        exp = self._exp
        rows = write_path(Column(name=target.name)) if target is not None else "*"
        star = isinstance(call.expressions[0], exp.Star) or isinstance(call.expressions[0], exp.Literal)
        if star and name == "count":
            if (
                target is not None
                and not target.inner
                and isinstance(node, exp.Filter)
                and not self._needs_row(node, target)
            ):
                raise self._error(
                    node,
                    f"`{_text(node)}` counts a row also where `{target.alias}` has none",
                    f"write `count({target.alias}.{target.entity.key[0]})`",
                )
            call.set("expressions", [exp.Var(this=rows)])
            text = self._inside(node, scope)
            if target is not None and not target.inner and not isinstance(node, exp.Filter):
                return exp.Var(this=f"greatest({text}, 1)")
            return exp.Var(this=text)
        if target is None or target.inner or self._needs_row(node, target):
            return exp.Var(this=self._inside(node, scope))
        if name in _LISTS:
            key = target.entity.key[0]
            what = f"`{name}` has an element of nulls where `{target.alias}` has no row"
            raise self._error(
                node, what, f"add `filter (where {target.alias}.{key} is not null)`, or write `inner join`"
            )
        argument = call.expressions[0]
        argument = argument.this if isinstance(argument, exp.Order) else argument
        if self._strict(argument, target) or isinstance(argument, exp.Distinct):
            return exp.Var(this=self._inside(node, scope))
        if name not in ("sum", "min", "max", "avg") or isinstance(node, exp.Filter):
            what = f"`{_text(node)}` counts a row of nulls where `{target.alias}` has no row"
            raise self._error(node, what, f"add `filter (where {target.alias}.{target.entity.key[0]} is not null)`")
        nothing = _text(self._rewritten(argument, scope, empty=target))
        return exp.Var(this=f"case when count({rows}) = 0 then {nothing} else {self._inside(node, scope)} end")

    def _inside(self, node: Any, scope: Scope) -> str:
        """The text of an aggregate, whose parts name columns of many rows."""
        exp = self._exp
        self._in_aggregate += 1
        try:
            return _text(
                node.copy().transform(
                    lambda one: (
                        self._column(one, scope, None)
                        if isinstance(one, exp.Column)
                        else self._rewritten(one, scope)
                        if isinstance(one, exp.Subquery | exp.Exists)
                        or (isinstance(one, exp.Anonymous) and str(one.this).lower() in _WHOLE_ROWS)
                        else one
                    )
                )
            )
        finally:
            self._in_aggregate -= 1

    def _needs_row(self, node: Any, target: Source) -> bool:
        """Whether the filter of an aggregate leaves out the row of nulls of a left join."""
        exp = self._exp
        if not isinstance(node, exp.Filter):
            return False
        for one in _conjuncts(node.expression.this, exp):
            test = one.unnest()
            if isinstance(test, exp.Is) and isinstance(test.expression, exp.Null) and test.args.get("negate"):
                if self._strict(test.this, target):
                    return True
            elif (
                isinstance(test, exp.Not)
                and isinstance(test.this.unnest(), exp.Is)
                and self._strict(test.this.unnest().this, target)
            ) or self._strict(test, target):
                return True
        return False

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

    # The joins of the tree

    def _join(self, source: Source) -> dict[str, Any]:
        inside = source.inside
        assert inside is not None
        nested = source not in self._joins
        on = {c: self._parent_column(parent, name, nested=nested) for c, (parent, name) in source.on.items()}
        is_list = source.grouped or source.many
        made: dict[str, Any] = {"many" if is_list else "one": source.entity.name, "on": on}
        conditions = [self._write(one, inside) for one in source.conditions]
        if conditions:
            made["where"] = _joined(conditions)
        if order := [text for term in source.order for text in self._ordered(term, source)]:
            made["order_by"] = order
        if source.inner and source.parent is not None and (source.partition or not source.grouped):
            made["required"] = True
        if source.below:
            made["join"] = {one.name: self._join(one) for one in source.below}
        if source.value is not None:
            made["value"] = source.value
        return made

    def _parent_column(self, parent: Source, name: str, *, nested: bool) -> str:
        if parent.shown is not None:
            shown = parent.shown[name]
            name = shown.name if isinstance(shown, self._exp.Column) else name
        return name if nested else write_path(Column(name=name, path=self._path_of(parent)))

    def _ordered(self, term: Any, source: Source) -> Iterator[str]:
        """The terms of `order_by`. SQL has nulls first with `desc`, a list has them last."""
        assert source.inside is not None
        text = self._write(term.this, source.inside)
        plain = re.fullmatch(r"[\w.\"]+", text)
        if term.args.get("nulls_first") and not (
            isinstance(term.this, self._exp.Column) and term.this.name in source.entity.key
        ):
            yield f"-({text} is null)"
        yield ("-" if term.args.get("desc") else "") + (text if plain else f"({text})")

    def _unique(self, name: str) -> str:
        number = 1
        found = name
        while found in self._names or found == "parent":
            number += 1
            found = f"{name}_{number}"
        self._names.add(found)
        return found

    def _refuse(self, select: Any, clauses: Sequence[str]) -> None:
        for clause in clauses:
            if clause in ("limit", "distinct") and select is not self._tree:
                continue
            if select.args.get(clause):
                word = clause.upper()
                raise self._error(
                    select,
                    f"a product given as SQL cannot have {word}",
                    f"remove {word}: each row of the root has a document",
                )

    def _error(self, node: Any, what: str, cure: str, line: int = 0) -> WrongDefinition:
        return WrongDefinition(what, cure, line or (self._line_of(node) if node is not None else 1))


def _conjuncts(node: Any, exp: Any) -> Iterator[Any]:
    """Each condition that AND connects."""
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this, exp)
        yield from _conjuncts(node.expression, exp)
    else:
        yield node


def _where_of(select: Any, exp: Any) -> list[Any]:
    where = select.args.get("where")
    return list(_conjuncts(where.this, exp)) if where else []


def _joined(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else " and ".join(f"({one})" for one in conditions)


def _filled(node: Any) -> set[str]:
    return {word for word, value in node.args.items() if value}


def _text(node: Any) -> str:
    return str(node.sql(dialect="postgres", normalize_functions=False, comments=False))
