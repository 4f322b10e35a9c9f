"""Reads a product given as SQL, the query that an analyst would write, into the tree that it means (docs/definitions.md).

`_Reader` makes the `select` plain data: its tables, selected terms, conditions and order. It refuses each clause that a product
cannot have, and reads the trees of `sql_parser.py` without sqlglot. `read_sql` makes the nodes of a product file from that, each
with its line in the query, so the readers of product files check the rest.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from processor.language.definitions.expressions import AGGREGATES
from processor.language.definitions.names import write_path
from processor.language.definitions.problems import AlreadyReported, Problems, WrongDefinition, suggest
from processor.language.definitions.shape import as_flag, describe_node
from processor.language.definitions.sql_parser import Cleaner, filled, parse_query, text_of
from processor.language.definitions.sql_rewrites import Rewriter
from processor.language.definitions.sql_tables import NO_UNION
from processor.language.definitions.sql_views import ViewReader, inner_tables, is_view
from processor.language.definitions.sql_windows import Windows
from processor.language.definitions.yaml import Map, Scalar, Sequence, YamlNode
from processor.language.product.expressions.expression import Column
from processor.values.entity import Entity

_CLAUSES: Final = {
    "with_": "WITH", "group": "GROUP BY", "limit": "LIMIT", "windows": "WINDOW", "locks": "FOR UPDATE", "laterals": "LATERAL",
}  # fmt: skip
_TREE: Final = "write the product as a tree, with `root`, `fields` and `embed`"
_JOINS: Final = "write `left join` or `inner join`, with `on child.column = parent.column`"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectTerm:
    """An expression of the query. `written`: its SQL; `text`: its SQL with every column without its table; `names`: its columns,
    each as (table or '', column); `column`: the term is one column, or `*`; `sides`: of an equality, the text of each side, and
    the number of its names."""

    line: int
    written: str
    text: str
    names: tuple[tuple[str, str], ...]
    column: bool
    sides: tuple[tuple[str, int], ...] = ()


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


class _Reader:
    """Makes our plain data from sqlglot's nodes."""

    def __init__(self, exp: Any) -> None:
        self._exp, self._last_line = exp, 1

    def query(self, node: Any) -> SelectQuery:
        if not isinstance(node, self._exp.Select):
            if isinstance(node, self._exp.SetOperation):
                raise WrongDefinition(f"`sql` is a {node.key.upper()}: its rows are of several tables", NO_UNION)
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
        if not plain or filled(node) - {"this", "alias"} or (alias and filled(alias) != {"this"}):
            what = f"`{text_of(node)}` is not an entity"
            raise WrongDefinition(
                what, "write the entity's name alone, then its alias: `entity as e`", self._line(node)
            )
        return SelectTable(line=self._line(node), entity=node.name, name=node.alias_or_name, inner=inner, on=on)

    def _join(self, node: Any) -> SelectTable:
        kind = " ".join(filter(None, (node.args.get("method"), node.side, node.kind)))
        extra = filled(node) - {"this", "on", "side", "kind"}
        if kind not in ("", "INNER", "LEFT", "LEFT OUTER") or extra or "on" not in filled(node):
            what = f"`{text_of(node).strip(', ')}` is not a left or inner join with ON"
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
        if node.args.get("nulls_first") or filled(node) - {"this", "desc", "nulls_first"}:
            what = f"`{text_of(node)}` puts nulls first, but a list has them last"
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
        exp, line, written = self._exp, self._line(node), text_of(node)
        if "\n" in written or "\t" in written:
            what = f"{written!r} contains a line break or a tab"
            raise WrongDefinition(what, "remove it from literals and names", line)
        if node.find(exp.Query):
            raise WrongDefinition(f"`{written}` contains a subquery", "join its table, or " + _TREE, line)
        if any(call.name.lower() in AGGREGATES for call in node.find_all(exp.Anonymous)):
            cure = "write a tree, where a `many` may have an aggregate: `stars: {many: star, ..., value: count(*)}`"
            raise WrongDefinition(f"a product given as SQL cannot have the aggregate `{written}`", cure, line)
        bare = node.copy()
        columns = [bare] if isinstance(bare, exp.Star) else list(bare.find_all(exp.Column, bfs=False))
        names = tuple((column.text("table"), column.name) for column in columns)
        for column in columns:
            if column.args.get("db"):
                what = f"`{written}` has more than a table before a column"
                raise WrongDefinition(what, "write `table.column`", line)
            if isinstance(column, exp.Column):
                column.set("table", None)
        sides = (bare.left.unnest(), bare.right.unnest()) if isinstance(bare, exp.EQ) else ()
        return SelectTerm(
            line=line,
            written=written,
            text=text_of(bare),
            names=names,
            column=isinstance(node, exp.Column | exp.Star),
            sides=tuple((_side_text(side, exp), len(list(side.find_all(exp.Column)))) for side in sides),
        )

    def line(self, node: Any) -> int:
        """The first line of a name in the node."""
        return self._line(node)

    def _line(self, node: Any) -> int:
        """The first line of a name in the node. A node without a name gets the line of the node before it."""
        lines = [name.meta["line"] for name in node.find_all(self._exp.Identifier) if "line" in name.meta]
        self._last_line = min(lines, default=self._last_line)
        return self._last_line


def _side_text(node: Any, exp: Any) -> str:
    """A side of an equality, as `on` takes it: the plain name of a column, or an expression."""
    return str(node.name) if isinstance(node, exp.Column) else text_of(node)


_TREE_KEYS = ("root", "where", "fields", "except", "value", "join", "embed")
_Entry = tuple[Scalar, YamlNode]


def read_sql(body: Map, entities: Mapping[str, Entity | None], problems: Problems) -> Map | None:
    """The body of a product file, with the tree that its `sql` means added to it. None where there are problems."""
    node, others = body.entries["sql"][1], [word for word in _TREE_KEYS if word in body.entries]
    for word in others:
        what = f"there are both `{word}` and `sql`, and `sql` is the whole product"
        problems.add(body.key_node(word), what, "keep one of them")
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value:
        problems.add(
            node, f"`sql` is {describe_node(node)}, not a query", "write `sql: |`, and the query on the lines below"
        )
    elif not others:
        try:
            tree = _entries(node, entities, flat=as_flag(body, "flat", problems))
            return Map(file=body.file, line=body.line, entries={**body.entries, **tree})
        except WrongDefinition as wrong:
            problems.add(_scalar(node, "", wrong.line), wrong.what, wrong.cure)
        except AlreadyReported:
            pass
        except RecursionError:
            what = "the query nests too many conditions or operators"
            problems.add(_scalar(node, "", 1), what, "write fewer of them, or compute a part in a column of the source")
    return None


def _entries(node: Scalar, entities: Mapping[str, Entity | None], *, flat: bool) -> dict[str, "_Entry"]:
    """The entries of the product that a query means."""
    tree, exp = parse_query(str(node.value))
    reader = _Reader(exp)
    if not isinstance(tree, exp.Select):
        reader.query(tree)
    view = flat or is_view(tree, exp)
    tree = Cleaner(exp, reader.line).cleaned(tree)
    if not view:
        try:
            return _TreeBuilder(reader.query(tree), entities, node).entries()
        except WrongDefinition as nested:
            try:
                return _view_entries(tree, exp, entities, node, reader)
            except WrongDefinition:
                raise nested from None
    try:
        return _view_entries(tree.copy(), exp, entities, node, reader)
    except WrongDefinition as refused:
        if flat or is_view(tree, exp):
            raise
        try:  # only brackets around its joins made it a view
            return _TreeBuilder(reader.query(tree), entities, node).entries()
        except WrongDefinition:
            raise refused from None


def _view_entries(
    tree: Any, exp: Any, entities: Mapping[str, Entity | None], node: Scalar, reader: _Reader
) -> dict[str, "_Entry"]:
    """The entries of a product whose documents are the rows of the query."""
    try:
        return _rows_entries(Rewriter(exp, entities, reader.line).simplify(tree.copy()), exp, entities, node, reader)
    except WrongDefinition:
        if not tree.find(exp.Window):
            raise
    rewriter = Rewriter(exp, entities, reader.line)
    simple = rewriter.simplify(tree)
    Windows(exp, entities, reader.line).rewrite(simple)
    return _rows_entries(rewriter.merge(simple), exp, entities, node, reader)


def _rows_entries(
    simple: Any, exp: Any, entities: Mapping[str, Entity | None], node: Scalar, reader: _Reader
) -> dict[str, "_Entry"]:
    refused = None
    for root in ("", *inner_tables(simple, exp)):
        try:
            made = ViewReader(simple.copy(), exp, entities, reader.line).entries(root)
            break
        except WrongDefinition as wrong:
            refused = refused or wrong
    else:
        assert refused is not None
        raise refused
    return {name: (_scalar(node, name, 1), _node(node, value)) for name, value in made.items()}


def _node(sql: Scalar, value: Any) -> YamlNode:
    """Plain data as nodes of a product file."""
    match value:
        case dict():
            entries = {name: (_scalar(sql, name, 1), _node(sql, below)) for name, below in value.items()}
            return Map(file=sql.file, line=sql.line, entries=entries)
        case list():
            return Sequence(file=sql.file, line=sql.line, items=tuple(_node(sql, one) for one in value))
    return _scalar(sql, value, 1)


def _scalar(sql: Scalar, value: str | bool, line: int) -> Scalar:
    """A node with the file's line of this line of the query."""
    return Scalar(file=sql.file, line=sql.line + line if sql.block else sql.line, value=value, text=str(value))


@dataclass(slots=True, kw_only=True)
class _Level:
    """One table of the query, with its parts of the query. `on`: the parent column of each child column, with its term; `order`:
    each term, and whether it is descending; `below`: the levels joined to this one."""

    table: SelectTable
    on: dict[str, tuple[str, SelectTerm]] = field(default_factory=dict)
    where: list[SelectTerm] = field(default_factory=list)
    fields: dict[str, SelectTerm] = field(default_factory=dict)
    order: list[tuple[SelectTerm, bool]] = field(default_factory=list)
    below: list["_Level"] = field(default_factory=list)

    @property
    def selected(self) -> bool:
        return bool(self.fields) or any(level.selected for level in self.below)


class _TreeBuilder:
    """Builds the levels of a query, each below the level that its ON names."""

    def __init__(self, query: SelectQuery, entities: Mapping[str, Entity | None], sql: Scalar) -> None:
        self._entities, self._sql = entities, sql
        self._root = _Level(table=query.root)
        self._levels: dict[str, _Level] = {}
        self._add_level(self._root)
        for table in query.joins:
            self._add_join(table)
        for name, term in query.selected:
            self._add_selected(name, term)
        for term in query.where:
            self._add_condition(term)
        aliases = {name: term for name, term in query.selected if name}
        for term, descending in query.order:
            bare = term.column and not term.names[0][0]
            self._add_order(aliases.get(term.names[0][1], term) if bare else term, descending)

    def entries(self) -> dict[str, _Entry]:
        """The entries of a product file: its root, and all levels below it."""
        return {
            "root": self._entry("root", self._root.table.entity, self._root.table.line),
            **self._level_entries(self._root),
        }

    def _add_level(self, level: _Level) -> None:
        table = level.table
        if table.entity not in self._entities:
            raise WrongDefinition(
                f"there is no entity `{table.entity}`", suggest(table.entity, self._entities), table.line
            )
        if table.name in self._levels:
            what = f"two tables of the query are called `{table.name}`"
            raise WrongDefinition(what, f"give one of them another name: `{table.entity} as ...`", table.line)
        self._levels[table.name] = level

    def _add_join(self, table: SelectTable) -> None:
        level, parents = _Level(table=table), set()
        self._add_level(level)
        for term in table.on:
            tables = [self._table(name, term) for name in term.names]
            if set(tables) == {table.name}:
                level.where.append(term)
                continue
            sides = self._sides(term, tables)
            if sides is None or table.name not in (sides[0][1], sides[1][1]):
                what = f"`{term.written}` in the ON of `{table.name}` does not set two columns equal"
                cure = f"write `{table.name}.column = table.column`, and other conditions over `{table.name}` alone"
                raise WrongDefinition(what, cure, term.line)
            (column, _), (parent, parent_table) = sides if sides[0][1] == table.name else sides[::-1]
            if column in level.on:
                what = f"the ON of `{table.name}` has two equalities of `{column}`"
                raise WrongDefinition(what, f"join each column of `{table.name}` once", term.line)
            level.on[column] = (parent, term)
            parents.add(parent_table)
        if len(parents) != 1:
            names = " and ".join(f"`{name}`" for name in sorted(parents)) or "no other table"
            what = f"the ON of `{table.name}` joins it to {names}, but a join has exactly one parent table"
            raise WrongDefinition(what, "write `on child.column = parent.column`, with one parent", table.line)
        above = self._levels[parents.pop()]
        if table.inner and above is not self._root and not above.table.inner:
            what = f"the inner join `{table.name}` undoes the left join `{above.table.name}` above it"
            raise WrongDefinition(what, "make both inner, or both left", table.line)
        above.below.append(level)

    def _sides(self, term: SelectTerm, tables: list[str]) -> list[tuple[str, str]] | None:
        """The text and the table of each side of an equality between two tables; None for another condition. `tables`: of each
        name, in the order of the text."""
        found, at = [], 0
        for text, count in term.sides:
            own = set(tables[at : at + count])
            at += count
            if len(own) != 1:
                return None
            found.append((text, own.pop()))
        return found if len(found) == 2 and found[0][1] != found[1][1] else None

    def _add_selected(self, name: str, term: SelectTerm) -> None:
        if term.column and term.names[0][1] == "*":
            for table in [self._table(term.names[0], term)] if term.names[0][0] else self._levels:
                for column in self._columns(table, made=False):
                    written = write_path(Column(name=column))
                    self._add_field(table, column, replace(term, text=written))
            return
        tables = {self._table(named, term) for named in term.names} or {self._root.table.name}
        self._add_field(self._only_table(tables, term), name or term.names[0][1], term)

    def _add_field(self, table: str, name: str, term: SelectTerm) -> None:
        fields = self._levels[table].fields
        if name in fields:
            raise WrongDefinition(
                f"`{table}` would have two members `{name}`", "rename one of them: `as ...`", term.line
            )
        fields[name] = term

    def _add_condition(self, term: SelectTerm) -> None:
        tables = {self._table(name, term) for name in term.names} or {self._root.table.name}
        level = self._levels[self._only_table(tables, term)]
        if level is not self._root and not level.table.inner:
            what = f"`{term.written}` in WHERE undoes the left join `{level.table.name}`"
            raise WrongDefinition(what, "move it into the ON, which filters the list; or write `inner join`", term.line)
        level.where.append(term)

    def _add_order(self, term: SelectTerm, descending: bool) -> None:
        tables = {self._table(name, term) for name in term.names} or {self._root.table.name}
        level = self._levels[self._only_table(tables, term)]
        if level is self._root:
            what = f"ORDER BY `{term.written}` orders documents, which have no order"
            raise WrongDefinition(what, "order by columns of a joined table, to order its list", term.line)
        level.order.append((term, descending))

    def _only_table(self, tables: set[str], term: SelectTerm) -> str:
        if len(tables) > 1:
            what = f"`{term.written}` mixes columns of {' and '.join(f'`{name}`' for name in sorted(tables))}"
            cure = "write a tree, where `parent.column` and `join.column` name other rows"
            raise WrongDefinition(what, cure, term.line)
        (table,) = tables
        return table

    def _table(self, name: tuple[str, str], term: SelectTerm) -> str:
        """The table that has the named column, among the tables that the query has named so far."""
        table, column = name
        if table and table not in self._levels:
            raise WrongDefinition(
                f"`{term.written}`: there is no table `{table}`", suggest(table, self._levels), term.line
            )
        tables = [each for each in ([table] if table else self._levels) if column in (*self._columns(each), "*")]
        if not tables:
            known = {each: None for level in ([table] if table else self._levels) for each in self._columns(level)}
            owner = f"`{table}` has" if table else "the tables have"
            raise WrongDefinition(f"`{term.written}`: {owner} no column `{column}`", suggest(column, known), term.line)
        if len(tables) > 1:
            what = f"`{column}` is a column of {' and '.join(f'`{each}`' for each in tables)}"
            cure = f"write {' or '.join(f'`{each}.{column}`' for each in tables)}"
            raise WrongDefinition(what, cure, term.line)
        return tables[0]

    def _columns(self, table: str, *, made: bool = True) -> tuple[str, ...]:
        """The columns of a table. `made`: also the computed ones, which `*` leaves out."""
        entity = self._entities[self._levels[table].table.entity]
        if entity is None:
            raise AlreadyReported
        return (*entity.columns, *(entity.computed if made else ()))

    def _level_entries(self, level: _Level) -> dict[str, _Entry]:
        """The entries that the root and a join both have: `where`, `fields`, and the joins below."""
        fields = self._map(self._entry(name, term.text, term.line) for name, term in level.fields.items())
        entries = [self._entry("fields", fields, level.table.line)]
        if level.where:
            texts = [term.text for term in level.where]
            text = texts[0] if len(texts) == 1 else " and ".join(f"({text})" for text in texts)
            entries.append(self._entry("where", text, level.where[0].line))
        for word, shown in (("join", False), ("embed", True)):
            if joins := [self._join_entry(below) for below in level.below if below.selected is shown]:
                entries.append(self._entry(word, self._map(joins), level.table.line))
        return {key.text: (key, node) for key, node in entries}

    def _join_entry(self, level: _Level) -> _Entry:
        table, entity = level.table, self._entities[level.table.entity]
        if entity is None:
            raise AlreadyReported
        if not level.selected and not table.inner:
            what = f"the query selects nothing of the left join `{table.name}`, so the join changes no document"
            raise WrongDefinition(what, "select columns of it, or remove it", table.line)
        on = self._map(self._entry(child, parent, term.line) for child, (parent, term) in level.on.items())
        order = tuple(_scalar(self._sql, _order_text(*each), each[0].line) for each in level.order)
        entries = [
            self._entry("one" if set(entity.key) <= set(level.on) else "many", table.entity, table.line),
            self._entry("on", on, table.line),
            self._entry("order_by", Sequence(file=self._sql.file, line=self._sql.line, items=order), table.line),
            self._entry("required", table.inner, table.line),
            *self._level_entries(level).values(),
        ]
        return self._entry(table.name, self._map(entries), table.line)

    def _entry(self, name: str, node: YamlNode | str | bool, line: int) -> _Entry:
        if not isinstance(node, Scalar | Sequence | Map):
            node = _scalar(self._sql, node, line)
        return _scalar(self._sql, name, line), node

    def _map(self, entries: Iterable[_Entry]) -> Map:
        return Map(file=self._sql.file, line=self._sql.line, entries={key.text: (key, node) for key, node in entries})


def _order_text(term: SelectTerm, descending: bool) -> str:
    """The term as text of `order_by`, where a leading `-` means descending."""
    text = f"({term.text})" if term.text.startswith("-") else term.text
    return f"-{text}" if descending else text
