"""A product given as SQL, the query that an analyst would write, as the tree that it means (docs/sql-products.md).

What comes out are nodes as a product file has them, each with its line in the query, so that the readers of trees check the rest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from processor.definitions.columns import write_path
from processor.definitions.errors import Elsewhere, Problems, Wrong, suggest
from processor.definitions.shape import describe
from processor.definitions.sql_query import Query, Table, Term, read_query
from processor.definitions.yaml_nodes import Map, Node, Scalar, Sequence
from processor.model.entity import Entity
from processor.model.expression import Column

_TREE = ("root", "where", "fields", "value", "join", "embed")
_Entry = tuple[Scalar, Node]


def read_sql(body: Map, entities: Mapping[str, Entity | None], problems: Problems) -> Map | None:
    """The body of a product file with the tree that its `sql` means in its place; None where there are problems."""
    node, others = body.entries["sql"][1], [word for word in _TREE if word in body.entries]
    for word in others:
        problems.add(body.key(word), f"`{word}` stands beside `sql`, which says it all", "keep one of them")
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value:
        problems.add(node, f"`sql` is {describe(node)}, not a query", "write `sql: |`, and the query below it")
    elif not others:
        try:
            tree = _Tree(read_query(node.value), entities, node).entries()
            return Map(file=body.file, line=body.line, entries={**body.entries, **tree})
        except Wrong as wrong:
            problems.add(_scalar(node, "", wrong.line), wrong.what, wrong.cure)
        except Elsewhere:
            pass
    return None


def _scalar(sql: Scalar, value: str | bool, line: int) -> Scalar:
    """A node that stands in a line of the query."""
    return Scalar(file=sql.file, line=sql.line + line if sql.block else sql.line, value=value, text=str(value))


@dataclass(slots=True, kw_only=True)
class _Level:
    """What the query says of one table. `on`: the parent column of each child column, with its term; `order`: terms,
    and whether each is descending."""

    table: Table
    on: dict[str, tuple[str, Term]] = field(default_factory=dict)
    where: list[Term] = field(default_factory=list)
    fields: dict[str, Term] = field(default_factory=dict)
    order: list[tuple[Term, bool]] = field(default_factory=list)
    below: list["_Level"] = field(default_factory=list)

    @property
    def selected(self) -> bool:
        return bool(self.fields) or any(level.selected for level in self.below)


class _Tree:
    """The levels of a query, each below the one that its ON names."""

    def __init__(self, query: Query, entities: Mapping[str, Entity | None], sql: Scalar) -> None:
        self._entities, self._sql = entities, sql
        self._root = _Level(table=query.root)
        self._levels: dict[str, _Level] = {}
        self._add(self._root)
        for table in query.joins:
            self._join(table)
        for name, term in query.selected:
            self._select(name, term)
        for term in query.where:
            self._filter(term)
        aliases = {name: term for name, term in query.selected if name}
        for term, descending in query.order:
            bare = term.column and not term.names[0][0]
            self._sort(aliases.get(term.names[0][1], term) if bare else term, descending)

    def entries(self) -> dict[str, _Entry]:
        """The entries of a product file: its root, and what stands below it."""
        return {"root": self._entry("root", self._root.table.entity, self._root.table.line), **self._below(self._root)}

    def _add(self, level: _Level) -> None:
        table = level.table
        if table.entity not in self._entities:
            raise Wrong(f"there is no entity `{table.entity}`", suggest(table.entity, self._entities), table.line)
        if table.name in self._levels:
            what = f"two tables of the query are called `{table.name}`"
            raise Wrong(what, f"give one of them another name: `{table.entity} as ...`", table.line)
        self._levels[table.name] = level

    def _join(self, table: Table) -> None:
        level, parents = _Level(table=table), set()
        self._add(level)
        for term in table.on:
            tables = [self._table(name, term) for name in term.names]
            if set(tables) == {table.name}:
                level.where.append(term)
                continue
            if not term.equates or table.name not in tables:
                what = f"`{term.written}` in the ON of `{table.name}` is more than a join"
                cure = f"write `{table.name}.column = table.column`, and conditions over `{table.name}` alone"
                raise Wrong(what, cure, term.line)
            child = tables.index(table.name)
            column, parent = term.names[child][1], term.names[1 - child][1]
            if column in level.on:
                what = f"the ON of `{table.name}` equates `{column}` twice"
                raise Wrong(what, "join each of its columns once", term.line)
            level.on[column] = (parent, term)
            parents.add(tables[1 - child])
        if len(parents) != 1:
            said = " and ".join(f"`{name}`" for name in sorted(parents)) or "no other table"
            what = f"the ON of `{table.name}` joins it to {said}, and a join has one row above it"
            raise Wrong(what, "write `on child.column = parent.column`, of one parent", table.line)
        above = self._levels[parents.pop()]
        if table.inner and above is not self._root and not above.table.inner:
            what = f"the inner join `{table.name}` undoes the left join `{above.table.name}` above it"
            raise Wrong(what, "make both inner, or both left", table.line)
        above.below.append(level)

    def _select(self, name: str, term: Term) -> None:
        if term.column and term.names[0][1] == "*":
            for table in [self._table(term.names[0], term)] if term.names[0][0] else self._levels:
                for column in self._columns(table):
                    written = write_path(Column(name=column))
                    self._put(table, column, replace(term, text=written))
            return
        found = {self._table(named, term) for named in term.names} or {self._root.table.name}
        self._put(self._only(found, term), name or term.names[0][1], term)

    def _put(self, table: str, name: str, term: Term) -> None:
        fields = self._levels[table].fields
        if name in fields:
            raise Wrong(f"`{table}` would have two members `{name}`", "rename one of them: `as ...`", term.line)
        fields[name] = term

    def _filter(self, term: Term) -> None:
        found = {self._table(name, term) for name in term.names} or {self._root.table.name}
        level = self._levels[self._only(found, term)]
        if level is not self._root and not level.table.inner:
            what = f"`{term.written}` in WHERE undoes the left join `{level.table.name}`"
            raise Wrong(what, "put it into the ON, which filters the list; or write `inner join`", term.line)
        level.where.append(term)

    def _sort(self, term: Term, descending: bool) -> None:
        found = {self._table(name, term) for name in term.names} or {self._root.table.name}
        level = self._levels[self._only(found, term)]
        if level is self._root:
            what = f"ORDER BY `{term.written}` orders documents, which have no order"
            raise Wrong(what, "order by columns of a joined table: the order of its list", term.line)
        level.order.append((term, descending))

    def _only(self, tables: set[str], term: Term) -> str:
        if len(tables) > 1:
            what = f"`{term.written}` mixes the tables {' and '.join(f'`{name}`' for name in sorted(tables))}"
            raise Wrong(what, "write a tree, where `parent.column` and `join.column` reach other rows", term.line)
        (table,) = tables
        return table

    def _table(self, name: tuple[str, str], term: Term) -> str:
        """The table whose column is named, among those that the query has named so far."""
        table, column = name
        if table and table not in self._levels:
            raise Wrong(f"`{term.written}`: there is no table `{table}`", suggest(table, self._levels), term.line)
        found = [each for each in ([table] if table else self._levels) if column in (*self._columns(each), "*")]
        if not found:
            known = {each: None for level in ([table] if table else self._levels) for each in self._columns(level)}
            said = f"`{table}` has" if table else "the tables have"
            raise Wrong(f"`{term.written}`: {said} no column `{column}`", suggest(column, known), term.line)
        if len(found) > 1:
            what = f"`{column}` is a column of {' and '.join(f'`{each}`' for each in found)}"
            raise Wrong(what, f"write `{found[0]}.{column}`, or another table's", term.line)
        return found[0]

    def _columns(self, table: str) -> tuple[str, ...]:
        entity = self._entities[self._levels[table].table.entity]
        if entity is None:
            raise Elsewhere
        return tuple(entity.columns)

    def _below(self, level: _Level) -> dict[str, _Entry]:
        """What the root and a join have in common: `where`, `fields`, and the joins below."""
        fields = self._map(self._entry(name, term.text, term.line) for name, term in level.fields.items())
        entries = [self._entry("fields", fields, level.table.line)]
        if level.where:
            texts = [term.text for term in level.where]
            text = texts[0] if len(texts) == 1 else " and ".join(f"({text})" for text in texts)
            entries.append(self._entry("where", text, level.where[0].line))
        for word, shown in (("join", False), ("embed", True)):
            if joins := [self._joined(below) for below in level.below if below.selected is shown]:
                entries.append(self._entry(word, self._map(joins), level.table.line))
        return {key.text: (key, node) for key, node in entries}

    def _joined(self, level: _Level) -> _Entry:
        table, entity = level.table, self._entities[level.table.entity]
        if entity is None:
            raise Elsewhere
        if not level.selected and not table.inner:
            what = f"nothing of the left join `{table.name}` is selected, so that it changes no document"
            raise Wrong(what, "select columns of it, or remove it", table.line)
        on = self._map(self._entry(child, parent, term.line) for child, (parent, term) in level.on.items())
        order = tuple(_scalar(self._sql, _ordered(*each), each[0].line) for each in level.order)
        entries = [
            self._entry("one" if set(entity.key) <= set(level.on) else "many", table.entity, table.line),
            self._entry("on", on, table.line),
            self._entry("order_by", Sequence(file=self._sql.file, line=self._sql.line, items=order), table.line),
            self._entry("required", table.inner, table.line),
            *self._below(level).values(),
        ]
        return self._entry(table.name, self._map(entries), table.line)

    def _entry(self, name: str, node: Node | str | bool, line: int) -> _Entry:
        if not isinstance(node, Scalar | Sequence | Map):
            node = _scalar(self._sql, node, line)
        return _scalar(self._sql, name, line), node

    def _map(self, entries: Iterable[_Entry]) -> Map:
        return Map(file=self._sql.file, line=self._sql.line, entries={key.text: (key, node) for key, node in entries})


def _ordered(term: Term, descending: bool) -> str:
    """A term of `order_by`, where a leading `-` is descending."""
    text = f"({term.text})" if term.text.startswith("-") else term.text
    return f"-{text}" if descending else text
