"""Rewrites the windows of a query over one table into subqueries that sql_views.py reads.

A window of a row becomes an aggregate, or the first row, of the rows with equal columns of PARTITION BY:

    row_number() over (partition by p order by o)   1 + (select count(*) from t w where w.p = t.p and w is before t)
    lag(x) over (partition by p order by o)         (select w.x from t w where ... order by o desc limit 1)
    sum(x) over (partition by p)                    (select sum(w.x) from t w where w.p = t.p)
    sum(x) over (partition by p order by o)         the same, of the rows up to t, and those that are equal to it in o

PostgreSQL may number equal rows in any order; here their primary keys decide. So each row of the table reads the rows of its
partition, and a change publishes all of them. It reads sqlglot's trees without importing sqlglot.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from processor.language.definitions.problems import WrongDefinition
from processor.language.definitions.sql_parser import Cleaner, filled, parse_query, text_of
from processor.language.definitions.sql_tables import conjuncts, free_name, where_of
from processor.values.entity import Entity

_INSTEAD: Final = "join its first row, `row_number() = 1` in a subquery, or aggregate in a subquery"
_NUMBERS: Final = ("row_number", "rank", "dense_rank")
_ROWS: Final = ("lag", "lead", "first_value")
_AGGREGATES: Final = ("count", "sum", "min", "max", "avg", "bool_and", "bool_or", "every")


class Windows:
    """Rewrites the windows of a query and of its subqueries, in place."""

    def __init__(self, exp: Any, entities: Mapping[str, Entity | None], line_of: Callable[[Any], int]) -> None:
        self._exp, self._entities, self._line_of = exp, entities, line_of

    def rewrite(self, tree: Any) -> None:
        """Raises: WrongDefinition, for a window whose rows no join finds."""
        exp = self._exp
        for select in list(tree.find_all(exp.Select)):
            own = [one for one in select.find_all(exp.Window) if one.find_ancestor(exp.Select) is select]
            if own:
                table = self._table(select, own[0])
                for window in own:
                    made = _Window(exp, window, table, where_of(select, exp), self._refuse).subquery()
                    window.replace(made)

    def _table(self, select: Any, window: Any) -> tuple[str, Entity]:
        """The name and the entity of the one table whose rows the windows see."""
        exp = self._exp
        node: Any = select.args["from_"].this if select.args.get("from_") else None
        entity = self._entities.get(node.name) if isinstance(node, exp.Table) else None
        if entity is None or any(select.args.get(word) for word in ("group", "having", "distinct", "limit", "offset")):
            raise self._refuse(window, "is a window over rows that no table has", _INSTEAD)
        for join in select.args.get("joins") or ():
            if join.side != "LEFT" or not self._is_by_key(join):
                cure = "join the table by `left join` and its whole key, or around the query with the window"
                raise self._refuse(window, "is a window over rows that a join chooses or repeats", cure)
        return node.alias_or_name, entity

    def _is_by_key(self, join: Any) -> bool:
        """Whether a join finds at most one row: its ON names the whole key of a table."""
        exp, node = self._exp, join.this
        entity = self._entities.get(node.name) if isinstance(node, exp.Table) else None
        if entity is None or not join.args.get("on"):
            return False
        found: set[str] = set()
        for one in conjuncts(join.args["on"], exp):
            sides = (one.left.unnest(), one.right.unnest()) if isinstance(one, exp.EQ) else ()
            own = [side for side in sides if isinstance(side, exp.Column) and side.table == node.alias_or_name]
            found |= {side.name for side in own} if len(own) == 1 else set()
        return {*entity.key} <= found

    def _refuse(self, node: Any, what: str, cure: str) -> WrongDefinition:
        return WrongDefinition(f"`{text_of(node)}` {what}", cure, self._line_of(node))


class _Window:
    """One window over the rows of a table."""

    def __init__(self, exp: Any, node: Any, table: tuple[str, Entity], where: list[Any], refuse: Any) -> None:
        self._exp, self._node, self._refuse = exp, node, refuse
        self._alias, self._entity = table
        self._other = free_name(f"{self._alias}_w", {column.table for column in node.root().find_all(exp.Column)})
        self._known = {*self._entity.key, *self._entity.not_null}
        for one in where:
            test = one.unnest()
            negated = isinstance(test, exp.Not) and isinstance(test.this.unnest(), exp.Is)
            found = test.this.unnest() if negated else test
            is_null = isinstance(found, exp.Is) and isinstance(found.expression, exp.Null)
            if is_null and (negated or found.args.get("negate")) and found.this.table in ("", self._alias):
                self._known.add(found.this.name)
        self._where = [self._of(one, self._other) for one in where]
        self._order = list(node.args["order"].expressions) if node.args.get("order") else []

    def subquery(self) -> Any:
        """The expression in place of the window."""
        exp, node = self._exp, self._node
        call = node.this
        name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
        if filled(node) - {"this", "partition_by", "order", "over", "spec"}:
            raise self._refuse(node, "is a window", _INSTEAD)
        if name in _NUMBERS and self._order and not call.expressions:
            text = self._number(name)
        elif name in _ROWS and self._order and call.expressions:
            text = self._row(name, call)
        elif name in _AGGREGATES and not call.find(exp.Distinct):
            text = f"({self._select(text_of(self._moved(call)), self._up_to())})"
        else:
            raise self._refuse(node, "is a window", _INSTEAD)
        tree, _ = parse_query(f"select {text} as x")
        made = Cleaner(exp, lambda _: 1).cleaned(tree).expressions[0].unalias()
        for named in made.find_all(exp.Identifier):
            named.meta["line"] = self._line()
        return made

    def _line(self) -> int:
        lines = [one.meta["line"] for one in self._node.find_all(self._exp.Identifier) if "line" in one.meta]
        return int(min(lines, default=1))

    def _number(self, name: str) -> str:
        if name == "dense_rank":
            if len(self._order) != 1 or not self._is_sure(self._order[0].this):
                raise self._refuse(
                    self._node, "numbers values that may be null", "order by one column that is `not_null`"
                )
            value = self._of(self._order[0].this, self._other)
            return f"(1 + ({self._select(f'count(distinct {value})', [self._before(keys=False)])}))"
        return f"(1 + ({self._select('count(*)', [self._before(keys=name == 'row_number')])}))"

    def _row(self, name: str, call: Any) -> str:
        value, *others = call.expressions
        if name == "first_value":
            condition, back = [], False
        else:
            condition, back = [self._before(keys=True, after=name == "lead")], name == "lag"
        if others and (len(others) > 2 or text_of(others[0]) != "1"):
            raise self._refuse(
                self._node, "reads a row further away", f"write `{name}({text_of(value)})`, of the next row"
            )
        if len(others) > 1 and not self._is_sure(value):
            cure = f"write `coalesce({name}({text_of(value)}) over (...), {text_of(others[1])})`"
            raise self._refuse(self._node, "has a value for the first row, and may be null in others", cure)
        order = ", ".join(self._ordered(back=back))
        found = f"({self._select(self._of(value, self._other), condition)} order by {order} limit 1)"
        return f"coalesce({found}, {text_of(others[1])})" if len(others) > 1 else found

    def _up_to(self) -> list[str]:
        """The condition of the frame: all rows, or those up to the row, with its equals in the order."""
        spec, by_rows = self._node.args.get("spec"), False
        if spec is not None:
            text = text_of(spec).upper()
            by_rows = text.startswith("ROWS")
            if text not in (f"{kind} BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW" for kind in ("ROWS", "RANGE")):
                cure = "write a tree, where a `many` has the rows in its `where`"
                raise self._refuse(self._node, "has a frame", cure)
        if not self._order:
            return []
        key = [self._exp.column(name, table=self._alias) for name in self._entity.key]
        equal = map(self._equal, key if by_rows else [one.this for one in self._order])
        return [f"({self._before(keys=by_rows)} or ({' and '.join(equal)}))"]

    def _select(self, value: str, conditions: list[str]) -> str:
        """The subquery over the rows of the partition."""
        exp = self._exp
        parts = self._node.args.get("partition_by") or []
        if not parts:
            what = "is a window over all rows: each change would publish every document"
            raise self._refuse(self._node, what, "add `partition by`")
        equal = []
        for one in parts:
            if not isinstance(one, exp.Column):
                raise self._refuse(
                    self._node, f"has `partition by {text_of(one)}`", "partition by columns of the table"
                )
            if not self._is_sure(one):
                cure = f"declare `{one.name}` `not_null`, or add `where {one.name} is not null`"
                raise self._refuse(self._node, f"has a partition where `{one.name}` is null", cure)
            equal.append(f"{self._of(one, self._other)} = {self._of(one, self._alias)}")
        where = " and ".join([*equal, *conditions, *(f"({one})" for one in self._where)])
        return f"select {value} from {_quoted(self._entity.name)} as {_quoted(self._other)} where {where}"

    def _before(self, *, keys: bool, after: bool = False) -> str:
        """Whether another row comes before the row. `keys`: the primary key decides between equal rows."""
        exp, ways = self._exp, []
        terms = [(one.this, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))) for one in self._order]
        if keys:
            terms += [(exp.column(name, table=self._alias), False, False) for name in self._entity.key]
        same: list[str] = []
        open_keys = {*self._entity.key}
        for node, desc, nulls_first in terms:
            if not open_keys:  # no other row is equal to this one
                break
            open_keys -= {node.name} if isinstance(node, exp.Column) else set()
            ways.append(" and ".join([*same, self._less(node, desc=desc, nulls_first=nulls_first, after=after)]))
            same.append(self._equal(node))
        return f"({' or '.join(f'({one})' for one in ways)})"

    def _less(self, node: Any, *, desc: bool, nulls_first: bool, after: bool) -> str:
        mine, other = self._of(node, self._alias), self._of(node, self._other)
        text = f"{other} {'>' if desc is not after else '<'} {mine}"
        if self._is_sure(node):
            return text
        first, last = (other, mine) if nulls_first is not after else (mine, other)
        return f"({text} or ({first} is null and {last} is not null))"

    def _equal(self, node: Any) -> str:
        sign = "=" if self._is_sure(node) else "is not distinct from"
        return f"{self._of(node, self._other)} {sign} {self._of(node, self._alias)}"

    def _ordered(self, *, back: bool) -> Iterator[str]:
        """The terms of ORDER BY, turned round for the row before."""
        terms = [(one.this, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))) for one in self._order]
        terms += [(self._exp.column(name, table=self._alias), False, False) for name in self._entity.key]
        for node, desc, nulls_first in terms:
            text, desc = self._of(node, self._other), desc is not back
            if not self._is_sure(node) and nulls_first is not back:
                yield f"({text} is null) desc nulls last"
            yield f"{text}{' desc' * desc} nulls last"

    def _is_sure(self, node: Any) -> bool:
        return isinstance(node, self._exp.Column) and node.name in self._known

    def _moved(self, node: Any) -> Any:
        """The node over another row of the table."""
        exp = self._exp

        def change(one: Any) -> Any:
            if not isinstance(one, exp.Column) or isinstance(one.this, exp.Star):
                return one
            if one.table not in ("", self._alias) or one.name not in {*self._entity.columns, *self._entity.computed}:
                raise self._refuse(self._node, f"reads `{text_of(one)}`", f"use columns of `{self._alias}` alone")
            return exp.column(one.name, table=self._other, quoted=True)

        if node.find(exp.Select, exp.Window) if node is not self._node.this else node.find(exp.Select):
            raise self._refuse(self._node, "is a window of a subquery", _INSTEAD)
        return node.copy().transform(change)

    def _of(self, node: Any, alias: str) -> str:
        text = self._moved(node)
        for column in [text] if isinstance(text, self._exp.Column) else list(text.find_all(self._exp.Column)):
            column.set("table", self._exp.to_identifier(alias, quoted=True))
        return f"({text_of(text)})" if not isinstance(text, self._exp.Column) else text_of(text)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
