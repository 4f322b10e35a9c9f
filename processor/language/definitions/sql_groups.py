"""Finds the root of a query: the table, or the groups, whose rows are the documents.

Reads GROUP BY (and DISTINCT) of columns that are no key of a table: each group is a document.

    select item, count(*) as sales from sale where item is not null group by item      root: {group: sale, by: [item]}

The groups become a root that no table has. The table whose columns make the groups is a list below it. So the reader of views
reads the other parts of the query as for a query that is grouped by the key of a table.

A group of null is a row of the query, but no document has a null key. So the query must say that no such row counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from processor.language.definitions.names import write_path
from processor.language.definitions.sql_tables import (
    Scope,
    Source,
    TablesReader,
    filled,
    is_aggregate,
    text_of,
    where_of,
)
from processor.language.product.expressions.expression import Column
from processor.values.entity import ColumnType

Tables = Sequence[tuple[Source, list[Any], bool]]
_SURE: Final = (
    "lower", "upper", "trim", "btrim", "ltrim", "rtrim", "left", "right", "substring", "substr", "date_trunc", "extract",
    "abs", "round", "trunc", "floor", "ceil", "md5", "sha256", "hmac_sha256", "concat", "concat_ws", "replace",
)  # fmt: skip
"""Functions that give no null for values that are not null."""
_SETS: Final = {"rollup", "cube", "groupingsets"}
_DATES: Final = ("date", "timestamp", "timestamptz", "text", "varchar")


class GroupReader(TablesReader):
    """Reads the root of a query, and its groups. `rows`: the table whose rows make the groups; None where the root is a table.
    `by`: the text of each column of the groups."""

    rows: Source | None = None
    by: dict[str, str]

    def _distinct_groups(self, tree: Any) -> None:
        """Makes `select distinct a, b` a query that is grouped by its terms."""
        distinct = tree.args.get("distinct")
        if not distinct or distinct.args.get("on") or tree.args.get("group"):
            return
        terms = [term.unalias() for term in tree.expressions]
        if any(one.find(self._exp.Star) or any(map(is_aggregate, one.find_all(self._exp.Anonymous))) for one in terms):
            return
        tree.set("distinct", None)
        tree.set("group", self._exp.Group(expressions=[one.copy() for one in terms]))

    def _root(self, tree: Any, tables: Tables) -> Source:
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
                return self._group_root(tree, tables)
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
            while source is not root and (not source.many or source.grouped):
                source = source.parent or root
            if source is not root:
                what = f"GROUP BY `{text_of(node)}` makes a row for each row of `{source.alias}`"
                raise self._error(node, what, f"group by columns of `{root.alias}` alone")

    def _group_root(self, tree: Any, tables: Tables) -> Source:
        """The root of a query whose GROUP BY names no key. The columns of the groups become columns of the root, in the whole
        query but in aggregates."""
        exp, group = self._exp, tree.args["group"]
        scope = Scope(sources={one.alias: (one, ()) for one, _, _ in tables})
        kinds = {*filled(group)} - {"expressions"} | {one.key for one in group.expressions} & _SETS
        if kinds:
            raise self._error(
                group, f"`{text_of(group).strip()}` makes groups of several kinds", "group by columns alone"
            )
        for part in (*tree.expressions, group, tree.args.get("having"), tree.args.get("where"), *self._ons(tables)):
            self._qualify(part, scope)
        rows = self._rows_of(group, tables, scope)
        names = self._names_of(tree, group, rows, scope)
        self.by, self.rows = {name: self._own_text(one, rows) for name, one in names.items()}, rows
        self._check_nulls(tree, tables, names, rows)
        columns = dict.fromkeys(names, ColumnType(name="string"))
        alias = "groups of " + rows.alias
        entity = replace(rows.entity, name=alias, key=tuple(names), columns=columns, computed={})
        root = Source(name=alias, alias=alias, entity=entity, line=rows.line)
        for part in (*tree.expressions, group, tree.args.get("having")):
            self._replace(part, {text_of(one): exp.column(name, table=alias) for name, one in names.items()})
        for one, on, _ in tables:
            if one is not rows and any(c.table == one.alias for c in group.find_all(exp.Column)):
                plain = {text_of(node): exp.column(name, table=alias) for name, node in names.items()}
                on[:] = [self._replaced(condition, plain) for condition in on]
        rows.name, rows.parent, rows.inner = rows.entity.name, root, True
        rows.on = {text: (root, name) for name, text in self.by.items()}
        rows.inside = Scope(sources={rows.alias: (rows, ())}, above=self._scope)
        self._names.add(rows.name)
        self._scope.sources[root.alias] = (root, ())
        self._scope.sources[rows.alias] = (rows, (rows.name,))
        self._joins.append(rows)
        return root

    def _ons(self, tables: Tables) -> Iterator[Any]:
        for _, on, _ in tables:
            yield from on

    def _qualify(self, part: Any, scope: Scope) -> None:
        """Puts its table before each column, but in subqueries."""
        exp = self._exp
        for column in part.find_all(exp.Column) if part is not None else ():
            within = column.find_ancestor(exp.Select)
            if not column.table and not isinstance(column.this, exp.Star) and within in (None, self._tree):
                source = self._maybe(column, scope)
                if source is not None:
                    column.set("table", exp.to_identifier(source[0].alias))

    def _rows_of(self, group: Any, tables: Tables, scope: Scope) -> Source:
        """The table whose columns make the groups: the first with such a term, on which those of the others depend."""
        exp = self._exp
        found: dict[int, Source] = {}
        for node in group.expressions:
            owners = {id(one): one for c in node.find_all(exp.Column) for one, _ in [self._resolved(c, scope)]}
            if len(owners) != 1:
                what = f"GROUP BY `{text_of(node)}` reads {'several tables' if owners else 'no table'}"
                raise self._error(node, what, "group by columns, or expressions, of one table")
            found |= owners
        for rows in found.values():
            mine = {text_of(n) for n in group.expressions if any(c.table == rows.alias for c in n.find_all(exp.Column))}
            others = [one for one in tables if id(one[0]) in found and one[0] is not rows]
            if rows.shown is not None:
                what = f"GROUP BY names a column of `{rows.alias}`, which is a subquery"
                raise self._error(group, what, "select from the table itself, and group that query")
            if all(self._depends(one, on, mine) for one, on, _ in others):
                return rows
        names = " and ".join(f"`{one.alias}`" for one in found.values())
        what = f"GROUP BY names columns of {names}, so a group is no value of one table's columns"
        raise self._error(group, what, "group by columns of one table, or by the key of a table")

    def _depends(self, source: Source, on: Sequence[Any], columns: set[str]) -> bool:
        """Whether the columns of the groups choose one row of a table."""
        found = set()
        for sides in filter(None, map(self._sides, on)):
            for mine, other in (sides, sides[::-1]):
                if mine.table == source.alias and text_of(other) in columns:
                    found.add(mine.name)
        return set(source.entity.key) <= found

    def _names_of(self, tree: Any, group: Any, rows: Source, scope: Scope) -> dict[str, Any]:
        """The terms that make the groups, by the names of the root's columns: those that the query selects them under."""
        exp = self._exp
        shown = {text_of(term.unalias()): term.alias for term in tree.expressions if term.alias}
        names: dict[str, Any] = {}
        for node in group.expressions:
            if all(self._resolved(c, scope)[0] is not rows for c in node.find_all(exp.Column)):
                continue
            name = shown.get(text_of(node)) or (node.name if isinstance(node, exp.Column) else "")
            if not name or name in names:
                raise self._error(node, f"GROUP BY `{text_of(node)}` has no name", f"select `{text_of(node)} as name`")
            names[name] = node.copy()
        return names

    def _own_text(self, node: Any, rows: Source) -> str:
        """The term in the form of `by`: over columns of the rows alone."""
        exp = self._exp

        def change(one: Any) -> Any:
            return exp.Var(this=write_path(Column(name=one.name))) if isinstance(one, exp.Column) else one

        return str(node.name) if isinstance(node, exp.Column) else text_of(node.copy().transform(change))

    def _replace(self, part: Any, columns: dict[str, Any]) -> None:
        """Puts columns of the root in place of the terms that make the groups, but not inside aggregates."""
        if part is None or is_aggregate(part) or part.key == "filter":
            return
        if made := columns.get(text_of(part)):
            part.replace(made.copy())
            return
        for child in list(part.iter_expressions()):
            self._replace(child, columns)

    def _replaced(self, node: Any, columns: dict[str, Any]) -> Any:
        self._replace(node, columns)
        return node

    def _check_nulls(self, tree: Any, tables: Tables, names: dict[str, Any], rows: Source) -> None:
        """Refuses a term that may be null in a row that counts."""
        exp = self._exp
        known = {text_of(exp.column(name, table=rows.alias)) for name in (*rows.entity.key, *rows.entity.not_null)}
        for condition in (*where_of(tree, exp), *(c for _, on, inner in tables if inner for c in on)):
            known |= set(self._not_null_by(condition.unnest()))
        for node in names.values():
            if not self._is_sure(node, known):
                text = self._own_text(node, rows)
                what = f"GROUP BY `{text}` has a group where it is null, and a document needs a key"
                raise self._error(node, what, f"add `where {text} is not null`, or declare the column `not_null`")

    def _not_null_by(self, condition: Any) -> Iterator[str]:
        """The terms that a condition on a row leaves no null in."""
        exp = self._exp
        if (
            isinstance(condition, exp.Is)
            and isinstance(condition.expression, exp.Null)
            and condition.args.get("negate")
        ):
            yield text_of(condition.this.unnest())
        elif isinstance(condition, exp.Not):
            test = condition.this.unnest()
            if (
                isinstance(test, exp.Is) and isinstance(test.expression, exp.Null) and not test.args.get("negate")
            ) or isinstance(test, exp.In | exp.Like | exp.ILike | exp.Between):
                yield text_of(test.this.unnest())
        elif isinstance(condition, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
            yield text_of(condition.left.unnest())
            yield text_of(condition.right.unnest())
        elif isinstance(condition, exp.In | exp.Like | exp.ILike | exp.Between) and condition.this:
            yield text_of(condition.this.unnest())

    def _is_sure(self, node: Any, known: set[str]) -> bool:
        """Whether a term is null in no row that counts."""
        exp = self._exp
        if text_of(node) in known:
            return True
        match node:
            case exp.Literal():
                return True
            case exp.Paren() | exp.Interval():
                return self._is_sure(node.this, known)
            case exp.Cast():
                kind = text_of(node.to).lower().partition("(")[0]
                return kind in _DATES and self._is_sure(node.this, known)
            case exp.Anonymous() if str(node.this).lower() == "coalesce":
                return any(self._is_sure(one, known) for one in node.expressions)
            case exp.Anonymous() if str(node.this).lower() in _SURE:
                return all(self._is_sure(one, known) for one in node.expressions)
        return False
