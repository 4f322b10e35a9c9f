"""Prints a product as one PostgreSQL query: the product's meaning, and the oracle of the tests.

The query reads one table for each entity, with the declared columns (`table_ddl.py`). It returns one row for each root that has a
document, in key order: the root's key columns, then `document` as json. Undeclared columns have no SQL form. Columns and tables
whose names PostgreSQL refuses or cuts have other names (`sql_name`).

Each level is a correlated subquery. A `one` join whose columns are used by name is a LATERAL join at its level. A required join
is an EXISTS. For aggregates, the innermost query selects the rows, the next one aggregates, and the outer one makes the value.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from textwrap import indent

from processor.product.expressions.expression import (
    Aggregate,
    Column,
    Computed,
    Expression,
    ExpressionNode,
    Path,
    Shown,
    aggregates,
    node_of,
)
from processor.product.product import BareValue, Fields, Join, OrderTerm, Product, Selection, WholeRow, expressions
from processor.product.sql_printer import sql_expression
from processor.product.sql_printer.read_paths import read_paths
from processor.product.sql_printer.sql_rows import SqlRow, join_condition, operand, unnest_elements
from processor.product.sql_printer.sql_text import (
    as_json,
    json_object,
    sortable,
    sql_type,
    subquery,
    table_name,
)
from processor.records.entity import ColumnType, Entity


def product_sql(product: Product, entities: Mapping[str, Entity], schema: str | None = None) -> str:
    """The query whose rows are the product's documents, without a semicolon; no parameters, no `%` escapes."""
    return _QueryWriter(entities, schema).query(product)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows that a join finds: FROM and WHERE as `text`, and their complete `order`."""

    row: SqlRow
    text: str
    order: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowNames:
    """The SQL names for expressions at a row. `group`: the aliases of aggregates over a group of rows."""

    writer: "_QueryWriter"
    row: SqlRow
    group: Mapping[Aggregate, str] = field(default_factory=dict)

    def column(self, column: Column) -> str:
        return self.row.find_column(column)[0]

    def shown(self, path: Path) -> str:
        above = self.row.reach(path[:-1])
        return _null_without_row(above, path, self.writer.scalar(above.join(path[-1]), above))

    def aggregate(self, aggregate: Aggregate) -> str:
        if not aggregate.over:
            return self.group[aggregate]
        above = self.row.reach(aggregate.over[:-1])
        return self.writer.total(aggregate, above.join(aggregate.over[-1]), above)


class _QueryWriter:
    """Writes the parts of one query, and numbers the aliases in the order of writing."""

    def __init__(self, entities: Mapping[str, Entity], schema: str | None) -> None:
        self._entities = entities
        self._schema = schema
        self._numbers = count()

    def query(self, product: Product) -> str:
        read = [*expressions(product.selection), *_optional(product.where)]
        row, text = self._from(product.root, product.joins, map(node_of, read), None)
        document = self._value(product.selection, row)
        if isinstance(product.selection, BareValue):
            document = f"coalesce({document}, 'null')"  # a null value is a document
        keys = [row.column(name) for name in row.entity.key]
        selected = ",\n".join([*keys, f"{document} AS document"])
        conditions = self._conditions(product.where, row)
        where = f"\nWHERE {_and(conditions)}" if conditions else ""
        return f"SELECT\n{indent(selected, '  ')}\n{text}{where}\nORDER BY {', '.join(_key_order(row))}"

    def scalar(self, join: Join, above: SqlRow) -> str:
        """The bare value of a join, in its own type."""
        (value,) = expressions(join.selection)
        return self._one(join, above, lambda names: self._sql(value, names))

    def total(self, aggregate: Aggregate, join: Join, above: SqlRow) -> str:
        """An aggregate over the rows of a join."""
        inner = replace(aggregate, over=())
        return self._group(join, above, (inner,), lambda names: names.aggregate(inner))

    def _sql(self, expression: Expression, names: _RowNames) -> str:
        return sql_expression.write_expression(node_of(expression), names)

    def _from(
        self, entity: str, joins: tuple[Join, ...], read: Iterable[ExpressionNode], above: SqlRow | None
    ) -> tuple[SqlRow, str]:
        """FROM with the level's own row and the `one` joins that expressions name, each after the row that it joins."""
        row = self._row(entity, joins, above)
        clauses = [f"FROM {table_name(entity, self._schema)} AS {row.alias}"]
        for path in read_paths(read):
            parent = row.reach(path[:-1])
            join = parent.join(path[-1])
            first = self._matching(join, parent, ())
            rows = f"SELECT {first.row.alias}.*\n{first.text}\nORDER BY {first.order}\nLIMIT 1"
            parent.one_joins[path[-1]] = lateral = self._row(join.entity, join.joins, parent)
            clauses.append(f"LEFT JOIN LATERAL (\n{indent(rows, '  ')}\n) AS {lateral.alias} ON true")
        return row, "\n".join(clauses)

    def _row(self, entity: str, joins: tuple[Join, ...], above: SqlRow | None) -> SqlRow:
        return SqlRow(alias=f"t{next(self._numbers)}", entity=self._entities[entity], joins=joins, above=above)

    def _matching(self, join: Join, above: SqlRow, selected: Iterable[ExpressionNode], elements: str = "") -> _Rows:
        """The rows that a join finds for one row above. `selected`: the nodes that the caller evaluates at them. A list join
        finds rows for the element of alias `elements`; without an alias, for all elements in their order."""
        read = [*selected, *map(node_of, (*_optional(join.where), *(term.by for term in join.order_by)))]
        row, text = self._from(join.entity, join.joins, read, above)
        order = [*self._terms(join.order_by, row), *_key_order(row)]
        if join.listed and not elements:
            elements = f"e{next(self._numbers)}"
            text += f"\nCROSS JOIN {unnest_elements(join, above, elements)}"
            order.insert(0, f"{elements}.n")
        conditions = [join_condition(join, row, above, elements), *self._conditions(join.where, row)]
        return _Rows(row=row, text=f"{text}\nWHERE {_and(conditions)}", order=", ".join(order))

    def _conditions(self, where: Expression | None, row: SqlRow) -> list[str]:
        """The conditions for a row to count: its `where`, and a row that counts for each required join."""
        conditions = [self._sql(where, _RowNames(writer=self, row=row)) for where in _optional(where)]
        required = (self._matching(join, row, ()) for join in row.joins if join.required and not join.listed)
        return conditions + ["EXISTS " + subquery(f"SELECT 1\n{rows.text}") for rows in required]

    def _embed(self, join: Join, above: SqlRow) -> str:
        """An embed as json: an object, a value, null or a list."""
        if join.aggregated or not join.many:
            return self._one(join, above, lambda names: self._value(join.selection, names.row, names))
        if join.listed and not join.required:
            return self._list_join(join, above)
        rows = self._matching(join, above, map(node_of, expressions(join.selection)))
        value = self._value(join.selection, rows.row)
        limit = "" if join.limit is None else f"\nLIMIT {join.limit}"
        numbered = f"row_number() OVER (ORDER BY {rows.order}) AS n"
        below = f"SELECT {value} AS v,\n  {numbered}\n{rows.text}\nORDER BY n{limit}"
        return subquery(f"SELECT coalesce(json_agg(r.v ORDER BY r.n), '[]')\nFROM {subquery(below)} AS r")

    def _list_join(self, join: Join, above: SqlRow) -> str:
        """A list join as json: for each element of the array above, in its order, the rows found, or the value without a row."""
        elements = f"e{next(self._numbers)}"
        rows = self._matching(join, above, map(node_of, expressions(join.selection)), elements)
        value = self._value(join.selection, rows.row)
        found = subquery(f"SELECT {value} AS v,\n  row_number() OVER (ORDER BY {rows.order}) AS n\n{rows.text}")
        nothing = self._row(join.entity, join.joins, above)
        absent = self._absent(join, above, elements, nothing)
        embeds = any(below.shown for below in join.joins)
        no_row = f"\nLEFT JOIN {table_name(join.entity, self._schema)} AS {nothing.alias} ON false" if embeds else ""
        return subquery(
            f"SELECT coalesce(json_agg(CASE WHEN r.n IS NULL THEN {absent} ELSE r.v END ORDER BY {elements}.n, r.n), '[]')\n"
            f"FROM {unnest_elements(join, above, elements)}\n"
            f"LEFT JOIN LATERAL {found} AS r ON true{no_row}"
        )

    def _absent(self, join: Join, above: SqlRow, elements: str, nothing: SqlRow) -> str:
        """An element without a row: all members are null except the join columns, and the joins below are empty."""
        known = {child: as_json(*operand(above, parent, elements)) for child, parent in join.on}
        match join.selection:
            case BareValue(expression=Column(name=name, path=(), up=0)) if name in known:
                return f"to_json({known[name]})"
            case BareValue():
                return "NULL::json"
            case Fields(members=selected):
                named: Iterable[tuple[str, Expression]] = selected
            case WholeRow():
                named = [(name, Column(name=name)) for name in nothing.entity.columns]
        own = [(name, of.name if isinstance(of, Column) and not (of.path or of.up) else "") for name, of in named]
        members = [(name, known.get(column, "NULL")) for name, column in own]
        return json_object(members + self._embeds(nothing))

    def _embeds(self, row: SqlRow) -> list[tuple[str, str]]:
        """The members that the embeds below a row make."""
        members = []
        for join in row.joins:
            if join.shown:
                members.append((join.name, self._embed(join, row)))
            if join.total:
                rows = self._matching(join, row, ())
                members.append((f"{join.name}_total", subquery(f"SELECT count(*)\n{rows.text}")))
        return members

    def _one(self, join: Join, above: SqlRow, make: Callable[[_RowNames], str]) -> str:
        """A subquery: `make` writes the value of the one row of a join, or of all rows if they are aggregated."""
        nodes = [node_of(e) for e in expressions(join.selection)]
        if join.aggregated:
            return self._group(join, above, [a for node in nodes for a in aggregates(node)], make)
        rows = self._matching(join, above, nodes)
        value = make(_RowNames(writer=self, row=rows.row))
        return subquery(f"SELECT {value}\n{rows.text}\nORDER BY {rows.order}\nLIMIT 1")

    def _group(self, join: Join, above: SqlRow, wanted: Sequence[Aggregate], make: Callable[[_RowNames], str]) -> str:
        """A subquery: `make` writes the value of aggregates over the rows of a join. The rows are selected first, so that an
        aggregate always runs over exactly them."""
        wanted = list(dict.fromkeys(wanted))
        rows = self._matching(join, above, [a.argument for a in wanted if a.argument is not None])
        names, alias = _RowNames(writer=self, row=rows.row), f"g{next(self._numbers)}"
        columns = [
            f"{sql_expression.write_expression(a.argument, names)} AS v{n}"
            for n, a in enumerate(wanted)
            if a.argument is not None
        ]
        if any((a.function, a.type) == ("sum", "float") for a in wanted):
            columns.append(f"row_number() OVER (ORDER BY {rows.order}) AS n")  # a sum of floats depends on the order
        totals = [f"{sql_expression.write_aggregate(a, f'r.v{n}', 'r.n')} AS a{n}" for n, a in enumerate(wanted)]
        selected = subquery(f"SELECT {', '.join(columns) or 1}\n{rows.text}")
        inner = f"SELECT {', '.join(totals)}\nFROM {selected} AS r"
        group = {a: sql_expression.bound_aggregate(a, f"{alias}.a{n}") for n, a in enumerate(wanted)}
        value = make(replace(names, group=group))
        return subquery(f"SELECT {value}\nFROM {subquery(inner)} AS {alias}")

    def _value(self, selection: Selection, row: SqlRow, names: _RowNames | None = None) -> str:
        """A level as json: the bare value, or the object of the selected members and the embeds."""
        names = names or _RowNames(writer=self, row=row)
        match selection:
            case BareValue(expression=expression):
                return f"to_json({self._member(expression, names)})"
            case Fields(members=selected):
                named: Iterable[tuple[str, Expression]] = selected
            case WholeRow():
                named = [(name, Column(name=name)) for name in row.entity.columns]
        members = [(name, self._member(of, names)) for name, of in named]
        return json_object(members + self._embeds(row))

    def _member(self, expression: Expression, names: _RowNames) -> str:
        """An expression as an argument of PostgreSQL's json functions."""
        if isinstance(expression, Column):
            return as_json(*names.row.find_column(expression))
        node = expression.node
        if isinstance(node, Shown):
            above = names.row.reach(node.path[:-1])
            return _null_without_row(above, node.path, self._embed(above.join(node.path[-1]), above))
        return sql_expression.computed_as_json(node, sql_expression.write_expression(node, names), node.type)

    def _terms(self, order_by: Iterable[OrderTerm], row: SqlRow) -> Iterator[str]:
        names = _RowNames(writer=self, row=row)
        for term in order_by:
            by = sortable(*row.find_column(term.by)) if isinstance(term.by, Column) else self._sortable(term.by, names)
            yield f"{by} {'DESC' if term.descending else 'ASC'} NULLS LAST"

    def _sortable(self, expression: Computed, names: _RowNames) -> str:
        """A computed term, in a cast: PostgreSQL would read a bare number in ORDER BY as a position."""
        type_ = ColumnType(name=expression.node.type or "string")
        return sortable(f"({self._sql(expression, names)})::{sql_type(type_)}", type_)


def _null_without_row(above: SqlRow, path: Path, value: str) -> str:
    """The value of a join below a `one`. If the `one` found no row, the value is null, and not the 0 of a count."""
    return f"CASE WHEN {above.column(above.entity.key[0])} IS NOT NULL THEN {value} END" if path[1:] else value


def _optional(expression: Expression | None) -> tuple[Expression, ...]:
    return () if expression is None else (expression,)


def _and(conditions: Iterable[str]) -> str:
    return "\n  AND ".join(conditions)


def _key_order(row: SqlRow) -> list[str]:
    return [sortable(row.column(name), row.entity.columns[name]) for name in row.entity.key]
