"""Rewrites a query into an equal one that the readers of queries take.

WITH and subqueries in FROM become tables of the query itself, wherever both give the same rows:

    select s.n from (select id, name as n from t) s               select t.name as n from t
    select * from (select a, count(*) as n from t group by a) s   the grouped query, its WHERE as HAVING
    select distinct on (a) a, b from t order by a, c              select a, first(b order by c) from t group by a
    the row with `row_number() over (partition by a order by c) = 1`: the same
    with recursive, over the levels of one table                  a join of the table to itself

A subquery that is not merged stays: sql_tables.py reads it as a join. It reads sqlglot's trees without importing sqlglot.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from processor.language.definitions.problems import WrongDefinition
from processor.language.definitions.sql_parser import filled, is_call, text_of
from processor.language.definitions.sql_tables import (
    OF_GROUPS,
    RECURSIVE,
    conjuncts,
    free_name,
    is_aggregate,
    output_name,
    where_of,
)
from processor.values.entity import Entity

_ROWS: Final = ("row_to_json", "to_json", "to_jsonb", "json_agg", "jsonb_agg")
_CLAUSES: Final = ("group", "having", "distinct", "limit", "offset", "windows", "qualify", "locks")
_MOST_NODES: Final = 50_000
"""Nodes that a query may copy from its subqueries: `x + x` of `x + x` of ... doubles with each."""
_MOST_TABLES: Final = 200
"""Tables of a query, after each name of WITH is replaced by its query."""


class Rewriter:
    """Rewrites the tree of one query, in place."""

    def __init__(self, exp: Any, entities: Mapping[str, Entity | None], line_of: Callable[[Any], int]) -> None:
        self._exp, self._entities, self._line_of = exp, entities, line_of
        self._tables = self._nodes = 0

    # Simplifying, for the reader of views

    def simplify(self, tree: Any) -> Any:
        """The query with as few subqueries in FROM as it needs."""
        exp = self._exp
        self._inline(tree, {})
        self._compare_columns(tree)
        if (
            any(join.args.get("using") or join.args.get("method") for join in tree.find_all(exp.Join))
            or any(isinstance(one.parent, exp.From | exp.Join | exp.Lateral) for one in tree.find_all(exp.Subquery))
            or (tree.args.get("joins") and any(isinstance(one, exp.Star) for one in tree.expressions))
        ):
            self._qualify(tree, [])
        return self.merge(tree)

    def merge(self, tree: Any) -> Any:
        """The query with its subqueries in FROM merged, where both give the same rows."""
        self._merge_below(tree)
        self._choose_rows(tree)
        return tree

    def _compare_columns(self, tree: Any) -> None:
        """Makes `a.code::text = b.code::text` an equality of columns, where both are text. Databases print it so."""
        exp = self._exp
        entities = [self._entities.get(table.name) for table in tree.find_all(exp.Table)]
        types = [one.columns for one in entities if one is not None]
        for equality in tree.find_all(exp.EQ):
            for cast in [side.unnest() for side in (equality.left, equality.right)]:
                if not isinstance(cast, exp.Cast) or text_of(cast.to).lower() not in ("text", "varchar"):
                    continue
                column = cast.this.unnest()
                found = [one[column.name] for one in types if isinstance(column, exp.Column) and column.name in one]
                if found and all(one.name == "string" and not one.array and not one.compare for one in found):
                    cast.replace(column)

    def _inline(self, select: Any, known: Mapping[str, Any]) -> None:
        """Puts the query of each name of WITH in place of the name."""
        exp, ctes = self._exp, dict(known)
        if clause := select.args.get("with_"):
            for cte in clause.expressions:
                named = cte.args["alias"].args.get("columns") or ()
                first = cte.this.left.unnest() if isinstance(cte.this, exp.SetOperation) else cte.this
                if named and isinstance(first, exp.Select):
                    terms = [one.unalias() for one in first.expressions]
                    aliased = [exp.alias_(term, name.copy()) for term, name in zip(terms, named, strict=False)]
                    first.set("expressions", aliased)
                if clause.args.get("recursive") and any(one.name == cte.alias for one in cte.this.find_all(exp.Table)):
                    ctes[cte.alias] = self._levels(select, cte)
                    continue
                self._inline(cte.this, ctes)
                ctes[cte.alias] = cte.this
            select.set("with_", None)
        for node in list(select.find_all(exp.Table, exp.Select)):
            if node is select or self._parent_select(node) is not select:
                continue
            if isinstance(node, exp.Select):
                self._inline(node, ctes)
                continue
            self._tables += 1
            if self._tables > _MOST_TABLES:
                what = (
                    f"the query reads more than {_MOST_TABLES} tables, with each name of WITH counted where it is used"
                )
                raise WrongDefinition(what, "split it into several products", self._line_of(node))
            if node.name in ctes and isinstance(node.this, exp.Identifier):
                body = ctes[node.name].copy()
                self._tables += sum(1 for _ in body.find_all(exp.Table))
                alias = exp.TableAlias(this=exp.to_identifier(node.alias_or_name))
                alias.this.meta.update(node.this.meta)
                node.replace(exp.Subquery(this=body, alias=alias))

    # WITH RECURSIVE

    def _levels(self, select: Any, cte: Any) -> Any:
        """A query of the table itself that gives the rows of WITH RECURSIVE, where these are a tree of that table's rows.

        From the tops down, each row has the rows above it. `recursive` is a join of the table to itself in scalar subqueries:

            select id, 1 as level ... union all select c.id, t.level + 1 ...
        1 + (select count(*) from t up where up.id = c.parent_id)

        With a column of the row at which each way starts, the rows are those below (or above) a row of the query around it.
        """
        exp, union, name = self._exp, cte.this, cte.alias
        parts = [union.left.unnest(), union.right.unnest()] if isinstance(union, exp.Union) else []
        if len(parts) != 2 or not all(isinstance(one, exp.Select) and self._is_plain(one) for one in parts):
            raise self._no_tree(cte, "it is no UNION ALL of two plain selects")
        tables = [[node for _, node in self._sources(one)] for one in parts]
        again = [one for one in tables[1] if one.name != name or not isinstance(one, exp.Table)]
        entity = self._entities.get(again[0].name) if len(again) == 1 and isinstance(again[0], exp.Table) else None
        if len(tables[0]) != 1 or len(tables[1]) != 2 or entity is None or tables[0][0].name != entity.name:
            raise self._no_tree(cte, "both of its parts read one table, and the second the query itself")
        for part, one in zip(parts, (tables[0][0], again[0]), strict=True):
            known = {one.alias_or_name: (*entity.columns, *entity.computed)}
            if part is parts[1]:
                way = next(each for each in tables[1] if each is not one)
                known[way.alias_or_name] = tuple(output_name(term, exp) for term in parts[0].expressions)
            self._write_out(part, known, {})
            for column in part.find_all(exp.Column):
                if not column.table:
                    self._name_table(column, [known], {})
        tree = _Tree(exp, entity, parts, again[0].alias_or_name, way.alias_or_name)
        if tree.up is None or len(parts[0].expressions) != len(parts[1].expressions):
            raise self._no_tree(cte, "its second part joins no row to the row before by one equality of columns")
        start = tree.start()
        if start is None:
            return tree.from_tops(lambda why: self._no_tree(cte, why), self._is_used(select, cte))
        made = tree.from_row(start, lambda why: self._no_tree(cte, why))
        self._join_at_start(select, name, start, tree, lambda why: self._no_tree(cte, why))
        return made

    def _no_tree(self, cte: Any, why: str) -> WrongDefinition:
        what = f"WITH RECURSIVE `{cte.alias}` is no tree of one table: {why}"
        cure = "write the product as a tree, with a `recursive` join of the table to itself"
        return WrongDefinition(what, cure, self._line_of(cte))

    def _is_used(self, select: Any, cte: Any) -> Callable[[str], bool]:
        exp = self._exp
        columns = [one for one in select.find_all(exp.Column, exp.Star) if one.find_ancestor(exp.CTE) is not cte]
        stars = any(isinstance(one, exp.Star) and isinstance(one.parent, exp.Select | exp.Column) for one in columns)
        names = {one.name for one in columns}
        return lambda name: stars or name in names

    def _join_at_start(
        self, select: Any, name: str, start: str, tree: "_Tree", wrong: Callable[[str], WrongDefinition]
    ) -> None:
        """Makes each equality with the column of the start one with the first level's rows. Leaves out `depth > 0`."""
        exp = self._exp
        for table in select.find_all(exp.Table):
            if table.name != name or table.find_ancestor(exp.CTE) is not None:
                continue
            within, alias = table.find_ancestor(exp.Select), table.alias_or_name
            used = [c for c in within.find_all(exp.Column) if c.name == start and c.table in ("", alias)]
            used = [c for c in used if not (c.table == "" and not isinstance(c.parent, exp.EQ))]
            equality = used[0].parent if len(used) == 1 and isinstance(used[0].parent, exp.EQ) else None
            if equality is None:
                raise wrong(f"`{start}` is used other than in one equality with a row around it")
            other = equality.right if equality.left is used[0] else equality.left
            around: dict[str, str] = {}
            at = within
            while at is not None:
                around = {one.alias_or_name: one.name for _, one in self._sources(at)} | around
                at = at.find_ancestor(exp.Select)
            tree.join(other, around, wrong)
            kept = [one for one in where_of(within, exp) if not tree.is_below_start(one, alias)]
            if tree.own and len(kept) == len(where_of(within, exp)):
                raise wrong(
                    f"its first rows are the rows themselves: add `where {alias}.depth > 0`, with the column that counts"
                )
            within.set("where", exp.Where(this=_all(kept, exp)) if kept else None)

    def _parent_select(self, node: Any) -> Any:
        return node.find_ancestor(self._exp.Select, self._exp.SetOperation)

    def _sources(self, select: Any) -> Iterator[tuple[Any, Any]]:
        """Each table of FROM with the node that holds it."""
        if origin := select.args.get("from_"):
            yield origin, origin.this
        for join in select.args.get("joins") or ():
            yield join, join.this

    def _columns(self, node: Any) -> tuple[str, ...]:
        exp = self._exp
        inner = node.this.this if isinstance(node, exp.Lateral) else node.this
        if isinstance(node, exp.Subquery | exp.Lateral) and isinstance(inner, exp.Select):
            return tuple(name for term in inner.expressions if (name := output_name(term, exp)))
        entity = self._entities.get(node.name) if isinstance(node, exp.Table) else None
        return () if entity is None else (*entity.columns, *entity.computed)

    def _qualify(self, select: Any, outer: list[dict[str, tuple[str, ...]]]) -> None:
        """Puts its table before each column, writes out `*`, USING, NATURAL, and the numbers and names of GROUP BY."""
        exp = self._exp
        if not isinstance(select, exp.Select):
            for one in (select.left, select.right) if isinstance(select, exp.SetOperation) else ():
                self._qualify(one.unnest(), outer)
            return
        scope: dict[str, tuple[str, ...]] = {}
        merged: dict[str, str] = {}
        for holder, node in self._sources(select):
            if isinstance(node, exp.Subquery):
                self._qualify(node.this, outer)
            elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
                self._qualify(node.this.this, [scope, *outer])
            columns = self._columns(node)
            self._join_by_names(holder, node.alias_or_name, columns, scope, merged)
            scope[node.alias_or_name] = columns
        self._write_out(select, scope, merged)
        aliases = {one.alias: one.unalias() for one in select.expressions if one.alias}
        for group in [select.args["group"]] if select.args.get("group") else ():
            for node in group.expressions:
                if isinstance(node, exp.Literal) and str(node.this).isdecimal():
                    place = int(str(node.this)) - 1
                    meant = select.expressions[place].unalias() if place < len(select.expressions) else node
                elif (
                    isinstance(node, exp.Column) and not node.table and not any(node.name in c for c in scope.values())
                ):
                    meant = aliases.get(node.name, node)
                else:
                    continue
                node.replace(meant.copy())
        for node in list(select.walk(prune=lambda one: isinstance(one, exp.Select) and one is not select)):
            if isinstance(node, exp.Select) and node is not select:
                if not isinstance(node.parent and node.parent.parent, exp.From | exp.Join | exp.Lateral):
                    self._qualify(node, [scope, *outer])
                continue
            plain = isinstance(node, exp.Column) and not node.table and not isinstance(node.this, exp.Star)
            if plain and not (isinstance(node.parent, exp.Ordered) and node.name in aliases):
                self._name_table(node, [scope, *outer], merged)

    def _name_table(self, column: Any, scopes: list[dict[str, tuple[str, ...]]], merged: Mapping[str, str]) -> None:
        owner = merged.get(column.name)
        for scope in scopes:
            owners = [alias for alias, columns in scope.items() if column.name in columns]
            if owner or len(owners) == 1:
                column.set("table", self._exp.to_identifier(owner or owners[0]))
            if owner or owners or column.name in scope:
                return

    def _join_by_names(
        self,
        join: Any,
        alias: str,
        columns: tuple[str, ...],
        scope: Mapping[str, tuple[str, ...]],
        merged: dict[str, str],
    ) -> None:
        """The ON of USING or NATURAL."""
        exp, names = self._exp, [one.name for one in join.args.get("using") or ()]
        if join.args.get("method") == "NATURAL":
            names = [name for name in columns if any(name in known for known in scope.values())]
        if not names or join.side not in ("", "LEFT"):
            return
        found = {name: next((one for one, known in scope.items() if name in known), "") for name in names}
        if not all(found.values()):
            return
        for name, other in found.items():
            other = merged.setdefault(name, other)
            equality = exp.EQ(this=exp.column(name, table=other), expression=exp.column(name, table=alias))
            join.set("on", exp.And(this=join.args["on"], expression=equality) if join.args.get("on") else equality)
        join.set("using", None)
        join.set("method", None)

    def _write_out(self, select: Any, scope: Mapping[str, tuple[str, ...]], merged: Mapping[str, str]) -> None:
        """Writes out `*` and `t.*`. Columns that USING joins come once, and first."""
        exp, terms = self._exp, []
        for term in select.expressions:
            star = isinstance(term, exp.Star) and not filled(term) - {"this"}
            if not star and not (isinstance(term, exp.Column) and isinstance(term.this, exp.Star)):
                terms.append(term)
                continue
            wanted = scope if star else {term.table: scope.get(term.table, ())}
            if not all(wanted.values()):
                terms.append(term)
                continue
            made = [(merged[name], name) for name in merged] if star else []
            made += [(one, name) for one, names in wanted.items() for name in names if not (star and name in merged)]
            terms += [exp.column(name, table=one) for one, name in made if not self._is_computed(select, one, name)]
        select.set("expressions", terms)

    def _is_computed(self, select: Any, alias: str, name: str) -> bool:
        node = next(node for _, node in self._sources(select) if node.alias_or_name == alias)
        entity = self._entities.get(node.name) if isinstance(node, self._exp.Table) else None
        return entity is not None and name in entity.computed

    # Merging

    def _merge_below(self, select: Any) -> None:
        """Merges the subqueries of FROM, the innermost first."""
        exp = self._exp
        for node in [
            one for one in select.find_all(exp.Select) if one is not select and self._parent_select(one) is select
        ]:
            self._merge_below(node)
        if isinstance(select, exp.SetOperation):
            return
        merging = True
        while merging:
            merging = any(self._merge(select, holder, node) for holder, node in list(self._sources(select)))

    def _merge(self, select: Any, holder: Any, node: Any) -> bool:
        exp = self._exp
        if (
            not isinstance(node, exp.Subquery)
            or not isinstance(node.this, exp.Select)
            or filled(node) - {"this", "alias"}
        ):
            return False
        inner, first = node.this, isinstance(holder, exp.From)
        if not inner.args.get("from_"):
            return False
        if any(isinstance(one.unalias(), exp.Star) or not output_name(one, exp) for one in inner.expressions):
            return False
        if self._is_plain(inner):
            left = not first and holder.side == "LEFT"
            if (left and inner.args.get("joins")) or (not first and holder.side not in ("", "LEFT")):
                return False
            self._merge_plain(select, holder, node, left=left)
            return True
        if not first or not self._is_plain(select):
            return False
        return self._merge_first_rows(select, node) or self._merge_grouped(select, node)

    def _is_plain(self, select: Any) -> bool:
        """Whether the query has one row for each row of its joined tables that WHERE chooses."""
        exp = self._exp
        if any(select.args.get(word) for word in _CLAUSES) or not select.args.get("from_"):
            return False
        for node in select.walk(prune=lambda one: isinstance(one, exp.Select) and one is not select):
            if isinstance(node, exp.Window) or is_aggregate(node):
                return False
        return True

    def _merge_plain(self, select: Any, holder: Any, node: Any, *, left: bool) -> None:
        exp, inner, alias = self._exp, node.this, node.alias
        terms = {output_name(one, exp): one.unalias() for one in inner.expressions}
        others = {one.alias_or_name for _, one in self._sources(select) if one is not node}
        own = [one for _, one in self._sources(inner)]
        for table in own:
            wanted = alias if len(own) == 1 else table.alias_or_name
            if wanted != table.alias_or_name or wanted in others:
                self._rename(
                    inner, table, free_name(wanted, others | {one.alias_or_name for one in own if one is not table})
                )
        conditions = where_of(inner, exp)
        if left:
            table = own[0]
            entity = self._entities.get(table.name) if isinstance(table, exp.Table) else None
            key = exp.column(entity.key[0], table=table.alias_or_name) if entity else None
            for name, term in terms.items():
                if not isinstance(term, exp.Column) and key is not None:
                    found = exp.Is(this=key.copy(), expression=exp.Null(), negate=True)
                    terms[name] = exp.Case(ifs=[exp.If(this=found, true=term)])
        holder.set("this", inner.args["from_"].this)
        self._substitute(select, alias, terms)
        if left:
            on = [holder.args["on"]] if holder.args.get("on") else []
            holder.set("on", _all([*on, *conditions], exp))
        elif conditions:
            self._add_where(select, conditions)
        joins = select.args.get("joins") or []
        place = 0 if isinstance(holder, exp.From) else joins.index(holder) + 1
        if below := inner.args.get("joins"):
            select.set("joins", [*joins[:place], *below, *joins[place:]])

    def _merge_grouped(self, select: Any, node: Any) -> bool:
        """The grouped query of `select ... from (select ... group by ...)`, with the outer WHERE as its HAVING."""
        exp, inner, alias = self._exp, node.this, node.alias
        if any(inner.args.get(word) for word in ("limit", "offset", "distinct", "windows", "qualify", "locks")):
            return False
        if any(isinstance(one, exp.Window) for one in inner.find_all(exp.Window)) or not inner.args.get("group"):
            return False
        self._take_inner(select, inner, alias, {output_name(one, exp): one.unalias() for one in inner.expressions}, [])
        return True

    def _take_inner(self, select: Any, inner: Any, alias: str, terms: dict[str, Any], ignored: list[Any]) -> None:
        """Makes the outer query the inner one, with the outer terms; the outer WHERE chooses groups, and its joins join them."""
        exp = self._exp
        others = {one.alias_or_name for _, one in self._sources(select)} - {alias}
        own = [one for _, one in self._sources(inner)]
        for table in own:
            if table.alias_or_name in others:
                self._rename(inner, table, free_name(table.alias_or_name, others | {one.alias_or_name for one in own}))
        for join in select.args.get("joins") or ():
            join.meta[OF_GROUPS] = True
        self._substitute(select, alias, terms)
        having = [one for one in where_of(select, exp) if one not in ignored]
        if inner.args.get("having"):
            having.append(inner.args["having"].this)
        select.args["from_"].set("this", inner.args["from_"].this)
        select.set("joins", [*(inner.args.get("joins") or ()), *(select.args.get("joins") or ())])
        select.set("where", inner.args.get("where"))
        select.set("group", inner.args.get("group"))
        select.set("having", exp.Having(this=_all(having, exp)) if having else None)
        select.set("order", None)

    def _merge_first_rows(self, select: Any, node: Any) -> bool:
        """The groups of `select ... from (select ..., row_number() over (partition by ...) as n ...) where n = 1`."""
        exp, inner, alias = self._exp, node.this, node.alias
        windows = {one.alias: one.unalias() for one in inner.expressions if isinstance(one.unalias(), exp.Window)}
        on, order, ignored = None, [], []
        if distinct := inner.args.get("distinct"):
            on = distinct.args["on"].expressions if distinct.args.get("on") else None
            order = list(inner.args["order"].expressions) if inner.args.get("order") else []
        for condition in where_of(select, exp) if len(windows) == 1 and on is None else ():
            name = condition.this.name if isinstance(condition, exp.EQ | exp.LTE) else ""
            if name in windows and str(condition.expression) == "1":
                window = windows.pop(name)
                if str(window.this.this).lower() != "row_number" or filled(window) - {
                    "this",
                    "partition_by",
                    "order",
                    "over",
                }:
                    return False
                on, ignored = window.args.get("partition_by"), [condition]
                order = list(window.args["order"].expressions) if window.args.get("order") else []
                terms = [one for one in inner.expressions if one.alias != name]
                inner.set("expressions", [*terms, exp.alias_(exp.Literal.number(1), name)])
                break
        if not on or windows or any(inner.args.get(word) for word in ("group", "having", "limit", "offset")):
            return False
        ignored = [self._as_one(condition) for condition in ignored]
        inner.set("distinct", None)
        self._group_by(inner, on, order)
        self._take_inner(
            select, inner, alias, {output_name(one, exp): one.unalias() for one in inner.expressions}, ignored
        )
        return True

    def _as_one(self, condition: Any) -> Any:
        """`1 = 1`, as the condition reads after the number of the row is a constant."""
        changed = condition.copy()
        changed.set("this", self._exp.Literal.number(1))
        return changed

    def _group_by(self, select: Any, on: list[Any], order: list[Any]) -> None:
        """Groups by the terms of DISTINCT ON; each other term is that of the first row."""
        exp, keys = self._exp, {text_of(one) for one in on}
        aliases = {one.alias: one.unalias() for one in select.expressions if one.alias}
        rest = []
        for one in order:
            if isinstance(one.this, exp.Column) and not one.this.table and one.this.name in aliases:
                one = one.copy()
                one.set("this", aliases[one.this.name].copy())
            if text_of(one.this) not in keys:
                rest.append(one)

        def chosen(term: Any) -> Any:
            node, name = term.unalias(), output_name(term, exp)
            if text_of(node) in keys or not node.find(exp.Column):
                return term
            argument = exp.Order(this=node.copy(), expressions=[one.copy() for one in rest]) if rest else node.copy()
            return exp.alias_(exp.Anonymous(this="first", expressions=[argument]), name)

        select.set("expressions", [chosen(term) for term in select.expressions])
        select.set("group", exp.Group(expressions=[one.copy() for one in on]))
        select.set("order", None)

    def _choose_rows(self, select: Any) -> None:
        """Makes the whole query one of groups where it has DISTINCT ON, and leaves out a DISTINCT that says nothing."""
        distinct = select.args.get("distinct")
        if not distinct:
            return
        if on := distinct.args.get("on"):
            if any(select.args.get(word) for word in ("group", "having", "limit", "offset")):
                return
            self._qualify(select, [])
            select.set("distinct", None)
            self._group_by(
                select, on.expressions, list(select.args["order"].expressions) if select.args.get("order") else []
            )
        elif group := select.args.get("group"):
            self._qualify(select, [])
            shown = {text_of(one.unalias()) for one in select.expressions}
            if {text_of(one) for one in group.expressions} <= shown:
                select.set("distinct", None)

    def _add_where(self, select: Any, conditions: list[Any]) -> None:
        exp = self._exp
        select.set("where", exp.Where(this=_all([*where_of(select, exp), *conditions], exp)))

    def _rename(self, select: Any, table: Any, name: str) -> None:
        """Gives a table of the query another name, also in its subqueries."""
        exp, old = self._exp, table.alias_or_name
        for column in list(select.find_all(exp.Column)):
            if column.table == old and not self._is_shadowed(column, select, old):
                column.set("table", exp.to_identifier(name))
            elif not column.table and column.name == old and not self._is_shadowed(column, select, old):
                column.this.set("this", name)
        if isinstance(table, exp.Table | exp.Subquery | exp.Lateral):
            alias = exp.TableAlias(this=exp.to_identifier(name))
            alias.this.meta.update(getattr(table.this, "meta", {}))
            table.set("alias", alias)

    def _is_shadowed(self, column: Any, select: Any, alias: str) -> bool:
        """Whether a subquery between has a table of this name."""
        within = column.find_ancestor(self._exp.Select)
        while within is not None and within is not select:
            if any(node.alias_or_name == alias for _, node in self._sources(within)):
                return True
            within = within.find_ancestor(self._exp.Select)
        return False

    def _substitute(self, select: Any, alias: str, terms: Mapping[str, Any]) -> None:
        """Puts the terms of a subquery in place of its columns."""
        exp = self._exp
        for column in list(select.find_all(exp.Column)):
            if self._is_shadowed(column, select, alias):
                continue
            if column.table == alias and column.name in terms:
                self._nodes += sum(1 for _ in terms[column.name].walk())
                if self._nodes > _MOST_NODES:
                    what = f"the columns of the subquery `{alias}` grow with each use"
                    raise WrongDefinition(what, "compute a part in a column of the source", self._line_of(column))
                made = terms[column.name].copy()
                if not isinstance(made, exp.Column | exp.Literal | exp.Anonymous | exp.Paren | exp.Null):
                    made = exp.Paren(this=made)
                if column.parent is select and any(column is one for one in select.expressions):
                    made = exp.alias_(made, column.name) if output_name(made, exp) != column.name else made
                column.replace(made)
            elif self._is_whole_row(column, alias):
                pairs = [part for name, term in terms.items() for part in (exp.Literal.string(name), term.copy())]
                column.replace(exp.Anonymous(this="json_build_object", expressions=pairs))

    def _is_whole_row(self, column: Any, alias: str) -> bool:
        exp, parent = self._exp, column.parent
        parent = parent.parent if isinstance(parent, exp.Order) else parent
        within = isinstance(parent, exp.Anonymous) and str(parent.this).lower() in _ROWS
        star = isinstance(column.this, exp.Star) and column.table == alias
        return within and (star or (not column.table and column.name == alias))


class _Tree:
    """The two parts of a WITH RECURSIVE over one table. `new`: the table's name in the second part, `way`: that of the rows
    before. `up`: the columns of the table that are equal, of the new row and of the row before. `own`: each way starts with its
    own row."""

    def __init__(self, exp: Any, entity: Entity, parts: list[Any], new: str, way: str) -> None:
        self._exp, self.entity, self._new, self._way = exp, entity, new, way
        first, second = parts
        self._names = [output_name(one, exp) for one in first.expressions]
        self._first = dict(zip(self._names, (one.unalias() for one in first.expressions), strict=True))
        self._next = dict(zip(self._names, (one.unalias() for one in second.expressions), strict=False))
        self._tops = where_of(first, exp)
        self.own, self.up = False, None
        conditions = [
            *where_of(second, exp),
            *(c for j in second.args.get("joins") or () if j.args.get("on") for c in conjuncts(j.args["on"], exp)),
        ]
        for one in conditions:
            sides = [one.left.unnest(), one.right.unnest()] if isinstance(one, exp.EQ) else []
            sides.sort(key=lambda side: getattr(side, "table", "") != new)
            if self.up is None and [getattr(side, "table", "") for side in sides] == [new, way]:
                before = self._first.get(sides[1].name)
                if isinstance(before, exp.Column) and self._carried(sides[1].name):
                    self.up = (sides[0].name, before.name)
                    continue
            if not any(
                isinstance(part, exp.Any) or is_call(part, "all") for part in one.walk()
            ):  # `id <> all (path)`: no cycle
                self.up = None
                return

    def _is_next(self, name: str, column: str) -> bool:
        node = self._next.get(name)
        return isinstance(node, self._exp.Column) and node.table == self._new and node.name == column

    def _carried(self, name: str) -> bool:
        """Whether a column is the same column of the table in each row."""
        node = self._first[name]
        return isinstance(node, self._exp.Column) and self._is_next(name, node.name)

    def _kept(self, name: str) -> bool:
        """Whether a column is that of the row before: of the way's start."""
        node = self._next.get(name)
        return isinstance(node, self._exp.Column) and node.table == self._way and node.name == name

    def start(self) -> str | None:
        """The column that says where a way starts; None: at the tops, or with a condition."""
        assert self.up is not None
        if self._tops and not all(self._is_not_null(one) for one in self._tops):
            return None
        for name in self._names:
            node = self._first[name]
            if self._kept(name) and isinstance(node, self._exp.Column) and node.name in (*self.entity.key, self.up[0]):
                self.own = (node.name,) == self.entity.key
                return name
        return None

    def _is_not_null(self, node: Any) -> bool:
        is_test = isinstance(node, self._exp.Not) and isinstance(node.this.unnest(), self._exp.Is)
        return is_test or (isinstance(node, self._exp.Is) and bool(node.args.get("negate")))

    def _counter(self, name: str) -> int | None:
        """The first number of a column that counts the levels."""
        exp, node, first = self._exp, self._next.get(name), self._first[name]
        first = first.this if isinstance(first, exp.Cast) else first
        if not isinstance(node, exp.Add) or not isinstance(first, exp.Literal) or not str(first.this).isdecimal():
            return None
        parts = sorted((node.left.unnest(), node.right.unnest()), key=lambda one: isinstance(one, exp.Literal))
        plain = isinstance(parts[0], exp.Column) and parts[0].table == self._way and parts[0].name == name
        return int(str(first.this)) if plain and str(parts[1]) == "1" else None

    def is_below_start(self, condition: Any, alias: str) -> bool:
        """Whether a condition leaves out the first row of each way."""
        exp = self._exp
        name, number = (
            condition.this.name if isinstance(condition, exp.GT | exp.GTE | exp.NEQ) else "",
            str(getattr(condition, "expression", "")),
        )
        first = self._counter(name) if name in self._names else None
        if first is None or not self.own or condition.this.table not in ("", alias):
            return False
        return number == str(first + isinstance(condition, exp.GTE))

    def join(self, other: Any, tables: Mapping[str, str], wrong: Callable[[str], WrongDefinition]) -> None:
        """Makes `start = u.id` the equality of the first level. `tables`: those that the query can name, with their entities."""
        assert self.up is not None
        _, before = self.up
        if self.own and before not in self.entity.key:
            same = isinstance(other, self._exp.Column) and tables.get(other.table) == self.entity.name
            if not same or (other.name,) != self.entity.key:
                raise wrong("a way up starts at the key of a row")
            other.set("this", self._exp.to_identifier(before))

    def from_row(self, start: str, wrong: Callable[[str], WrongDefinition]) -> Any:
        """The rows below, or above, the row at which a way starts."""
        exp, terms = self._exp, []
        assert self.up is not None
        for name in self._names:
            if name == start:
                node = exp.column(self.up[0], table=self._new)
            elif self._carried(name):
                node = self._next[name].copy()
            elif (first := self._counter(name)) is not None:
                level = exp.Anonymous(this="depth", expressions=[])
                base = first if self.own else first - 1
                node = exp.Paren(this=exp.Add(this=level, expression=exp.Literal.number(base))) if base else level
            else:
                raise wrong(f"`{name}` is no column of the table, and does not count the levels")
            terms.append(exp.alias_(node, name))
        return exp.Select(expressions=terms, from_=exp.From(this=self._marked(self._new)))

    def _marked(self, alias: str) -> Any:
        table = self._exp.Table(
            this=self._exp.to_identifier(self.entity.name),
            alias=self._exp.TableAlias(this=self._exp.to_identifier(alias)),
        )
        table.meta[RECURSIVE] = True
        return table

    def from_tops(self, wrong: Callable[[str], WrongDefinition], used: Callable[[str], bool]) -> Any:
        """Each row with what the rows above it say. The rows that hang below no top are left out."""
        exp = self._exp
        assert self.up is not None
        child, key = self.up
        tests = [one.unnest() for one in self._tops]
        tops = [
            one
            for one in tests
            if isinstance(one, exp.Is) and isinstance(one.expression, exp.Null) and one.this.name == child
        ]
        if (key,) != self.entity.key or not tops:
            raise wrong(
                f"its first rows are not those `where {child} is null`, or it does not lead down to each row once"
            )
        terms = [exp.alias_(self._of_row(name, wrong), name) for name in self._names if used(name)]
        own = _all([one.copy() for one in self._tops], exp)
        for column in own.find_all(exp.Column):
            column.set("table", exp.to_identifier(self._new))
        above = own.copy()
        for column in above.find_all(exp.Column):
            column.set("table", exp.to_identifier("up"))
        counted = exp.Filter(
            this=exp.Anonymous(this="count", expressions=[exp.Star()]), expression=exp.Where(this=above)
        )
        found = exp.GT(this=self._above(counted), expression=exp.Literal.number(0))
        where = exp.Paren(this=exp.Or(this=exp.Paren(this=own), expression=found))
        table = exp.Table(
            this=exp.to_identifier(self.entity.name), alias=exp.TableAlias(this=exp.to_identifier(self._new))
        )
        return exp.Select(expressions=terms, from_=exp.From(this=table), where=exp.Where(this=where))

    def _above(self, aggregate: Any) -> Any:
        """An aggregate over the rows above a row."""
        exp = self._exp
        assert self.up is not None
        child, key = self.up
        on = exp.EQ(this=exp.column(key, table="up"), expression=exp.column(child, table=self._new))
        select = exp.Select(expressions=[aggregate], from_=exp.From(this=self._marked("up")), where=exp.Where(this=on))
        return exp.Subquery(this=select)

    def _ordered(self, node: Any, *, down: bool) -> Any:
        depth = self._exp.Anonymous(this="depth", expressions=[])
        return self._exp.Order(this=node, expressions=[self._exp.Ordered(this=depth, desc=down, nulls_first=down)])

    def _of_row(self, name: str, wrong: Callable[[str], WrongDefinition]) -> Any:
        """A column of the rows of all levels, as one of the table's row and of those above it."""
        exp, first, following = self._exp, self._first[name], self._next[name]
        count = exp.Anonymous(this="count", expressions=[exp.Star()])
        if self._carried(name):
            return following.copy()
        if (number := self._counter(name)) is not None:
            return exp.Paren(this=exp.Add(this=self._above(count), expression=exp.Literal.number(number)))
        column = first.this if isinstance(first, exp.Cast) else first
        nothing = isinstance(column, exp.Null)
        of_before = following if isinstance(following, exp.Column) and following.table == self._way else None
        if nothing and of_before is not None and self._carried(of_before.name):
            above = exp.column(self._first[of_before.name].name, table="up")
            return self._above(exp.Anonymous(this="first", expressions=[self._ordered(above, down=False)]))
        if isinstance(column, exp.Column) and self._kept(name):
            above = self._above(
                exp.Anonymous(this="first", expressions=[self._ordered(exp.column(column.name, table="up"), down=True)])
            )
            is_top = exp.EQ(this=self._above(count), expression=exp.Literal.number(0))
            own = exp.column(column.name, table=self._new)
            return exp.Case(ifs=[exp.If(this=is_top, true=own)], default=above)
        if isinstance(column, exp.Column) and (made := self._path(name, column, following)) is not None:
            return made
        raise wrong(f"`{name}` is no column of the table, no path of texts, and does not count the levels")

    def _path(self, name: str, column: Any, following: Any) -> Any:
        """`t.path || ' > ' || c.name`, or the same by `concat`."""
        exp = self._exp
        following = following.this if isinstance(following, exp.Cast) else following.unnest()
        strict = isinstance(following, exp.DPipe)
        parts: list[Any] = []

        def split(node: Any) -> None:
            if isinstance(node, exp.DPipe) and strict:
                split(node.left)
                split(node.right)
            else:
                parts.append(node.unnest().this if isinstance(node.unnest(), exp.Cast) else node.unnest())

        if strict:
            split(following)
        elif is_call(following, "concat"):
            parts = [one.unnest() for one in following.expressions]
        if len(parts) < 2 or [getattr(one, "table", None) for one in parts[:: len(parts) - 1]] != [
            self._way,
            self._new,
        ]:
            return None
        between = parts[1:-1]
        if (
            parts[0].name != name
            or parts[-1].name != column.name
            or not all(isinstance(one, exp.Literal) for one in between)
        ):
            return None
        sign = exp.Literal.string("".join(str(one.this) for one in between))
        own, above = exp.column(column.name, table=self._new), exp.column(column.name, table="up")
        count = exp.Anonymous(this="count", expressions=[exp.Star()])
        value = (
            above.copy()
            if strict
            else exp.Anonymous(this="coalesce", expressions=[above.copy(), exp.Literal.string("")])
        )
        text = self._above(exp.Anonymous(this="string_agg", expressions=[value, self._ordered(sign.copy(), down=True)]))
        joined = (
            [text, sign, own]
            if strict
            else [text, sign, exp.Anonymous(this="coalesce", expressions=[own.copy(), exp.Literal.string("")])]
        )
        longer = exp.DPipe(this=exp.DPipe(this=joined[0], expression=joined[1]), expression=joined[2])
        ifs = [exp.If(this=exp.EQ(this=self._above(count), expression=exp.Literal.number(0)), true=own.copy())]
        if strict and column.name not in (*self.entity.key, *self.entity.not_null):
            nulls = exp.Filter(
                this=count.copy(), expression=exp.Where(this=exp.Is(this=above.copy(), expression=exp.Null()))
            )
            ifs.append(exp.If(this=exp.GT(this=self._above(nulls), expression=exp.Literal.number(0)), true=exp.Null()))
        return exp.Case(ifs=ifs, default=longer)


def _all(conditions: list[Any], exp: Any) -> Any:
    """The conditions as one."""
    made = conditions[0]
    for one in conditions[1:]:
        made = exp.And(this=made, expression=one if isinstance(one, exp.And | exp.Column) else _grouped(one, exp))
    return made


def _grouped(node: Any, exp: Any) -> Any:
    return exp.Paren(this=node) if isinstance(node, exp.Or) else node
