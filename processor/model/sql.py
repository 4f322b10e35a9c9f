"""A product as one PostgreSQL query: its meaning, and the oracle of the tests.

The query reads tables named like the entities, with their declared columns (`table_ddl`). It answers one row per root that has
a document, in key order: the root's key columns, then `document` as json. What is stored but not declared has no SQL form.
Each level is a correlated subquery; a `one` join whose columns are used by name is a LATERAL join beside its level; a required
join is an EXISTS; rows that are aggregated are selected first, then their aggregates, then what is made of those.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from textwrap import indent

from processor.model import sql_expression
from processor.model.entity import ColumnType, Entity
from processor.model.expression import (
    Aggregate,
    Call,
    Column,
    Computed,
    Expression,
    Node,
    Path,
    Shown,
    aggregates,
    node_of,
    read_by,
)
from processor.model.product import Bare, Fields, Join, Order, Product, Selection, Whole, expressions
from processor.model.sql_rows import Row, joined, operand, unnested
from processor.model.sql_text import as_json, json_object, quote, sortable, sql_type, subquery, table_name


def product_sql(product: Product, entities: Mapping[str, Entity], schema: str | None = None) -> str:
    """The query whose rows are the product's documents, without a semicolon; no parameters, no `%` escapes."""
    return _Writer(entities, schema).query(product)


def table_ddl(entity: Entity, schema: str | None = None) -> str:
    """CREATE TABLE for the entity's declared columns. `decimal(p,s)` keeps every digit that comes, like the store."""
    columns = [f"{quote(name)} {sql_type(column)}" for name, column in entity.columns.items()]
    key = ", ".join(map(quote, entity.key))
    body = ",\n  ".join([*columns, f"PRIMARY KEY ({key})"])
    return f"CREATE TABLE {table_name(entity.name, schema)} (\n  {body}\n)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows that a join finds: FROM and WHERE as `text`, and the whole order of them."""

    row: Row
    text: str
    order: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """What expressions name at a row. `group`: the aliases of aggregates over a group of rows."""

    writer: "_Writer"
    row: Row
    group: Mapping[Aggregate, str] = field(default_factory=dict)

    def column(self, column: Column) -> str:
        return self.row.find(column)[0]

    def shown(self, path: Path) -> str:
        above = self.row.reach(path[:-1])
        return _where_there_is(above, path, self.writer.scalar(above.join(path[-1]), above))

    def aggregate(self, aggregate: Aggregate) -> str:
        if not aggregate.over:
            return self.group[aggregate]
        above = self.row.reach(aggregate.over[:-1])
        return self.writer.total(aggregate, above.join(aggregate.over[-1]), above)


class _Writer:
    """Writes the parts of one query; aliases are numbered in the order written."""

    def __init__(self, entities: Mapping[str, Entity], schema: str | None) -> None:
        self._entities = entities
        self._schema = schema
        self._numbers = count()

    def query(self, product: Product) -> str:
        read = [*expressions(product.selection), *_optional(product.where)]
        row, text = self._from(product.root, product.joins, map(node_of, read), None)
        document = self._value(product.selection, row)
        if isinstance(product.selection, Bare):
            document = f"coalesce({document}, 'null')"  # a bare null is a document
        keys = [row.own(name) for name in row.entity.key]
        selected = ",\n".join([*keys, f"{document} AS document"])
        conditions = self._conditions(product.where, row)
        where = f"\nWHERE {_and(conditions)}" if conditions else ""
        return f"SELECT\n{indent(selected, '  ')}\n{text}{where}\nORDER BY {', '.join(_key_order(row))}"

    def scalar(self, join: Join, above: Row) -> str:
        """The bare value that a join is, as a value of its type."""
        (value,) = expressions(join.selection)
        return self._one(join, above, lambda names: self._sql(value, names))

    def total(self, aggregate: Aggregate, join: Join, above: Row) -> str:
        """An aggregate over the rows of a join."""
        inner = replace(aggregate, over=())
        return self._group(join, above, (inner,), lambda names: names.aggregate(inner))

    def _sql(self, expression: Expression, names: _Names) -> str:
        return sql_expression.write(node_of(expression), names)

    def _from(self, entity: str, joins: tuple[Join, ...], read: Iterable[Node], above: Row | None) -> tuple[Row, str]:
        """The level's own row and the `one` joins that are reached by name, each after the one that it hangs on."""
        row = self._row(entity, joins, above)
        clauses = [f"FROM {table_name(entity, self._schema)} AS {row.alias}"]
        for path in _prefixes(path for node in read for path in _reached(node)):
            hung = row.reach(path[:-1])
            join = hung.join(path[-1])
            first = self._matching(join, hung, ())
            rows = f"SELECT {first.row.alias}.*\n{first.text}\nORDER BY {first.order}\nLIMIT 1"
            hung.beside[path[-1]] = beside = self._row(join.entity, join.joins, hung)
            clauses.append(f"LEFT JOIN LATERAL (\n{indent(rows, '  ')}\n) AS {beside.alias} ON true")
        return row, "\n".join(clauses)

    def _row(self, entity: str, joins: tuple[Join, ...], above: Row | None) -> Row:
        return Row(alias=f"t{next(self._numbers)}", entity=self._entities[entity], joins=joins, above=above)

    def _matching(self, join: Join, above: Row, selected: Iterable[Node], elements: str = "") -> _Rows:
        """The rows of a join to one row above, of which `selected` is to be made; of a list join, to one of the `elements` of its
        array, or, where they have no alias yet, to one after the other."""
        read = [*selected, *map(node_of, (*_optional(join.where), *(term.by for term in join.order_by)))]
        row, text = self._from(join.entity, join.joins, read, above)
        order = [*self._terms(join.order_by, row), *_key_order(row)]
        if join.listed and not elements:
            elements = f"e{next(self._numbers)}"
            text += f"\nCROSS JOIN {unnested(join, above, elements)}"
            order.insert(0, f"{elements}.n")
        conditions = [joined(join, row, above, elements), *self._conditions(join.where, row)]
        return _Rows(row=row, text=f"{text}\nWHERE {_and(conditions)}", order=", ".join(order))

    def _conditions(self, where: Expression | None, row: Row) -> list[str]:
        """Under which a row counts: its own condition, and that its required joins have rows that count."""
        conditions = [self._sql(where, _Names(writer=self, row=row)) for where in _optional(where)]
        required = (self._matching(join, row, ()) for join in row.joins if join.required and not join.listed)
        return conditions + ["EXISTS " + subquery(f"SELECT 1\n{rows.text}") for rows in required]

    def _joined(self, join: Join, above: Row) -> str:
        """What an embed shows: an object or value or null, or a list; always json."""
        if join.aggregated or not join.many:
            return self._one(join, above, lambda names: self._value(join.selection, names.row, names))
        if join.listed and not join.required:
            return self._listed(join, above)
        rows = self._matching(join, above, map(node_of, expressions(join.selection)))
        value = self._value(join.selection, rows.row)
        limit = "" if join.limit is None else f"\nLIMIT {join.limit}"
        numbered = f"row_number() OVER (ORDER BY {rows.order}) AS n"
        below = f"SELECT {value} AS v,\n  {numbered}\n{rows.text}\nORDER BY n{limit}"
        return subquery(f"SELECT coalesce(json_agg(r.v ORDER BY r.n), '[]')\nFROM {subquery(below)} AS r")

    def _listed(self, join: Join, above: Row) -> str:
        """A list join: for each element of the array above, in its order, the rows found, or what stands for none."""
        elements = f"e{next(self._numbers)}"
        rows = self._matching(join, above, map(node_of, expressions(join.selection)), elements)
        value = self._value(join.selection, rows.row)
        found = subquery(f"SELECT {value} AS v,\n  row_number() OVER (ORDER BY {rows.order}) AS n\n{rows.text}")
        nothing = self._row(join.entity, join.joins, above)
        absent = self._absent(join, above, elements, nothing)
        embeds = any(below.shown for below in join.joins)
        beside = f"\nLEFT JOIN {table_name(join.entity, self._schema)} AS {nothing.alias} ON false" if embeds else ""
        return subquery(
            f"SELECT coalesce(json_agg(CASE WHEN r.n IS NULL THEN {absent} ELSE r.v END ORDER BY {elements}.n, r.n), '[]')\n"
            f"FROM {unnested(join, above, elements)}\n"
            f"LEFT JOIN LATERAL {found} AS r ON true{beside}"
        )

    def _absent(self, join: Join, above: Row, elements: str, nothing: Row) -> str:
        """An element without a row: all members null but for the join columns, and nothing below."""
        known = {child: as_json(*operand(above, parent, elements)) for child, parent in join.on}
        match join.selection:
            case Bare(of=Column(name=name, path=(), up=0)) if name in known:
                return f"to_json({known[name]})"
            case Bare():
                return "NULL::json"
            case Fields(members=selected):
                named: Iterable[tuple[str, Expression]] = selected
            case Whole():
                named = [(name, Column(name=name)) for name in nothing.entity.columns]
        own = [(name, of.name if isinstance(of, Column) and not (of.path or of.up) else "") for name, of in named]
        members = [(name, known.get(column, "NULL")) for name, column in own]
        return json_object(members + self._embeds(nothing))

    def _embeds(self, row: Row) -> list[tuple[str, str]]:
        """The members that joins below a row make."""
        members = []
        for join in row.joins:
            if join.shown:
                members.append((join.name, self._joined(join, row)))
            if join.total:
                rows = self._matching(join, row, ())
                members.append((f"{join.name}_total", subquery(f"SELECT count(*)\n{rows.text}")))
        return members

    def _one(self, join: Join, above: Row, make: Callable[[_Names], str]) -> str:
        """What `make` writes of the one row of a join, or of all of them where they are aggregated."""
        nodes = [node_of(e) for e in expressions(join.selection)]
        if join.aggregated:
            return self._group(join, above, [a for node in nodes for a in aggregates(node)], make)
        rows = self._matching(join, above, nodes)
        value = make(_Names(writer=self, row=rows.row))
        return subquery(f"SELECT {value}\n{rows.text}\nORDER BY {rows.order}\nLIMIT 1")

    def _group(self, join: Join, above: Row, wanted: Sequence[Aggregate], make: Callable[[_Names], str]) -> str:
        """What `make` writes of aggregates over the rows of a join: the rows first, so that an aggregate is always over them."""
        wanted = list(dict.fromkeys(wanted))
        rows = self._matching(join, above, [a.of for a in wanted if a.of is not None])
        names, alias = _Names(writer=self, row=rows.row), f"g{next(self._numbers)}"
        listed = [f"{sql_expression.write(a.of, names)} AS v{n}" for n, a in enumerate(wanted) if a.of is not None]
        if any((a.function, a.type) == ("sum", "float") for a in wanted):
            listed.append(f"row_number() OVER (ORDER BY {rows.order}) AS n")  # a sum of floats depends on it
        totals = [f"{sql_expression.aggregated(a, f'r.v{n}', 'r.n')} AS a{n}" for n, a in enumerate(wanted)]
        selected = subquery(f"SELECT {', '.join(listed) or 1}\n{rows.text}")
        inner = f"SELECT {', '.join(totals)}\nFROM {selected} AS r"
        group = {a: sql_expression.bounded(a, f"{alias}.a{n}") for n, a in enumerate(wanted)}
        value = make(replace(names, group=group))
        return subquery(f"SELECT {value}\nFROM {subquery(inner)} AS {alias}")

    def _value(self, selection: Selection, row: Row, names: _Names | None = None) -> str:
        """What a level is, as json: the bare value, or the object of selected members and embeds."""
        names = names or _Names(writer=self, row=row)
        match selection:
            case Bare(of=of):
                return f"to_json({self._member(of, names)})"
            case Fields(members=selected):
                named: Iterable[tuple[str, Expression]] = selected
            case Whole():
                named = [(name, Column(name=name)) for name in row.entity.columns]
        members = [(name, self._member(of, names)) for name, of in named]
        return json_object(members + self._embeds(row))

    def _member(self, expression: Expression, names: _Names) -> str:
        """An expression as PostgreSQL's json functions are to take it."""
        if isinstance(expression, Column):
            return as_json(*names.row.find(expression))
        node = expression.of
        if isinstance(node, Shown):
            above = names.row.reach(node.path[:-1])
            return _where_there_is(above, node.path, self._joined(above.join(node.path[-1]), above))
        return sql_expression.as_json(node, sql_expression.write(node, names), node.type)

    def _terms(self, order_by: Iterable[Order], row: Row) -> Iterator[str]:
        names = _Names(writer=self, row=row)
        for term in order_by:
            by = sortable(*row.find(term.by)) if isinstance(term.by, Column) else self._sortable(term.by, names)
            yield f"{by} {'DESC' if term.descending else 'ASC'} NULLS LAST"

    def _sortable(self, expression: Computed, names: _Names) -> str:
        """A computed term: in a cast, for PostgreSQL takes a number that is written out for a position."""
        type_ = ColumnType(name=expression.of.type or "string")
        return sortable(f"({self._sql(expression, names)})::{sql_type(type_)}", type_)


def _where_there_is(above: Row, path: Path, value: str) -> str:
    """What a join below a `one` shows: null where that found no row, also where it counts."""
    return f"CASE WHEN {above.own(above.entity.key[0])} IS NOT NULL THEN {value} END" if path[1:] else value


def _reached(node: Node) -> Iterator[Path]:
    """The paths of `one` joins at the end of which the node reads something."""
    match node:
        case Column(up=0, path=path):
            yield path
        case Shown(path=path):
            yield path[:-1]
        case Call(args=args):
            for arg in args:
                yield from _reached(arg)
        case Aggregate(over=(), of=of) if of is not None:
            yield from _reached(of)
        case Aggregate(over=over, of=of) if over:
            yield over[:-1]
            for inner in read_by(of) if of is not None else ():
                if isinstance(inner, Column) and 0 < inner.up <= len(over):
                    yield over[: len(over) - inner.up] + inner.path


def _prefixes(paths: Iterable[Path]) -> Iterator[Path]:
    """The paths and what leads to them, each once, shorter ones first."""
    found = dict.fromkeys(path[:length] for path in paths for length in range(1, len(path) + 1))
    return iter(sorted(found, key=len))


def _optional(expression: Expression | None) -> tuple[Expression, ...]:
    return () if expression is None else (expression,)


def _and(conditions: Iterable[str]) -> str:
    return "\n  AND ".join(conditions)


def _key_order(row: Row) -> list[str]:
    return [sortable(row.own(name), row.entity.columns[name]) for name in row.entity.key]
