"""Reads a query whose rows are the documents, as a view has them, into a flat tree: grouped, with subqueries, or flat.

Each table of the query becomes a `join` of the root's level, and each selected term a member, in the order of the query. A table
to which the query joins many rows may be used inside aggregates only. So a document is one row of the query, with its columns.

    group by the root's key     the tables joined to many rows are lists, and the aggregates read them
    (select ... where t.x = u.y)  a join below the row that it names: of aggregates a list, else `one`
    from (select ...), LATERAL, WITH  the same: grouped by the columns that join it, the first row by `row_number() = 1`,
                                DISTINCT ON or LIMIT 1, or its rows as they are
    EXISTS, IN, an anti-join    `count(t) > 0`, or `= 0`
    HAVING                      `where`

The reader of sql.py keeps its meaning for every query that it takes. This one refuses a query that has not one row for each row
of one table, and names the shortest way out. It reads sqlglot's trees without importing sqlglot.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from processor.language.definitions.names import write_path
from processor.language.definitions.problems import suggest
from processor.language.definitions.sql_groups import ALL, GroupReader
from processor.language.definitions.sql_parser import text_of
from processor.language.definitions.sql_tables import (
    OF_GROUPS,
    Path,
    Scope,
    Source,
    conjuncts,
    is_aggregate,
    joined,
    output_name,
    where_of,
)
from processor.language.product.expressions.expression import Column

_WHOLE_ROWS: Final = ("row_to_json", "to_json", "to_jsonb")
_LISTS: Final = ("array_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg")
_LEVELS: Final = 16
"""Levels of the tree that WITH RECURSIVE means. The printed SQL writes out each level, and grows with their square."""
_ONCE: Final = ("min", "max", "bool_and", "bool_or", "every")
"""Aggregates for which a repeated row counts once."""


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
        or (any(is_aggregate(call) for call in tree.find_all(exp.Anonymous)))
    )


def inner_tables(select: Any, exp: Any) -> list[str]:
    """The names of the tables that each row of the query has a row of."""
    joins = [one for one in select.args.get("joins") or () if one.side == "" and not one.meta.get(OF_GROUPS)]
    return [one.this.alias_or_name for one in joins if isinstance(one.this, exp.Table)]


class ViewReader(GroupReader):
    """Reads one query."""

    def entries(self, wanted: str = "") -> dict[str, Any]:
        """The root, its joins, condition and members, as values of a product file. `wanted`: the table to try as the root."""
        exp, tree = self._exp, self._tree
        self._make_groups(tree)
        self._refuse(tree, ())
        tables = list(self._tables(tree))
        root = self._root(tree, tables, wanted)
        self._names |= set(root.entity.columns)
        self._scope.sources[root.alias] = (root, ())
        tops = (root, self.rows)
        wheres = [*where_of(tree, exp), *(condition for one, on, _ in tables if one in tops for condition in on)]
        wheres = self._placed(root, [one for one in tables if one[0] not in tops], wheres, self._scope)
        grouped = tree.args.get("group")
        if grouped:
            self._check_group(grouped, root)
        wheres = [one for one in wheres if not self._pushed(one)]
        if grouped:
            wheres = [one for one in wheres if not (one.find(exp.Select) and self._pushed_subquery(one))]
        if self.rows is not None:
            self.rows.conditions += filter(self._is_constant, wheres)
            wheres = [one for one in wheres if not self._is_constant(one)]
        of_rows = [one for one in wheres if one.find(exp.Select) or any(map(self._is_listed, one.find_all(exp.Column)))]
        if self.rows is not None and of_rows:
            what = f"`{text_of(of_rows[0])}` in WHERE is not over one table alone, and chooses rows of the groups"
            raise self._error(
                of_rows[0], what, "write the product as a tree: `root: {group: entity, by: [...], where: ...}`"
            )
        self._check_lists(wheres, grouped=bool(grouped))
        wheres += list(conjuncts(tree.args["having"].this, exp)) if tree.args.get("having") else []
        lists = self._lists()
        self._scope.rows = self._deepest(lists)
        fields: dict[str, str] = {}
        for term in tree.expressions:
            for name, text in self._selected(term, bool(grouped)):
                if name in fields:
                    raise self._error(term, f"the query selects two columns `{name}`", "rename one of them: `as ...`")
                fields[name] = text
        conditions = [self._condition(one) for one in wheres]
        for one in [one for one in self._joins if one.inner and not one.expression]:
            conditions += [text_of(self._of_rows(condition, one, having=True)) for condition in one.having]
        joins = {one.name: self._join(one) for one in self._joins if one is not self.rows}
        return {
            "root": root.entity.name if self.rows is None else self._group(self.rows),
            **({"where": joined(conditions)} if conditions else {}),
            **({"join": joins} if joins else {}),
            "fields": fields,
        }

    def _group(self, rows: Source) -> dict[str, Any]:
        """The root of groups, with what the query says of their rows."""
        made = self._join(rows)
        plain = all(name == text for name, text in self.by.items())
        by = list(self.by) if plain else self.by
        return {"group": rows.entity.name, "by": by} | {word: made[word] for word in ("where", "join") if word in made}

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
        name = output_name(term, exp)
        if not name:
            raise self._error(term, f"`{text_of(node)}` has no name", f"write `{text_of(node)} as name`")
        yield name, self._write(node, self._scope)

    def _condition(self, node: Any, scope: Scope | None = None) -> str:
        exp, node, scope = self._exp, node.unnest(), scope or self._scope
        if isinstance(node, exp.And | exp.Or) and any(one.args.get("query") for one in node.find_all(exp.In)):
            return f"({self._condition(node.left, scope)}) {node.key} ({self._condition(node.right, scope)})"
        for source in self._joins:
            if source.many and self._is_alone(node, source) and self._is_absent(node, source) and not source.inner:
                return f"count({write_path(Column(name=source.name))}) = 0"
        if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
            query = node.expression.this
            if isinstance(query, exp.Subquery) and isinstance(query.this, exp.Select):
                node = exp.In(this=node.this.copy(), query=query.copy())
        if isinstance(node, exp.In) and node.args.get("query"):
            return self._in(node)
        inner = node.this.unnest() if isinstance(node, exp.Not) else None
        if isinstance(inner, exp.In) and inner.args.get("query"):
            if not self._is_never_null(inner):
                cure = "write `not exists (select ...)`, or declare both columns `not_null`"
                raise self._error(node, "NOT IN of a subquery is null where it has a null", cure)
            return f"not ({self._in(inner)})"
        return self._write(node, scope)

    def _in(self, node: Any) -> str:
        select = node.args["query"].this.copy()
        term = self._only_term(select, node)
        equality = self._exp.EQ(this=node.this.copy(), expression=term.unalias().copy())
        where = select.args.get("where")
        select.set(
            "where", self._exp.Where(this=self._exp.And(this=where.this, expression=equality) if where else equality)
        )
        return self._found(self._subquery(select, node))

    def _is_never_null(self, node: Any) -> bool:
        """Whether neither side of an IN has a null."""
        exp, select = self._exp, node.args["query"].this
        if not isinstance(select, exp.Select) or len(select.expressions) != 1 or not isinstance(node.this, exp.Column):
            return False
        tables = [
            self._source(one.this) for one in (select.args.get("from_"), *(select.args.get("joins") or ())) if one
        ]
        mine = self._maybe(node.this, self._scope)
        other = select.expressions[0].unalias()
        if not isinstance(other, exp.Column):
            return False
        theirs = self._maybe(other, Scope(sources={one.alias: (one, ()) for one in tables}))
        sides = [(one, name) for found in (mine, theirs) if found is not None for one, name in [found]]
        return len(sides) == 2 and all(
            one.inner and one.shown is None and name in (*one.entity.key, *one.entity.not_null) for one, name in sides
        )

    def _only_term(self, select: Any, node: Any) -> Any:
        if not isinstance(select, self._exp.Select) or len(select.expressions) != 1:
            raise self._error(node, "a subquery in an expression does not select one column", "select one column in it")
        return select.expressions[0]

    def _subquery(self, select: Any, node: Any) -> Source:
        """The join of a subquery in an expression."""
        source = self._derived(select, "sub", node)
        correlated = self._correlate(source, self._scope)
        if not correlated and source.grouped and not source.partition and not source.lists:
            source.on[ALL] = (next(iter(self._scope.sources.values()))[0], ALL)  # a total: the same for each document
        elif not correlated:
            what = (
                f"the subquery `{text_of(select)[:60]}` is not joined to the query around it by an equality of columns"
            )
            raise self._error(node, what, "write `where t.column = table.column` in it")
        source.inner, source.expression = False, True
        source.parent = next(iter(source.on.values()))[0]
        source.name = self._unique("_".join(("sub", source.entity.name)))
        if (many := self._many_on_path(source.parent)) is None:
            self._joins += [source, *source.lists]
        elif self._in_aggregate and not source.lists:
            source.host = many
            many.below.append(source)
        else:
            what = f"the subquery `{text_of(select)[:60]}` reads a row of `{many.alias}`, of which there are several"
            raise self._error(node, what, "join its table in the query itself")
        return source

    def _found(self, source: Source) -> str:
        """The condition that a join of a subquery finds a row."""
        path = self._path_of(source)
        if self._in_aggregate and not source.having and not source.lists:
            source.value = "count(*)"
            return f"{write_path(Column(name=path[-1], path=path[:-1]))} > 0"
        if source.grouped or source.many:
            of_rows = path if source.present is source else (source.present.name,)
            found = f"count({write_path(Column(name=of_rows[-1], path=of_rows[:-1]))}) > 0"
            if not source.having:
                return found
            having = (text_of(self._of_rows(one, source, having=True)) for one in source.having)
            return joined([found, *having])
        return f"{write_path(Column(name=source.entity.key[0], path=path))} is not null"

    def _existing(self, node: Any) -> Source:
        """The join of the subquery of EXISTS."""
        source = self._subquery(node.this, node)
        if source.grouped and not source.partition:
            raise self._error(node, "EXISTS of an aggregate is always true", "select a column in the subquery")
        return source

    def _scalar(self, select: Any, node: Any) -> str:
        """The name of a join whose value is that of a subquery. Equal subqueries share one."""
        known, text = self._known, text_of(select)
        if not self._in_aggregate and text in known:
            return known[text]
        found = self._new_scalar(select, node)
        if not self._in_aggregate:
            self._known = {**known, text: found}
        return found

    def _new_scalar(self, select: Any, node: Any) -> str:
        source = self._subquery(select, node)
        assert source.shown is not None
        assert source.inside is not None
        if len(source.shown) != 1:
            raise self._error(
                node, "a subquery in an expression selects several columns", "write one subquery for each"
            )
        (value,) = source.shown.values()
        if source.partition and not source.first and not (source.grouped and source.partition <= set(source.on)):
            raise self._error(node, "a subquery in an expression has GROUP BY", "remove it: its WHERE joins one row's")
        if not source.grouped and source.many:
            what = f"the subquery may find several rows of `{source.entity.name}`"
            raise self._error(node, what, "add `order by ... limit 1`, or an aggregate")
        if source.lists or source.having:
            return f"({text_of(self._of_rows(value, source))})"
        source.value = self._write(value, source.inside)
        path = self._path_of(source)
        return write_path(Column(name=path[-1], path=path[:-1]))

    def _write(self, node: Any, scope: Scope) -> str:
        """The expression as an author of a tree writes it in this scope."""
        return text_of(self._rewritten(node, scope))

    def _rewritten(self, node: Any, scope: Scope, empty: Source | None = None) -> Any:
        exp = self._exp

        def named(text: str) -> Any:
            return exp.Var(this=text)

        def change(one: Any) -> Any:
            match one:
                case exp.Window():
                    raise self._window(one)
                case exp.Exists():
                    return named(f"({self._found(self._existing(one))})")
                case exp.Subquery() if isinstance(one.this, exp.Select):
                    return named(self._scalar(one.this, one))
                case exp.Anonymous() if str(one.this).lower() == "array" and isinstance(
                    (one.expressions or [None])[0], exp.Select
                ):
                    return named(f"coalesce({self._scalar(self._listed(one.expressions[0]), one)}, json_build_array())")
                case exp.Anonymous() if str(one.this).lower() == "coalesce" and one.expressions:
                    last = one.expressions[-1].unnest()
                    if self._is_empty_array(last):
                        last = exp.Literal.string("[]")
                    literal = last.this if isinstance(last, exp.Cast) else last
                    built = {"[]": "json_build_array()", "{}": "json_build_object()"}.get(str(literal.this))
                    if built and isinstance(literal, exp.Literal):
                        if any(self._is_array(part, scope) for part in one.expressions[:-1]):
                            built = "json_build_array()"  # `'{}'` is an empty array of SQL, and an empty object of json
                        parts = [self._rewritten(part, scope, empty) for part in one.expressions[:-1]]
                        return exp.Anonymous(this="coalesce", expressions=[*parts, named(built)])
                case exp.Anonymous() if str(one.this).lower() in _WHOLE_ROWS and one.expressions:
                    if whole := self._whole_row(one.expressions[0], scope):
                        return self._rewritten(whole, scope, empty)
                    return self._rewritten(one.expressions[0], scope, empty)
                case exp.Filter() if is_aggregate(one.this):
                    return self._aggregate(one, scope)
                case exp.Anonymous() if is_aggregate(one):
                    return self._aggregate(one, scope)
                case exp.Column():
                    return self._column(one, scope, empty)
            return one

        return node.copy().transform(change)

    def _is_empty_array(self, node: Any) -> bool:
        """Whether a node is `array[]::int[]` or `'{}'::int[]`."""
        exp = self._exp
        cast = isinstance(node, exp.Cast) and text_of(node.to).endswith("[]")
        inner = node.this if cast else node
        return (isinstance(inner, exp.Array) and not inner.expressions) or (cast and str(inner.this) == "{}")

    def _is_array(self, node: Any, scope: Scope) -> bool:
        """Whether a term is an array of SQL, and no json."""
        exp = self._exp
        match node:
            case exp.Paren() | exp.Filter():
                return self._is_array(node.this, scope)
            case exp.Anonymous(this=name):
                parts = node.expressions if str(name).lower() == "coalesce" else ()
                return str(name).lower() in ("array_agg", "array") or any(self._is_array(one, scope) for one in parts)
            case exp.Array():
                return True
            case exp.Subquery(this=exp.Select(expressions=[term])):
                return self._is_array(term.unalias(), scope)
            case exp.Column() if found := self._maybe(node, scope):
                source, name = found
                if source.shown is None or source.inside is scope:
                    return name in source.entity.columns and source.entity.columns[name].array
                return source.inside is not None and self._is_array(source.shown[name], source.inside)
        return False

    def _listed(self, select: Any) -> Any:
        """The select of `array(select x ... order by y)` as one of `array_agg(x order by y)`."""
        exp, select = self._exp, select.copy()
        term = self._only_term(select, select)
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
        if empty is not None and (source is empty or self._is_below(source, empty)):
            return exp.Null()
        path = at.sources[source.alias][1] if source.alias in at.sources else ()
        inside = source.inside is at
        if source.shown is not None and not inside:
            return self._shown(source, name, column)
        if at is self._scope and self._many_on_path(source) is not None and not self._in_aggregate:
            many = self._many_on_path(source)
            assert many is not None
            what = f"`{text_of(column)}` has a value for each row of `{many.alias}`, not one for each document"
            raise self._error(
                column, what, "put it into an aggregate and group by the root's key, or leave out what makes it flat"
            )
        return exp.Var(this=write_path(Column(name=name, path=path)))

    _in_aggregate = 0
    _relative: Source | None = None
    _known: Mapping[str, str] = MappingProxyType({})

    def _outer(self, column: Any, scope: Scope) -> Any:
        """A column of the query around a subquery: of the row above the subquery's rows."""
        source = next((one for one, path in scope.sources.values() if not path), None)
        assert scope.above is not None
        above, name = self._resolved(column, scope.above)
        path = self._above_path(source, above) if source is not None else ()
        if not path:
            what = f"`{text_of(column)}` is a column of another row than that which the subquery joins"
            raise self._error(column, what, "join both tables in the query itself")
        return self._exp.Var(this=write_path(Column(name=name, path=path)))

    def _shown(self, source: Source, name: str, column: Any) -> Any:
        """A term of a subquery, in the query around it."""
        exp = self._exp
        assert source.shown is not None
        assert source.inside is not None
        if name == source.number:
            raise self._error(
                column,
                f"`{text_of(column)}` is a number of rows",
                f"write `{text_of(column)} = 1` to join the first row",
            )
        if source.in_list:
            return self._shown_in_list(source, name, column)
        if source.grouped or not source.many:
            return exp.Paren(this=self._of_rows(source.shown[name], source))
        what = f"`{text_of(column)}` has a value for each row of `{source.alias}`"
        if self._in_aggregate:
            return self._of_rows(source.shown[name], source)
        raise self._error(column, what, "put it into an aggregate, and group by the root's key")

    def _shown_in_list(self, source: Source, name: str, column: Any) -> Any:
        """A term of a grouped subquery that joins groups to the rows of a list: the value of a join below that list."""
        exp = self._exp
        assert source.shown is not None
        assert source.inside is not None
        assert source.parent is not None
        if not self._in_aggregate:
            what = f"`{text_of(column)}` has a value for each row of `{source.parent.alias}`"
            raise self._error(column, what, "put it into an aggregate")
        node = source.shown[name]
        if isinstance(node, exp.Column):
            what = f"`{text_of(column)}` is a column that groups the subquery"
            raise self._error(column, what, f"name the column of `{source.parent.alias}` that is equal to it")
        around, self._in_aggregate = self._in_aggregate, 0
        value = self._write(node, source.inside)
        self._in_aggregate = around
        if not source.inner:
            value = f"case when count(*) > 0 then {value} end"
        made = replace(source, name=self._unique(f"{source.name}_{name}"), value=value, inner=False, in_list=False)
        source.parent.below.append(made)
        path = (*self._path_of(source.parent), made.name)
        return exp.Var(this=write_path(Column(name=path[-1], path=path[:-1])))

    def _of_rows(self, node: Any, source: Source, *, having: bool = False) -> Any:
        """An expression of a subquery in the query around it. Where HAVING leaves the subquery's row out, it is null."""
        assert source.inside is not None
        outside, path = Scope(rows=source), self._path_of(source)
        for alias, (one, below) in source.inside.sources.items():
            of_list = any(one is each or self._is_below(one, each) for each in source.lists)
            outside.sources[alias] = (one, below if of_list else (*path, *below))
        exp, made = self._exp, self._outside(node, outside, source)
        simple = isinstance(node, exp.Column) or is_aggregate(node.this if isinstance(node, exp.Filter) else node)
        if source.grouped and source.partition and not source.inner and not simple:
            made = exp.Var(this=f"case when count({source.present.name}) > 0 then {text_of(made)} end")
        if source.having and not source.inner and not having:
            found = joined([text_of(self._outside(one, outside, source)) for one in source.having])
            return self._exp.Var(this=f"case when {found} then {text_of(made)} end")
        return made

    def _pushed_subquery(self, condition: Any) -> bool:
        """Whether a condition of WHERE with a subquery went to the list whose rows it chooses."""
        sources = [self._source_of(column) for column in self._own_columns(condition)]
        lists = {id(many): many for one in sources if (many := self._many_on_path(one)) is not None}
        found = next(iter(lists.values()), None)
        if len(lists) != 1 or found is None or found.inside is None or not found.inner or found.shown is not None:
            return False
        if any(one is not found and one.alias not in found.inside.sources for one in sources):
            return False
        self._in_aggregate, self._relative = 1, found
        text = self._condition(condition, found.inside)
        self._in_aggregate, self._relative = 0, None
        found.conditions.append(self._exp.Var(this=text))
        return True

    def _path_of(self, source: Source) -> Path:
        """The path of a table of the query in the expressions of the root."""
        if source.parent is None or source is self._relative:
            return ()
        if any(one is source for one in self._joins) or source.owner is not None:
            return (source.name,)
        if source.host is not None:
            return (*self._path_of(source.host), source.name)
        return (*self._path_of(source.parent), source.name)

    def _outside(self, node: Any, outside: Scope, source: Source, *, aggregated: bool = False) -> Any:
        """A term of a subquery over the tables of the query around it. `aggregated`: the term is a part of an aggregate."""
        exp = self._exp

        def change(one: Any) -> Any:
            match one:
                case exp.Filter() if source.grouped and is_aggregate(one.this):
                    return self._outside_aggregate(one, one.this, outside, source)
                case exp.Anonymous() if source.grouped and is_aggregate(one) and one.expressions:
                    return self._outside_aggregate(one, one, outside, source)
                case exp.Column() if one.table in self._scope.sources and one.table not in outside.sources:
                    return self._column(one, self._scope, None)
                case exp.Column():
                    return self._outside_column(one, outside, source, aggregated=aggregated)
            return one

        return node.copy().transform(change)

    def _outside_column(self, column: Any, outside: Scope, source: Source, *, aggregated: bool = False) -> Any:
        at, name = self._inside_column(column, outside)
        if source.grouped and not aggregated and not self._within(column) and name in source.on:
            parent, above = source.on[name]
            own = text_of(self._column(self._exp.column(above, table=parent.alias), self._scope, None))
            found = f"count({source.present.name}) > 0"
            return self._exp.Var(this=own if source.inner else f"case when {found} then {own} end")
        path = next(path for one, path in outside.sources.values() if one is at)
        return self._exp.Var(this=write_path(Column(name=name, path=path)))

    def _outside_aggregate(self, node: Any, call: Any, outside: Scope, source: Source) -> Any:
        """An aggregate of a subquery, over the rows of its last list. A `case` over a column of that list makes an aggregate of
        columns above it count each of its rows."""
        exp, rows = self._exp, source.counted
        name = str(call.this).lower()
        first = call.expressions[0]
        star = isinstance(first, exp.Star | exp.Literal)
        sure = all(one.inner for one in source.lists)
        within = [
            self._inside_column(c, outside)[0]
            for c in node.find_all(exp.Column)
            if c.table not in self._scope.sources or c.table in outside.sources
        ]
        below = any(one is rows or self._is_below(one, rows) for one in within)
        if source.lists and not sure and (star or (not below and name not in _ONCE and not call.find(exp.Distinct))):
            what = f"`{text_of(node)}` counts a row also where `{rows.alias}` has none"
            raise self._error(node, what, "write `inner join` in the subquery, or count a column of that table")
        if source.lists and not sure and below and not self._is_strict(call, rows, outside):
            what = f"`{text_of(node)}` counts a row of nulls where `{rows.alias}` has no row"
            raise self._error(node, what, "write `inner join` in the subquery")
        made = node.copy()
        aggregate = made.this if isinstance(made, exp.Filter) else made
        if star:
            aggregate.set("expressions", [exp.Var(this=rows.name)])
        elif source.lists and sure and not below:
            argument = aggregate.expressions[0]
            while isinstance(argument, exp.Order | exp.Distinct):
                argument = argument.this if isinstance(argument, exp.Order) else argument.expressions[0]
            key = exp.Var(this=write_path(Column(name=rows.entity.key[0], path=(rows.name,))))
            found = exp.Is(this=key, expression=exp.Null(), negate=True)
            argument.replace(exp.Case(ifs=[exp.If(this=found, true=argument.copy())]))
        for part in list(made.find_all(exp.Distinct)):
            if len(part.expressions) > 1:  # sqlglot would write one value
                terms = (text_of(self._outside(one, outside, source, aggregated=True)) for one in part.expressions)
                part.replace(exp.Var(this=f"DISTINCT {', '.join(terms)}"))
        text = text_of(
            made.transform(
                lambda one: self._outside_column(one, outside, source) if isinstance(one, exp.Column) else one
            )
        )
        missing = name == "count" and source.partition and not source.inner
        return exp.Var(this=f"case when count({source.present.name}) > 0 then {text} end" if missing else text)

    def _is_strict(self, call: Any, rows: Source, outside: Scope) -> bool:
        """Whether an aggregate ignores a row of nulls of its last list."""
        argument = call.expressions[0]
        while isinstance(argument, self._exp.Order | self._exp.Distinct):
            argument = argument.this if isinstance(argument, self._exp.Order) else argument.expressions[0]
        if str(call.this).lower() in _LISTS or not isinstance(argument, self._exp.Column):
            return False
        found = self._inside_column(argument, outside)[0]
        return found is rows or self._is_below(found, rows)

    def _inside_column(self, column: Any, outside: Scope) -> tuple[Source, str]:
        if column.table and column.table in outside.sources:
            source = outside.sources[column.table][0]
            if column.name in source.entity.columns:
                return source, column.name
            raise self._error(
                column, f"`{column.table}` has no column `{column.name}`", suggest(column.name, source.entity.columns)
            )
        if column.table:
            raise self._error(column, f"there is no table `{column.table}`", suggest(column.table, outside.sources))
        for one, _ in outside.sources.values():
            if column.name in one.entity.columns:
                return one, column.name
        raise self._error(column, f"there is no column `{column.name}`", "write `table.column`")

    def _within(self, node: Any) -> bool:
        """Whether a node is inside an aggregate."""
        while node is not None:
            if is_aggregate(node) or node.key == "filter":
                return True
            node = node.parent
        return False

    def _is_listed(self, column: Any) -> bool:
        return self._many_on_path(self._source_of(column)) is not None

    def _lists(self) -> list[Source]:
        """The tables that the query itself joins to many rows."""
        return [one for one in self._joins if one.many and not one.grouped and not one.expression]

    def _aggregate(self, node: Any, scope: Scope) -> Any:
        """An aggregate over the grouped rows of the query, or over the rows of a subquery."""
        exp = self._exp
        call = node.this if isinstance(node, exp.Filter) else node
        name = str(call.this).lower()
        if not call.expressions or any(not one.expressions for one in call.find_all(exp.Distinct)):
            raise self._error(node, f"`{name}` has no argument", f"write `{name}(...)` around one expression")
        whole = self._aggregated_row(call, scope)
        if whole:
            call.set("expressions", whole)
        rows = scope.rows
        if scope is not self._scope:
            return self._rows_counted(node, call, name, None, scope)
        lists = self._lists()
        if not lists and self._tree.args.get("group"):
            return self._of_one_row(node, call, name)
        if not lists:
            what = f"`{text_of(node)}` aggregates all rows of the query"
            raise self._error(node, what, "group by the root's key, and join the rows to aggregate")
        used = {id(m): m for c in self._own_columns(node) if (m := self._many_on_path(self._source_of(c))) is not None}
        star = not used
        argument = call.expressions[0].this if isinstance(call.expressions[0], exp.Order) else call.expressions[0]
        of_root = not any(map(self._is_listed, self._own_columns(argument))) and isinstance(call, exp.Anonymous)
        if (star and name in _ONCE and call.find(exp.Column)) or (of_root and name in ("first", "last")):
            value = exp.Paren(this=self._rewritten(argument, scope))
            if not isinstance(node, exp.Filter):
                return value
            if any(map(self._is_listed, self._own_columns(node.expression))):
                what = f"`{text_of(node)}` chooses rows of a list for a value of `{self._root_alias()}`"
                raise self._error(node, what, "name a column of the list in the aggregate")
            found = self._rewritten(node.expression.this, scope)
            return exp.Paren(this=exp.Case(ifs=[exp.If(this=found, true=value)]))
        if star and isinstance(argument, exp.Expression) and argument.find(exp.Column):
            return self._of_root(node, name, argument, rows)
        distinct = name in _ONCE or any(isinstance(part, exp.Distinct) for part in call.find_all(exp.Distinct))
        target = rows if star or rows is None else next((m for m in used.values() if m is rows), None)
        if target is None and not star:
            if len(used) > 1:
                raise self._error(
                    node, f"`{text_of(node)}` reads several lists", "write one aggregate for each of them"
                )
            (target,) = used.values()
            if any(one.inner and self._is_below(one, target) for one in lists):
                what = f"`{text_of(node)}` reads those rows of `{target.alias}` that have a row of another list below"
                raise self._error(node, what, "aggregate in subqueries: `(select ... where ...)`")
            if not distinct:
                what = f"`{text_of(node)}` counts each row of `{target.alias}` once for each row of another list"
                raise self._error(node, what, "aggregate it in a subquery: `(select ... where ...)`, or use `distinct`")
        if target is None:
            raise self._error(node, f"`{text_of(node)}` counts pairs of rows of several lists", "count in subqueries")
        return self._rows_counted(node, call, name, target, scope, whole=bool(whole))

    def _own_columns(self, node: Any) -> Iterator[Any]:
        """The columns of the query itself in a node, also those in its subqueries."""
        for column in node.find_all(self._exp.Column):
            within, known = column.find_ancestor(self._exp.Select), False
            while within is not None and within is not self._tree and not known:
                aliases = [one.alias_or_name for one in within.find_all(self._exp.Table)]
                known = column.table in aliases or not column.table
                within = within.find_ancestor(self._exp.Select)
            if not known:
                yield column

    def _of_one_row(self, node: Any, call: Any, name: str) -> Any:
        """The aggregate over a group of one row."""
        exp, argument = self._exp, call.expressions[0]
        argument = argument.this if isinstance(argument, exp.Order) else argument
        argument = argument.expressions[0] if isinstance(argument, exp.Distinct) else argument
        value = text_of(self._rewritten(argument, self._scope))
        star = isinstance(argument, exp.Star)
        if name == "count":
            made = "1" if star else f"case when {value} is not null then 1 else 0 end"
        elif name in ("json_agg", "jsonb_agg", "array_agg"):
            made = f"array[{value}]" if name == "array_agg" else f"json_build_array({value})"
        elif name in ("sum", "avg", "first", "last", "string_agg", *_ONCE):
            made = value
        else:
            raise self._error(node, f"`{text_of(node)}` aggregates one row", f"write `{value}`")
        if isinstance(node, exp.Filter):
            condition = text_of(self._rewritten(node.expression.this, self._scope))
            made = f"case when {condition} then {made} {'else 0 ' if name == 'count' else ''}end"
        return exp.Paren(this=exp.Var(this=made))

    def _of_root(self, node: Any, name: str, argument: Any, rows: Source | None) -> Any:
        """An aggregate over a value that is the same in all rows of a group, one for each row of the list."""
        exp = self._exp
        distinct = isinstance(argument, exp.Distinct) and len(argument.expressions) == 1
        value = text_of(self._rewritten(argument.expressions[0] if distinct else argument, self._scope))
        number = "" if rows is None else f"count({write_path(Column(name=rows.name))})"
        number = number if rows is None or rows.inner else f"greatest({number}, 1)"
        made = {
            "avg": f"({value})",
            "count": f"case when {value} is not null then {'1' if distinct else number} else 0 end",
            "sum": f"({value}) {'' if distinct else f'* {number}'}",
        }.get(name, "")
        alone = distinct or name == "avg" or (rows is not None and len(self._lists()) == 1)
        if not made or not alone or isinstance(node, exp.Filter):
            what = f"`{text_of(node)}` aggregates a value of `{self._root_alias()}` once for each row of a list"
            raise self._error(node, what, "aggregate it in a subquery, or name a column of the list in it")
        return exp.Paren(this=exp.Var(this=made))

    def _aggregated_row(self, call: Any, scope: Scope) -> list[Any] | None:
        """The arguments of `json_agg(t)` with the object of the row."""
        exp, (first, *rest) = self._exp, call.expressions
        inner = first.this if isinstance(first, exp.Order) else first
        whole = self._whole_row(inner, scope)
        if whole is None or str(call.this).lower() == "count":
            return None
        return [exp.Order(this=whole, expressions=first.expressions) if isinstance(first, exp.Order) else whole, *rest]

    def _rows_counted(
        self, node: Any, call: Any, name: str, target: Source | None, scope: Scope, *, whole: bool = False
    ) -> Any:
        """The aggregate's text over the rows of `target`; None: of the subquery's own rows. A left join without a row has one row
        of nulls."""
        exp = self._exp
        rows = write_path(Column(name=target.name)) if target is not None else "*"
        star = isinstance(call.expressions[0], exp.Star | exp.Literal)
        alone = len(self._lists()) == 1
        if self.rows not in (None, target) and target is not None and not target.inner:
            alone = False  # each row of a group without a row of the list counts
        if star and name == "count":
            sure = target is None or target.inner or self._needs_row(node, target)
            if target is not None and not sure and (isinstance(node, exp.Filter) or not alone):
                what = f"`{text_of(node)}` counts a row also where `{target.alias}` has none"
                raise self._error(node, what, f"write `count({target.alias}.{target.entity.key[0]})`")
            call.set("expressions", [exp.Var(this=rows)])
            text = self._inside(node, scope)
            if target is not None and not target.inner and not isinstance(node, exp.Filter):
                return exp.Var(this=f"greatest({text}, 1)")
            return exp.Var(this=text)
        if target is None or target.inner or self._needs_row(node, target):
            return exp.Var(this=self._inside(node, scope))
        argument = call.expressions[0]
        argument = argument.this if isinstance(argument, exp.Order) else argument
        argument = argument.expressions[0] if isinstance(argument, exp.Distinct) else argument
        if name in ("json_agg", "jsonb_agg") and alone and not isinstance(node, exp.Filter):
            nothing = "null" if whole else text_of(self._rewritten(argument, scope, empty=target))
            return exp.Var(
                this=f"case when count({rows}) = 0 then json_build_array({nothing}) else {self._inside(node, scope)} end"
            )
        if name in _LISTS:
            key = target.entity.key[0]
            what = f"`{name}` has an element of nulls where `{target.alias}` has no row"
            raise self._error(
                node, what, f"add `filter (where {target.alias}.{key} is not null)`, or write `inner join`"
            )
        if self._strict(argument, target):
            return exp.Var(this=self._inside(node, scope))
        sums = name in ("sum", "min", "max", "avg") and not argument.find(exp.Select)
        if not sums or isinstance(node, exp.Filter) or not alone:
            what = f"`{text_of(node)}` counts a row of nulls where `{target.alias}` has no row"
            raise self._error(node, what, f"add `filter (where {target.alias}.{target.entity.key[0]} is not null)`")
        nothing = text_of(self._rewritten(argument, scope, empty=target))
        return exp.Var(this=f"case when count({rows}) = 0 then {nothing} else {self._inside(node, scope)} end")

    def _inside(self, node: Any, scope: Scope) -> str:
        """The text of an aggregate, whose parts name columns of many rows."""
        exp = self._exp
        self._in_aggregate += 1
        try:
            return text_of(
                node.copy().transform(
                    lambda one: (
                        self._column(one, scope, None)
                        if isinstance(one, exp.Column)
                        else self._distinct(one, scope)
                        if isinstance(one, exp.Distinct) and len(one.expressions) > 1
                        else self._rewritten(one, scope)
                        if isinstance(one, exp.Subquery | exp.Exists)
                        or (isinstance(one, exp.Anonymous) and str(one.this).lower() in _WHOLE_ROWS)
                        else one
                    )
                )
            )
        finally:
            self._in_aggregate -= 1

    def _distinct(self, node: Any, scope: Scope) -> Any:
        """`distinct x, ', '`, which sqlglot would write as one value."""
        return self._exp.Var(this=f"DISTINCT {', '.join(self._inside(part, scope) for part in node.expressions)}")

    def _needs_row(self, node: Any, target: Source) -> bool:
        """Whether the filter of an aggregate leaves out the row of nulls of a left join."""
        exp = self._exp
        if not isinstance(node, exp.Filter):
            return False
        for one in conjuncts(node.expression.this, exp):
            test = one.unnest()
            inner = test.this.unnest() if isinstance(test, exp.Not) else test
            if isinstance(
                inner, exp.Is
            ):  # `is not null` and `is true` leave out nulls, `is null` and `is not true` take them
                negated = isinstance(test, exp.Not) is not bool(inner.args.get("negate"))
                if negated is isinstance(inner.expression, exp.Null) and self._strict(inner.this, target):
                    return True
            elif self._strict(test, target):
                return True
        return False

    # The joins of the tree

    def _join(self, source: Source) -> dict[str, Any]:
        inside = source.inside
        assert inside is not None
        nested = source not in self._joins
        on = {c: self._parent_column(parent, name, source, nested=nested) for c, (parent, name) in source.on.items()}
        is_list = source.grouped or source.many
        made: dict[str, Any] = {"many" if is_list else "one": source.entity.name, "on": on}
        if source.recursive:
            made |= {"recursive": _LEVELS} | ({} if source.value is not None else {"as_list": True})
        conditions = [self._write(one, inside) for one in source.conditions]
        if conditions:
            made["where"] = joined(conditions)
        if order := [text for term in source.order for text in self._ordered(term, source)]:
            made["order_by"] = order
        by = source.owner or source
        wanted = by.inner and (source.owner is None or source.inner)
        if wanted and source.parent is not None and (by.partition or not by.grouped):
            made["required"] = True
        if source.below:
            made["join"] = {one.name: self._join(one) for one in source.below}
        if source.value is not None:
            made["value"] = source.value
        return made

    def _parent_column(self, parent: Source, name: str, source: Source, *, nested: bool) -> str:
        if name == ALL:
            return name
        path: Path = () if nested else self._path_of(parent)
        at: Source | None = parent
        while source.host is not None and at is not None and at is not source.host:
            path, at = (at.name, *path), at.parent
        return write_path(Column(name=name, path=path))

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
