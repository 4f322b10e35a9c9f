"""Finds the root of a query: the table, or the groups, whose rows are the documents.

Reads GROUP BY (and DISTINCT) of columns that are no key of a table: each group is a document.

    select item, count(*) as sales from sale where item is not null group by item      root: {group: sale, by: [item]}

The groups become a root that no table has. The table whose columns make the groups is a list below it. So the reader of views
reads the other parts of the query as for a query that is grouped by the key of a table.

A group of null is a row of the query, but no document has a null key. So a term that may be null makes two columns of the key:
the term with a value in place of null, and whether it is null.

    select plan, count(*) as n from users group by plan       by: {plan: "coalesce(plan, '')", plan_null: "plan is null"}

Aggregates without GROUP BY are of one group of all rows:

    select count(*) as n from users                           by: {all: "'all'"}
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from processor.language.definitions.names import write_path
from processor.language.definitions.sql_parser import filled, text_of
from processor.language.definitions.sql_tables import (
    Scope,
    Source,
    TablesReader,
    free_name,
    is_aggregate,
    output_name,
    where_of,
)
from processor.language.product.expressions.expression import Column
from processor.values.entity import ColumnType

Tables = Sequence[tuple[Source, list[Any], bool]]
_SURE: Final = (
    "lower", "upper", "trim", "btrim", "ltrim", "rtrim", "left", "right", "substring", "substr", "date_trunc", "extract",
    "abs", "round", "trunc", "floor", "ceil", "md5", "sha256", "hmac_sha256", "concat", "concat_ws", "replace",
    "to_char", "split_part",
)  # fmt: skip
"""Functions that give no null for values that are not null."""
ALL: Final = "'all'"
"""The constant that all rows have, as the value of the one column of their group."""
_OF_ALL: Final = "all"
"""The name of this column."""
_SETS: Final = {"rollup", "cube", "groupingsets"}
_DATES: Final = ("date", "timestamp", "timestamptz", "text", "varchar")
_IN_PLACE_OF_NULL: Final = {
    "int": "0", "decimal": "0", "string": "''", "bool": "false", "date": "'1970-01-01'", "timestamp": "'1970-01-01'",
}  # fmt: skip
"""A value of each type that the key of a group may have."""
_RESULTS: Final = {
    "timestamp": ("date_trunc",),
    "string": ("lower", "upper", "trim", "btrim", "ltrim", "rtrim", "left", "right", "substring", "split_part", "to_char"),
}  # fmt: skip
"""Functions by the type of their results."""
_CASTS: Final = {
    "date": "date", "timestamp": "timestamp", "timestamptz": "timestamp", "text": "string", "varchar": "string", "int": "int",
    "bigint": "int", "boolean": "bool",
}  # fmt: skip


class GroupReader(TablesReader):
    """Reads the root of a query, and its groups. `rows`: the table whose rows make the groups; None where the root is a table.
    `by`: the text of each column of the groups."""

    rows: Source | None = None
    by: dict[str, str]

    def _make_groups(self, tree: Any) -> None:
        """Makes `select distinct a, b` a query that is grouped by its terms, and aggregates of all rows one of one group."""
        exp, distinct = self._exp, tree.args.get("distinct")
        if not distinct and not tree.args.get("group") and any(map(self._has_aggregate, tree.expressions)):
            tree.set("group", exp.Group(expressions=[exp.Literal.string(_OF_ALL)]))
        if not distinct or distinct.args.get("on") or tree.args.get("group"):
            return
        terms = [term.unalias() for term in tree.expressions]
        if any(one.find(exp.Star) or any(map(is_aggregate, one.find_all(self._exp.Anonymous))) for one in terms):
            return
        tree.set("distinct", None)
        tree.set("group", exp.Group(expressions=[one.copy() for one in terms]))

    def _has_aggregate(self, term: Any) -> bool:
        """Whether a term aggregates rows of the query itself."""
        exp = self._exp
        nodes = term.walk(prune=lambda one: isinstance(one, exp.Select | exp.Window))
        return any(is_aggregate(one) for one in nodes)

    def _root(self, tree: Any, tables: Tables, wanted: str) -> Source:
        """The table of which each row is a document: the first one, or that whose key the query groups by. `wanted`: the table
        to try in place of it."""
        first, group = tables[0][0], tree.args.get("group")
        if wanted:
            first = next(one for one, _, _ in tables if one.alias == wanted)
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
            found = {text for one in where_of(tree, self._exp) for text in self._not_null_by(one.unnest())}
            keyed = [
                one
                for one, _, inner in tables
                if one.shown is None
                and not one.of_groups
                and (inner or one is first or any(_is_of(text, one) for text in found))
                and set(one.entity.key) <= {name for at, name in columns if at is one}
            ]
            if keyed:
                return first if first in keyed else keyed[0]
            if wanted and not self._is_of_all(group):
                raise self._error(group, f"GROUP BY names no key of `{wanted}`", "group by columns of one table")
            return self._group_root(tree, tables, wanted or tables[0][0].alias)
        if first.shown is not None:
            what = f"the rows of the subquery `{first.alias}` are not those of one table"
            raise self._error(
                tree.args["from_"].this, what, "begin with the root, `from entity`, and join the subquery to it"
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

    def _group_root(self, tree: Any, tables: Tables, first: str) -> Source:
        """The root of a query whose GROUP BY names no key. The columns of the groups become columns of the root, in the whole
        query but in aggregates. `first`: the table whose rows are the one group of all."""
        exp, group = self._exp, tree.args["group"]
        scope = Scope(sources={one.alias: (one, ()) for one, _, _ in tables})
        kinds = {*filled(group)} - {"expressions"} | {one.key for one in group.expressions} & _SETS
        if kinds:
            raise self._error(
                group, f"`{text_of(group).strip()}` makes groups of several kinds", "group by columns alone"
            )
        for part in (*tree.expressions, group, tree.args.get("having"), tree.args.get("where"), *self._ons(tables)):
            self._qualify(part, scope)
        rows = scope.sources[first][0] if self._is_of_all(group) else self._rows_of(group, tables, scope)
        if rows.shown is not None:
            what = f"GROUP BY names a column of `{rows.alias}`, which is a subquery"
            raise self._error(group, what, "select from the table itself, and group that query")
        names = self._names_of(tree, group, rows, scope)
        self.by, self.rows = {name: self._own_text(one, rows) for name, one in names.items()}, rows
        shown = {name: exp.column(name, table="groups of " + rows.alias) for name in names}
        for name in self._nullable(tree, tables, names, rows):
            null = free_name(f"{name}_null", self.by)
            self.by |= {
                name: f"coalesce({self.by[name]}, {self._in_place_of_null(names[name], rows)})",
                null: f"{self.by[name]} is null",
            }
            found = exp.Not(this=exp.column(null, table=shown[name].table))
            shown[name] = exp.Paren(this=exp.Case(ifs=[exp.If(this=found, true=shown[name])]))
        columns = dict.fromkeys(self.by, ColumnType(name="string"))
        alias = "groups of " + rows.alias
        entity = replace(rows.entity, name=alias, key=tuple(self.by), columns=columns, computed={})
        root = Source(name=alias, alias=alias, entity=entity, line=rows.line)
        columns = {text_of(one): shown[name] for name, one in names.items()}
        for term in tree.expressions:
            if isinstance(term, exp.Column) and not isinstance(term.this, exp.Star):
                term.replace(exp.alias_(term.copy(), term.name))
        for part in (*tree.expressions, group, tree.args.get("having")):
            self._replace(part, columns)
        for one, on, _ in tables:
            if one is not rows and (one.of_groups or any(c.table == one.alias for c in group.find_all(exp.Column))):
                on[:] = [self._replaced(condition, columns) for condition in on]
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
            if rows.shown is not None or all(self._depends(one, on, mine) for one, on, _ in others):
                return rows
        names = " and ".join(f"`{one.alias}`" for one in found.values())
        what = f"GROUP BY names columns of {names}, so a group is no value of one table's columns"
        raise self._error(group, what, "group by columns of one table, or by the key of a table")

    def _is_of_all(self, group: Any) -> bool:
        return [text_of(one) for one in group.expressions] == [ALL]

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
        if self._is_of_all(group):
            return {_OF_ALL: group.expressions[0].copy()}
        for node in group.expressions:
            if all(self._resolved(c, scope)[0] is not rows for c in node.find_all(exp.Column)):
                continue
            name = shown.get(text_of(node)) or output_name(node, exp) or "group"
            names[free_name(f"{name}_key" if name == rows.entity.name else name, names)] = node.copy()
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

    def _nullable(self, tree: Any, tables: Tables, names: dict[str, Any], rows: Source) -> list[str]:
        """The terms that may be null in a row that counts."""
        exp = self._exp
        found: set[str] = set()
        for condition in (*where_of(tree, exp), *(c for _, on, inner in tables if inner for c in on)):
            found |= set(self._not_null_by(condition.unnest()))
        known = {text_of(exp.column(name, table=rows.alias)) for name in (*rows.entity.key, *rows.entity.not_null)}
        missing = not next(inner for one, _, inner in tables if one is rows) and tables[0][0] is not rows
        if missing and not any(_is_of(text, rows) for text in found):
            what = f"GROUP BY has a group of the rows without a row of `{rows.alias}`"
            raise self._error(tree.args["group"], what, "write `inner join`, or a condition on its columns in WHERE")
        nullable = [name for name, node in names.items() if not self._is_sure(node, found | known)]
        for name in nullable:
            text = self.by[name]
            if not self._in_place_of_null(names[name], rows):
                what = f"GROUP BY `{text}` has a group where it is null, and a document needs a key"
                raise self._error(
                    names[name], what, f"add `where {text} is not null`, or declare the column `not_null`"
                )
        return nullable

    def _in_place_of_null(self, node: Any, rows: Source) -> str:
        """A value of the type of a term; empty where the type is not known."""
        exp = self._exp
        match node:
            case exp.Column() if node.name in rows.entity.columns:
                kind = rows.entity.columns[node.name]
                return "" if kind.array else _IN_PLACE_OF_NULL.get(kind.name, "")
            case exp.Cast():
                return _IN_PLACE_OF_NULL.get(_CASTS.get(text_of(node.to).lower(), ""), "")
            case exp.Anonymous():
                name = str(node.this).lower()
                return next((_IN_PLACE_OF_NULL[kind] for kind, names in _RESULTS.items() if name in names), "")
            case exp.Extract():
                return "0"
            case exp.Substring() | exp.JSONExtractScalar() | exp.JSONBExtractScalar() | exp.DPipe():
                return "''"
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.And() | exp.Or() | exp.Not():
                return "false"
        return ""

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
            case exp.Substring() | exp.DPipe() | exp.Extract():
                return all(self._is_sure(one, known) for one in node.iter_expressions() if not isinstance(one, exp.Var))
            case exp.Cast():
                kind = text_of(node.to).lower().partition("(")[0]
                return kind in _DATES and self._is_sure(node.this, known)
            case exp.Anonymous() if str(node.this).lower() == "coalesce":
                return any(self._is_sure(one, known) for one in node.expressions)
            case exp.Anonymous() if str(node.this).lower() in _SURE:
                return all(self._is_sure(one, known) for one in node.expressions)
        return False


def _is_of(text: str, source: Source) -> bool:
    """Whether the text of a column names this table."""
    return text.replace('"', "").startswith(f"{source.alias}.")
