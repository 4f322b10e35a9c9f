"""A `select` as plain data: its tables, what it selects, conditions and order. What no product can say is refused here, clause by
clause; which table a bare column belongs to is `processor.definitions.sql_product`'s matter.

It reads the trees of `processor.definitions.sql_parser`, and imports nothing of their library.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from processor.definitions.errors import Wrong
from processor.definitions.expressions import AGGREGATES
from processor.definitions.sql_parser import parse_query

_CLAUSES: Final = {
    "with_": "WITH", "group": "GROUP BY", "limit": "LIMIT", "windows": "WINDOW", "locks": "FOR UPDATE", "laterals": "LATERAL",
}  # fmt: skip
_TREE: Final = "write the product as a tree, with `root`, `fields` and `embed`"
_JOINS: Final = "write `left join` or `inner join`, with `on child.column = parent.column`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """An expression: as `written`, and as `text` where each column stands without its table. `names`: its columns, each with the
    table that is said before it ('': none). `column`: it is one column, or `*`. `equates`: it sets two columns equal."""

    line: int
    written: str
    text: str
    names: tuple[tuple[str, str], ...]
    column: bool
    equates: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of FROM or JOIN under the name that the query calls it by. `on`: what must hold, all of it; none of the root."""

    line: int
    entity: str
    name: str
    inner: bool = False
    on: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query: its root and the joins below it in the order written; selected terms with their names ('': the column's own);
    conditions, all of which must hold; terms of the order, and whether each is descending."""

    root: Table
    joins: tuple[Table, ...]
    selected: tuple[tuple[str, Term], ...]
    where: tuple[Term, ...]
    order: tuple[tuple[Term, bool], ...]


def read_query(text: str) -> Query:
    """The query that the text spells. Raises Wrong, with its line, for what is no SQL or nothing that a product can say."""
    tree, exp = parse_query(text)
    return _Reader(exp).query(tree)


class _Reader:
    """From sqlglot's nodes to ours."""

    def __init__(self, exp: Any) -> None:
        self._exp, self._at = exp, 1

    def query(self, node: Any) -> Query:
        if not isinstance(node, self._exp.Select):
            said = f"{node.key.upper()}, not one `select`" if node else "empty"
            raise Wrong(f"`sql` is {said}", "write `select ... from ... left join ...`")
        known = ("expressions", "from_", "joins", "where", "order")
        for clause, value in node.args.items():
            if value and clause not in known:
                line = self._line(value) if isinstance(value, self._exp.Expression) else 1
                raise Wrong(f"a product has no {_CLAUSES.get(clause, clause.upper())}", _TREE, line)
        origin, where, order = (node.args.get(word) for word in ("from_", "where", "order"))
        if origin is None:
            raise Wrong("the query has no FROM", "write `from entity`: the root, one document for each of its rows")
        return Query(
            selected=tuple(map(self._selected, node.expressions)),
            root=self._table(origin.this),
            joins=tuple(map(self._join, node.args.get("joins") or ())),
            where=tuple(self._conditions(where.this)) if where else (),
            order=tuple(map(self._ordered, order.expressions)) if order else (),
        )

    def _table(self, node: Any, *, inner: bool = False, on: tuple[Term, ...] = ()) -> Table:
        exp, alias = self._exp, node.args.get("alias")
        plain = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        if not plain or _said(node) - {"this", "alias"} or (alias and _said(alias) != {"this"}):
            what = f"`{_written(node)}` is no entity"
            raise Wrong(what, "write the entity's name alone, and a name for it after it", self._line(node))
        return Table(line=self._line(node), entity=node.name, name=node.alias_or_name, inner=inner, on=on)

    def _join(self, node: Any) -> Table:
        kind = " ".join(filter(None, (node.args.get("method"), node.side, node.kind)))
        extra = _said(node) - {"this", "on", "side", "kind"}
        if kind not in ("", "INNER", "LEFT", "LEFT OUTER") or extra or "on" not in _said(node):
            what = f"`{_written(node).strip(', ')}` is no left or inner join with ON"
            raise Wrong(what, _JOINS, self._line(node))
        return self._table(node.this, inner=node.side != "LEFT", on=tuple(self._conditions(node.args["on"])))

    def _selected(self, node: Any) -> tuple[str, Term]:
        alias = node.alias if isinstance(node, self._exp.Alias) else ""
        self._line(node)  # of its name, where the term names nothing
        term = self._term(node.unalias())
        if not alias and not term.column:
            raise Wrong(f"`{term.written}` has no name", "write `as name` after it", term.line)
        return alias, term

    def _ordered(self, node: Any) -> tuple[Term, bool]:
        term = self._term(node.this)
        if node.args.get("nulls_first") or _said(node) - {"this", "desc", "nulls_first"}:
            what = f"`{_written(node)}` puts nulls first, and a list has them last"
            raise Wrong(what, f"write `{term.written}{' desc' * bool(node.args.get('desc'))} nulls last`", term.line)
        return term, bool(node.args.get("desc"))

    def _conditions(self, node: Any) -> Iterator[Term]:
        """What AND connects, each alone."""
        node = node.unnest()
        if isinstance(node, self._exp.And):
            yield from self._conditions(node.this)
            yield from self._conditions(node.expression)
        else:
            yield self._term(node)

    def _term(self, node: Any) -> Term:
        exp, line, written = self._exp, self._line(node), _written(node)
        if "\n" in written or "\t" in written:
            raise Wrong(f"{written!r} holds a line break or a tab", "leave it out of literals and names", line)
        if node.find(exp.Query):
            raise Wrong(f"`{written}` holds a subquery", "join its table, or " + _TREE, line)
        if any(call.name.lower() in AGGREGATES for call in node.find_all(exp.Anonymous)):
            cure = "write a tree, where a `many` may have an aggregate: `stars: {many: star, ..., value: count(*)}`"
            raise Wrong(f"`{written}` is an aggregate over joined rows", cure, line)
        bare = node.copy()
        columns = [bare] if isinstance(bare, exp.Star) else list(bare.find_all(exp.Column))
        names = tuple((column.text("table"), column.name) for column in columns)
        for column in columns:
            if column.args.get("db"):
                raise Wrong(f"`{written}` names a column by more than its table", "write `table.column`", line)
            if isinstance(column, exp.Column):
                column.set("table", None)
        return Term(
            line=line,
            written=written,
            text=_written(bare),
            names=names,
            column=isinstance(node, exp.Column | exp.Star),
            equates=isinstance(node, exp.EQ)
            and all(isinstance(s.unnest(), exp.Column) for s in (node.left, node.right)),
        )

    def _line(self, node: Any) -> int:
        """The first line where the node names something; of one that names nothing, the line read before it."""
        lines = [name.meta["line"] for name in node.find_all(self._exp.Identifier) if "line" in name.meta]
        self._at = min(lines, default=self._at)
        return self._at


def _said(node: Any) -> set[str]:
    return {word for word, value in node.args.items() if value}


def _written(node: Any) -> str:
    return str(node.sql(dialect="postgres", normalize_functions=False, comments=False))
