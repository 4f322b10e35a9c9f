"""Reads a `select` into plain data: its tables, selected terms, conditions and order.

This module refuses each clause that a product cannot have. It reads the trees of `sql_parser.py`, and does not import sqlglot.
`sql_product.py` finds the table of a column without a table name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from processor.definitions.expression_reader.read_expression import AGGREGATES
from processor.definitions.problems import WrongDefinition
from processor.definitions.sql_reader.sql_parser import parse_query

_CLAUSES: Final = {
    "with_": "WITH", "group": "GROUP BY", "limit": "LIMIT", "windows": "WINDOW", "locks": "FOR UPDATE", "laterals": "LATERAL",
}  # fmt: skip
_TREE: Final = "write the product as a tree, with `root`, `fields` and `embed`"
_JOINS: Final = "write `left join` or `inner join`, with `on child.column = parent.column`"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectTerm:
    """An expression of the query. `written`: its SQL; `text`: its SQL with every column without its table; `names`: its columns,
    each as (table or '', column); `column`: the term is one column, or `*`; `equates`: it sets two columns equal."""

    line: int
    written: str
    text: str
    names: tuple[tuple[str, str], ...]
    column: bool
    equates: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectTable:
    """A table of FROM or JOIN. `name`: its alias, else the entity; `on`: the conditions that AND connects, none for the root."""

    line: int
    entity: str
    name: str
    inner: bool = False
    on: tuple[SelectTerm, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectQuery:
    """A query. `joins`: in the order written; `selected`: each term with its alias ('': none); `where`: the conditions that AND
    connects; `order`: each term, and whether it is descending."""

    root: SelectTable
    joins: tuple[SelectTable, ...]
    selected: tuple[tuple[str, SelectTerm], ...]
    where: tuple[SelectTerm, ...]
    order: tuple[tuple[SelectTerm, bool], ...]


def read_query(text: str) -> SelectQuery:
    """The query in this text. Raises: WrongDefinition, with the line, for text that is not SQL, or that no product can have."""
    tree, exp = parse_query(text)
    return _Reader(exp).query(tree)


class _Reader:
    """Makes our plain data from sqlglot's nodes."""

    def __init__(self, exp: Any) -> None:
        self._exp, self._last_line = exp, 1

    def query(self, node: Any) -> SelectQuery:
        if not isinstance(node, self._exp.Select):
            statement = f"{node.key.upper()}, not one `select`" if node else "empty"
            raise WrongDefinition(f"`sql` is {statement}", "write `select ... from ... left join ...`")
        known = ("expressions", "from_", "joins", "where", "order")
        for clause, value in node.args.items():
            if value and clause not in known:
                line = self._line(value) if isinstance(value, self._exp.Expression) else 1
                what = f"a product given as SQL cannot have {_CLAUSES.get(clause, clause.upper())}"
                raise WrongDefinition(what, _TREE, line)
        origin, where, order = (node.args.get(word) for word in ("from_", "where", "order"))
        if origin is None:
            cure = "write `from entity`: the root, one document for each of its rows"
            raise WrongDefinition("the query has no FROM", cure)
        return SelectQuery(
            selected=tuple(map(self._selected, node.expressions)),
            root=self._table(origin.this),
            joins=tuple(map(self._join, node.args.get("joins") or ())),
            where=tuple(self._conditions(where.this)) if where else (),
            order=tuple(map(self._ordered, order.expressions)) if order else (),
        )

    def _table(self, node: Any, *, inner: bool = False, on: tuple[SelectTerm, ...] = ()) -> SelectTable:
        exp, alias = self._exp, node.args.get("alias")
        plain = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        if not plain or _filled_arguments(node) - {"this", "alias"} or (alias and _filled_arguments(alias) != {"this"}):
            what = f"`{_sql_text(node)}` is not an entity"
            raise WrongDefinition(
                what, "write the entity's name alone, then its alias: `entity as e`", self._line(node)
            )
        return SelectTable(line=self._line(node), entity=node.name, name=node.alias_or_name, inner=inner, on=on)

    def _join(self, node: Any) -> SelectTable:
        kind = " ".join(filter(None, (node.args.get("method"), node.side, node.kind)))
        extra = _filled_arguments(node) - {"this", "on", "side", "kind"}
        if kind not in ("", "INNER", "LEFT", "LEFT OUTER") or extra or "on" not in _filled_arguments(node):
            what = f"`{_sql_text(node).strip(', ')}` is not a left or inner join with ON"
            raise WrongDefinition(what, _JOINS, self._line(node))
        return self._table(node.this, inner=node.side != "LEFT", on=tuple(self._conditions(node.args["on"])))

    def _selected(self, node: Any) -> tuple[str, SelectTerm]:
        alias = node.alias if isinstance(node, self._exp.Alias) else ""
        self._line(node)  # a term without columns gets the line of its alias
        term = self._term(node.unalias())
        if not alias and not term.column:
            raise WrongDefinition(f"`{term.written}` has no name", f"write `{term.written} as name`", term.line)
        return alias, term

    def _ordered(self, node: Any) -> tuple[SelectTerm, bool]:
        term = self._term(node.this)
        if node.args.get("nulls_first") or _filled_arguments(node) - {"this", "desc", "nulls_first"}:
            what = f"`{_sql_text(node)}` puts nulls first, but a list has them last"
            cure = f"write `{term.written}{' desc' * bool(node.args.get('desc'))} nulls last`"
            raise WrongDefinition(what, cure, term.line)
        return term, bool(node.args.get("desc"))

    def _conditions(self, node: Any) -> Iterator[SelectTerm]:
        """Each condition that AND connects."""
        node = node.unnest()
        if isinstance(node, self._exp.And):
            yield from self._conditions(node.this)
            yield from self._conditions(node.expression)
        else:
            yield self._term(node)

    def _term(self, node: Any) -> SelectTerm:
        exp, line, written = self._exp, self._line(node), _sql_text(node)
        if "\n" in written or "\t" in written:
            what = f"{written!r} contains a line break or a tab"
            raise WrongDefinition(what, "remove it from literals and names", line)
        if node.find(exp.Query):
            raise WrongDefinition(f"`{written}` contains a subquery", "join its table, or " + _TREE, line)
        if any(call.name.lower() in AGGREGATES for call in node.find_all(exp.Anonymous)):
            cure = "write a tree, where a `many` may have an aggregate: `stars: {many: star, ..., value: count(*)}`"
            raise WrongDefinition(f"a product given as SQL cannot have the aggregate `{written}`", cure, line)
        bare = node.copy()
        columns = [bare] if isinstance(bare, exp.Star) else list(bare.find_all(exp.Column))
        names = tuple((column.text("table"), column.name) for column in columns)
        for column in columns:
            if column.args.get("db"):
                what = f"`{written}` has more than a table before a column"
                raise WrongDefinition(what, "write `table.column`", line)
            if isinstance(column, exp.Column):
                column.set("table", None)
        return SelectTerm(
            line=line,
            written=written,
            text=_sql_text(bare),
            names=names,
            column=isinstance(node, exp.Column | exp.Star),
            equates=isinstance(node, exp.EQ)
            and all(isinstance(s.unnest(), exp.Column) for s in (node.left, node.right)),
        )

    def _line(self, node: Any) -> int:
        """The first line of a name in the node. A node without a name gets the line of the node before it."""
        lines = [name.meta["line"] for name in node.find_all(self._exp.Identifier) if "line" in name.meta]
        self._last_line = min(lines, default=self._last_line)
        return self._last_line


def _filled_arguments(node: Any) -> set[str]:
    return {word for word, value in node.args.items() if value}


def _sql_text(node: Any) -> str:
    return str(node.sql(dialect="postgres", normalize_functions=False, comments=False))
