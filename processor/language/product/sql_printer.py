"""Prints a product as one PostgreSQL query: the product's meaning, and the oracle of the tests. Pure.

The query reads one table for each entity, with the declared columns (`table_ddl`). It returns one row for each root that has a
document, in key order: the root's key columns, then `document` as json. Undeclared columns have no SQL form. Columns and tables
whose names PostgreSQL refuses or cuts have other names (`sql_name`).

Each level is a correlated subquery. A `one` join whose columns are used by name is a LATERAL join at its level. A required join
is an EXISTS. For aggregates, the innermost query selects the rows, the next one aggregates, and the outer one makes the value.

From the bottom up: names, literals and types; expressions, whose names the query chooses (`SqlNames`); the rows of a query and
the conditions that join two of them, by columns or by elements of an array; and the query.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from hashlib import sha256
from itertools import count
from textwrap import indent
from typing import Protocol

from processor.language.product.expressions.catalogue import (
    FUNCTIONS,
    folded_order,
    folded_text,
    timestamp_text,
    within_range,
)
from processor.language.product.expressions.expression import (
    LISTS,
    Aggregate,
    Built,
    Call,
    Clock,
    Column,
    Computed,
    Depth,
    Expression,
    ExpressionNode,
    Literal,
    Path,
    Shown,
    Type,
    aggregates,
    node_of,
    references,
)
from processor.language.product.join_fields import array_of, parse_element, read_computed, type_of
from processor.language.product.product import (
    BareValue,
    Fields,
    GroupEntity,
    Join,
    OrderTerm,
    Product,
    Selection,
    WholeRow,
    embeds,
    expressions,
    gathered_paths,
    members_below,
    root_entity,
)
from processor.values.entity import ColumnType, Compare, Entity
from processor.values.record import Value

_SQL_TYPES = {
    "int": "numeric",  # a source's unsigned 64-bit integers do not fit bigint
    "string": "text",
    "float": "double precision",
    "decimal": "numeric",
    "bool": "boolean",
    "date": "date",
    "timestamp": "timestamptz",
    "json": "jsonb",
}
_SYSTEM_COLUMNS = {"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"}
_MAX_NAME_BYTES = 63
_MAX_MEMBERS = 50  # json_build_object takes 100 arguments, two for each member


def sortable(expression: str, column: ColumnType) -> str:
    """A column for ORDER BY. Text is ordered by code point, whatever the database's collation is."""
    return f'{expression} COLLATE "C"' if column.name == "string" else expression


def as_json(expression: str, column: ColumnType) -> str:
    """A column as an argument of PostgreSQL's json functions."""
    if column.name != "timestamp":
        return expression
    if not column.array:
        return timestamp_text(expression)
    elements = (
        f"SELECT json_agg({timestamp_text('e.v')} ORDER BY e.n) FROM unnest({expression}) WITH ORDINALITY AS e(v, n)"
    )
    return f"CASE WHEN {expression} IS NOT NULL THEN coalesce(({elements}), '[]') END"


def json_object(members: list[tuple[str, str]]) -> str:
    """A json object of (name, expression) members in their order; any number of members."""
    if len(members) <= _MAX_MEMBERS:
        pairs = ",\n".join(f"{literal(name)}, {value}" for name, value in members)
        return f"json_build_object(\n{indent(pairs, '  ')}\n)"
    rows = ",\n".join(f"({n}, {literal(name)}, to_json({value}))" for n, (name, value) in enumerate(members))
    values = f"VALUES\n{indent(rows, '  ')}"
    return subquery(f"SELECT json_object_agg(m.k, m.v ORDER BY m.n)\nFROM {subquery(values)} AS m(n, k, v)")


def subquery(text: str) -> str:
    """A query in parentheses."""
    return f"(\n{indent(text, '  ')}\n)"


def sql_type(column: ColumnType) -> str:
    """The PostgreSQL type of a column."""
    return _SQL_TYPES[column.name] + ("[]" if column.array else "")


def table_name(name: str, schema: str | None) -> str:
    """The table of an entity, quoted."""
    return quote(sql_name(name)) if schema is None else f"{quote(schema)}.{quote(sql_name(name))}"


def sql_name(name: str) -> str:
    """The name of a column or a table in PostgreSQL: the same name, unless PostgreSQL would refuse it or cut it. Then the name
    has a hash at its end, so that different names stay different."""
    if name not in _SYSTEM_COLUMNS and len(name.encode()) <= _MAX_NAME_BYTES:
        return name
    head = name.encode()[: _MAX_NAME_BYTES - 17].decode(errors="ignore")
    return f"{head}~{sha256(name.encode()).hexdigest()[:16]}"


def quote(identifier: str) -> str:
    """An identifier in double quotes."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in single quotes (standard_conforming_strings, PostgreSQL's default)."""
    return "'" + text.replace("'", "''") + "'"


def table_ddl(entity: Entity, schema: str | None = None) -> str:
    """CREATE TABLE for the entity's declared columns. A `decimal(p,s)` column keeps every digit, as the store does. Keys are not
    null, but the table has no primary key: PostgreSQL's index refuses texts of over 2,704 bytes."""
    columns = [
        f"{quote(sql_name(name))} {sql_type(column)}{' NOT NULL' if name in entity.key else ''}"
        for name, column in entity.columns.items()
    ]
    body = ",\n  ".join(columns)
    return f"CREATE TABLE {table_name(entity.name, schema)} (\n  {body}\n)"


class SqlNames(Protocol):
    """The SQL text of a query for the columns, joins and aggregates of an expression."""

    def column(self, column: Column) -> str:
        """A column of a row."""

    def shown(self, shown: Shown) -> str:
        """The value of a join."""

    def built(self, built: Built) -> str:
        """A json object or array."""

    def aggregate(self, aggregate: Aggregate) -> str:
        """An aggregate over rows."""

    def clock(self, clock: Clock) -> str:
        """The clock of the product."""


def write_expression(node: ExpressionNode, names: SqlNames) -> str:
    """The node as SQL that needs no parentheses around it."""
    match node:
        case Column():
            return names.column(node)
        case Literal(value=value, type=type_):
            return _literal(value, type_)
        case Call(function=function, args=args):
            return FUNCTIONS[function].write([write_expression(arg, names) for arg in args])
        case Aggregate():
            return names.aggregate(node)
        case Built():
            return names.built(node)
        case Shown():
            return names.shown(node)
        case Depth(level=level):
            return f"{level}::numeric"
        case Clock():
            return names.clock(node)


def computed_as_json(node: ExpressionNode, written: str, type_: Type) -> str:
    """A computed value as an argument of PostgreSQL's json functions."""
    match type_:
        case "timestamp":
            return timestamp_text(written)
        case "string" if isinstance(node, Literal):
            return f"{written}::text"
        case _:
            return written


def write_aggregate(aggregate: Aggregate, row: Callable[[str], str]) -> str:
    """The call of an aggregate function. `row`: the column of a row by its name: `v` the argument, `w` the second argument, `f`
    the filter, `o0` the first term of its order, `n` the order of the rows, for a sum of floats and all lists."""
    value, order = row("v"), ", ".join([*_aggregate_terms(aggregate, row), row("n")])
    conditions = [row("f")] if aggregate.where is not None else []
    distinct = "DISTINCT " if aggregate.distinct else ""
    text = aggregate.takes == "string"
    sorted_value = f'{value} COLLATE "C"' if text else value
    if aggregate.distinct:
        order = _aggregate_terms(aggregate, lambda _: value, text)[0] if aggregate.order else sorted_value
    match aggregate:
        case Aggregate(argument=None):
            call = "count(*)"
        case Aggregate(function="count"):
            call = f"count({distinct}{sorted_value if distinct else value})"
        case Aggregate(function="sum", type="float"):
            call = f"sum({distinct}{value} ORDER BY {order})"
        case Aggregate(function="sum"):
            call = f"sum({distinct}{value}::numeric)"
        case Aggregate(function="array_agg"):
            call = f"{_array_function(aggregate)}({distinct}{sorted_value if distinct else value} ORDER BY {order})"
        case Aggregate(function="string_agg"):
            call = f"string_agg({distinct}{sorted_value if distinct else value}, {row('w')} ORDER BY {order})"
        case Aggregate(function="json_object_agg"):
            call = f"jsonb_object_agg({value}, {row('w')} ORDER BY {order})"
            conditions.append(f"{value} IS NOT NULL")
        case Aggregate(function="first"):
            return f"(array_agg({value} ORDER BY {order}){_filter(conditions)})[1]"
        case Aggregate(function="last"):
            order = ", ".join([*_aggregate_terms(aggregate, row, turned=True), f"{row('n')} DESC"])
            return f"(array_agg({value} ORDER BY {order}){_filter(conditions)})[1]"
        case Aggregate(compare=compare) if compare:
            order = folded_order(value, "+".join(compare), "ASC" if aggregate.function == "min" else "DESC")
            return f"(array_agg({value} ORDER BY {order}){_filter([*conditions, f'{value} IS NOT NULL'])})[1]"
        case Aggregate(type="string"):
            return f'{aggregate.function}({sorted_value}){_filter(conditions)} COLLATE "default"'
        case _:
            call = f"{aggregate.function}({value})"
    return call + _filter(conditions)


def _filter(conditions: Sequence[str]) -> str:
    return f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""


def _aggregate_terms(
    aggregate: Aggregate, row: Callable[[str], str], text: bool = False, turned: bool = False
) -> list[str]:
    """The terms of an aggregate's own order; `turned`: from its end."""
    terms = []
    for n, term in enumerate(aggregate.order):
        by = sortable(row(f"o{n}"), ColumnType(name="string" if text or term.is_text else "int"))
        direction = "DESC" if term.descending is not turned else "ASC"
        terms.append(f"{by} {direction} NULLS {'FIRST' if term.nulls_first is not turned else 'LAST'}")
    return terms


def _array_function(aggregate: Aggregate) -> str:
    return "json_agg" if aggregate.takes == "json" else "array_agg"


def _needs_order(aggregate: Aggregate) -> bool:
    """Whether the value of an aggregate depends on the order of the rows."""
    if aggregate.distinct:
        return False
    return aggregate.function in LISTS or (aggregate.function, aggregate.type) == ("sum", "float")


def bound_aggregate(aggregate: Aggregate, written: str) -> str:
    """The aggregate's value, or null if it is out of range. An array as json."""
    if aggregate.function == "array_agg" and _array_function(aggregate) == "array_agg":
        return f"to_jsonb({as_json(written, ColumnType(name=aggregate.takes or 'string', array=True))})"
    if aggregate.function == "array_agg":
        return f"to_jsonb({written})"
    return within_range(written) if (aggregate.function, aggregate.type) == ("sum", "float") else written


def _literal(value: Value, type_: Type) -> str:
    match value:
        case None:
            return f"NULL::{sql_type(ColumnType(name=type_ or 'string'))}"
        case bool():
            return "true" if value else "false"
        case str() if type_ == "string":
            return literal(value)
        case str():
            return f"{literal(value)}::{sql_type(ColumnType(name=type_ or 'string'))}"
    number = format(Decimal(value), "f")
    number = f"({number})" if number.startswith("-") else number
    if type_ == "float":
        return f"{number}::double precision"
    return f"{number}::numeric" if type_ == "decimal" and "." not in number else number


def read_paths(nodes: Iterable[ExpressionNode]) -> list[Path]:
    """The paths that the nodes read and all prefixes of these paths, each once, shorter ones first."""
    paths = (path for node in nodes for path in _paths_read(node))
    found = dict.fromkeys(path[:length] for path in paths for length in range(1, len(path) + 1))
    return sorted(found, key=len)


def _paths_read(node: ExpressionNode) -> Iterator[Path]:
    """The paths of `one` joins whose rows the node reads."""
    match node:
        case Column(up=0, path=path):
            yield path
        case Shown(path=path):
            yield () if node.flat else path[:-1]
        case Call(args=args) | Built(parts=args):
            for arg in args:
                yield from _paths_read(arg)
        case Aggregate(over=()):
            for part in node.read:
                yield from _paths_read(part)
        case Aggregate(over=over):
            yield over[:-1]
            for part in node.read:
                for inner in references(part):
                    if isinstance(inner, Column) and 0 < inner.up <= len(over):
                        yield over[: len(over) - inner.up] + inner.path


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlRow:
    """A row that expressions can name. `alias`: its name in the query; `above`: the row above it; `one_joins`: the rows that its
    `one` joins find, by the join's name. `optional`: where there is no row, the query has one of nulls."""

    alias: str
    entity: Entity
    joins: tuple[Join, ...]
    above: "SqlRow | None" = None
    one_joins: "dict[str, SqlRow]" = field(default_factory=dict)
    optional: bool = False

    def column(self, name: str) -> str:
        return f"{self.alias}.{quote(sql_name(name))}"

    def join(self, path: Path) -> Join:
        """The join at the end of a path of joins."""
        joins = self.joins
        for name in path:
            found = next(join for join in joins if join.name == name)
            joins = found.joins
        return found

    def reaches(self, path: Path) -> bool:
        """Whether only `one` joins lead along a path."""
        return not any(self.join(path[:length]).many for length in range(1, len(path) + 1))

    def reach(self, path: Path, up: int = 0) -> "SqlRow":
        row = self
        for _ in range(up):
            assert row.above is not None
            row = row.above
        for step in path:
            row = row.one_joins[step]
        return row

    def find_column(self, column: Column) -> tuple[str, ColumnType]:
        """The SQL name of a column, and its type."""
        row = self.reach(column.path, column.up)
        return row.column(column.name), row.entity.columns[column.name]


@dataclass(frozen=True, slots=True)
class _RowAlone:
    """The SQL names of an expression over the columns of one row."""

    row: SqlRow

    def column(self, column: Column) -> str:
        return self.row.column(column.name)

    def shown(self, shown: Shown) -> str:
        raise AssertionError(shown)

    def built(self, built: Built) -> str:
        raise AssertionError(built)

    def aggregate(self, aggregate: Aggregate) -> str:
        raise AssertionError(aggregate)

    def clock(self, clock: Clock) -> str:
        raise AssertionError(clock)


def join_condition(join: Join, row: SqlRow, above: SqlRow, elements: str) -> str:
    """The condition that `row` joins the row above. `elements`: the alias of the elements of a list join. If the child joins by
    an array of its own, one of that array's elements has to join."""
    array = array_of(join.child_columns)
    elements = f"e_{row.alias}" if array else elements
    compares = join.compare or ((),) * len(join.on)
    pairs = (
        _equal(operand(row, child, elements), operand(above, parent, elements), compare)
        for (child, parent), compare in zip(join.on, compares, strict=True)
    )
    condition = "\n  AND ".join(pairs)
    if array is None:
        return condition
    return "EXISTS " + subquery(f"SELECT FROM {_elements(row, array)} AS {elements}(v)\nWHERE {condition}")


def unnest_elements(join: Join, above: SqlRow, alias: str) -> str:
    """FROM text for the elements of the array that a list join looks up: value v, and position n."""
    return f"{_elements(above, array_of(join.parent_columns) or '')} WITH ORDINALITY AS {alias}(v, n)"


def _elements(row: SqlRow, name: str) -> str:
    """FROM text for the elements of a column: of an array, or of json. Json of another kind has none."""
    computed = read_computed(name)
    if computed is None and row.entity.columns[name].array:
        return f"unnest({row.column(name)})"
    column = _column_or_expression(row, name)
    return f"jsonb_array_elements(CASE jsonb_typeof({column}) WHEN 'array' THEN {column} END)"


def _column_or_expression(row: SqlRow, field: str) -> str:
    """A column, or the expression in its place. An expression is null where there is no row, also `coalesce(n, 1)`."""
    computed = read_computed(field)
    if computed is None:
        return row.column(field)
    written = write_expression(computed.node, _RowAlone(row))
    return f"CASE WHEN {row.column(row.entity.key[0])} IS NOT NULL THEN {written} END" if row.optional else written


def operand(row: SqlRow, field: str, elements: str) -> tuple[str, ColumnType]:
    """The SQL of a join field, and its type. `elements`: the alias of the elements, for a field of an array."""
    read, column = parse_element(field), type_of(field, row.entity)
    if read is None:
        return _column_or_expression(row, field), column
    return f"{elements}.v" if read.member is None else f"{elements}.v -> {literal(read.member)}", column


def _equal(one: tuple[str, ColumnType], other: tuple[str, ColumnType], compare: Compare) -> str:
    """The condition that two sides are equal. A float is compared with an int or a decimal by its shortest decimal form, so that
    nothing is rounded to a double. A json value is compared with the json form of the other side. `compare`: how text compares;
    json other than text then joins nothing."""
    sides = (one, other)
    names = {column.name for _, column in sides}
    if compare:
        left, right = (folded_text(_as_text(e, column), "+".join(compare)) for e, column in sides)
    elif "json" in names:
        left, right = (e if column.name == "json" else f"to_jsonb({as_json(e, column)})" for e, column in sides)
    else:
        mixed = "float" in names and len(names) > 1
        left, right = (f"{e}::text::numeric" if mixed and column.name == "float" else e for e, column in sides)
    return f"{left} = {right}"


def _as_text(written: str, column: ColumnType) -> str:
    """A text, or the text of a json value."""
    if column.name != "json":
        return written
    return f"CASE WHEN jsonb_typeof({written}) = 'string' THEN {written} #>> '{{}}' END"


def product_sql(
    product: Product, entities: Mapping[str, Entity], schema: str | None = None, *, clock: int | None = None
) -> str:
    """The query whose rows are the product's documents, without a semicolon; no parameters, no `%` escapes. `clock`: of the
    product, in seconds since 1970; None for the time of the query."""
    moment = "now()" if clock is None else f"to_timestamp({clock})"
    return _QueryWriter(entities, schema, moment).query(product)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The rows that a join finds: the tables of FROM, the conditions of WHERE, and their complete `order`."""

    row: SqlRow
    tables: str
    conditions: tuple[str, ...]
    order: str

    @property
    def text(self) -> str:
        """FROM and WHERE."""
        return f"FROM {self.tables}\nWHERE {_and(self.conditions)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowNames:
    """The SQL names for expressions at a row. `group`: the aliases of aggregates over a group of rows."""

    writer: "_QueryWriter"
    row: SqlRow
    group: Mapping[Aggregate, str] = field(default_factory=dict)

    def column(self, column: Column) -> str:
        return self.row.find_column(column)[0]

    def shown(self, shown: Shown) -> str:
        path = shown.path
        if shown.flat:
            return self.writer.scalar(path, self.row)
        above = self.row.reach(path[:-1])
        return _null_without_row(above, path, self.writer.scalar(path[-1:], above))

    def built(self, built: Built) -> str:
        return f"to_jsonb({self.writer.built(built, self)})"

    def clock(self, clock: Clock) -> str:
        return self.writer.clock(clock)

    def aggregate(self, aggregate: Aggregate) -> str:
        over = aggregate.over
        if not over:
            return self.group[aggregate]
        if not self.row.reaches(over[:-1]):
            return self.writer.total(aggregate, over, self.row)
        return self.writer.total(aggregate, over[-1:], self.row.reach(over[:-1]))


class _QueryWriter:
    """Writes the parts of one query, and numbers the aliases in the order of writing."""

    def __init__(self, entities: Mapping[str, Entity], schema: str | None, moment: str) -> None:
        self._entities = entities
        self._schema = schema
        self._moment = moment
        self._numbers = count()

    def query(self, product: Product) -> str:
        read = [*expressions(product.selection), *_optional(product.where)]
        entity = root_entity(product, self._entities)
        row, tables = self._from(entity, product.joins, map(node_of, read), None)
        document = self._value(product.selection, row)
        if isinstance(product.selection, BareValue):
            document = f"coalesce({document}, 'null')"  # a null value is a document
        keys = [row.column(name) for name in row.entity.key]
        selected = ",\n".join([*keys, f"{document} AS document"])
        conditions = self._conditions(product.where, row)
        where = f"\nWHERE {_and(conditions)}" if conditions else ""
        return f"SELECT\n{indent(selected, '  ')}\nFROM {tables}{where}\nORDER BY {', '.join(_key_order(row))}"

    def clock(self, clock: Clock) -> str:
        """The moment, cut to a multiple of the step since 1970."""
        return f"date_bin('{clock.step} seconds', {self._moment}, '1970-01-01 00:00:00+00')"

    def scalar(self, path: Path, above: SqlRow) -> str:
        """The bare value of a join, in its own type."""
        (value,) = expressions(above.join(path).selection)
        return self._one(path, above, lambda names: self._sql(value, names))

    def total(self, aggregate: Aggregate, path: Path, above: SqlRow) -> str:
        """An aggregate over the rows of a join."""
        inner = replace(aggregate, over=())
        return self._group(path, above, (inner,), lambda names: names.aggregate(inner))

    def _sql(self, expression: Expression, names: _RowNames) -> str:
        return write_expression(node_of(expression), names)

    def _from(
        self, entity: Entity, joins: tuple[Join, ...], read: Iterable[ExpressionNode], above: SqlRow | None
    ) -> tuple[SqlRow, str]:
        """FROM with the level's own row and the `one` joins that expressions name, each after the row that it joins."""
        row = self._row(entity, joins, above)
        table = self._groups(entity) if isinstance(entity, GroupEntity) else table_name(entity.name, self._schema)
        return row, "\n".join([f"{table} AS {row.alias}", *self._one_rows(row, read)])

    def _one_rows(self, row: SqlRow, read: Iterable[ExpressionNode]) -> Iterator[str]:
        """A join for each `one` join of a row that the nodes name."""
        for path in filter(row.reaches, read_paths(read)):
            parent = row.reach(path[:-1])
            lateral, first = self._first(parent.join(path[-1:]), parent)
            parent.one_joins[path[-1]] = lateral
            yield f"LEFT JOIN {first} ON true"

    def _groups(self, group: GroupEntity) -> str:
        """The groups of a table's rows."""
        row = self._row(self._entities[group.rows], (), None)
        values = {name: _column_or_expression(row, field) for name, field in group.fields.items()}
        selected = ", ".join(f"{value} AS {quote(sql_name(name))}" for name, value in values.items())
        present = " AND ".join(f"{value} IS NOT NULL" for value in values.values())
        places = ", ".join(map(str, range(1, len(values) + 1)))
        table = table_name(group.rows, self._schema)
        return subquery(f"SELECT {selected}\nFROM {table} AS {row.alias}\nWHERE {present}\nGROUP BY {places}")

    def _first(self, join: Join, above: SqlRow) -> tuple[SqlRow, str]:
        """The row of a `one` join, as a table of FROM."""
        first = self._matching(join, above, ())
        rows = f"SELECT {first.row.alias}.*\n{first.text}\nORDER BY {first.order}\nLIMIT 1"
        row = replace(self._row(self._entities[join.entity], join.joins, above), optional=True)
        return row, f"LATERAL (\n{indent(rows, '  ')}\n) AS {row.alias}"

    def _row(self, entity: Entity, joins: tuple[Join, ...], above: SqlRow | None) -> SqlRow:
        return SqlRow(alias=f"t{next(self._numbers)}", entity=entity, joins=joins, above=above)

    def _matching(self, join: Join, above: SqlRow, selected: Iterable[ExpressionNode], elements: str = "") -> _Rows:
        """The rows that a join finds for one row above. `selected`: the nodes that the caller evaluates at them. A list join
        finds rows for the element of alias `elements`; without an alias, for all elements in their order."""
        read = [
            *selected,
            *map(node_of, (*_optional(join.where), *_optional(join.key), *(t.by for t in join.order_by))),
        ]
        row, tables = self._from(self._entities[join.entity], join.joins, read, above)
        order = [*self._terms(join.order_by, row), *_key_order(row)]
        if join.listed and not elements:
            elements = f"e{next(self._numbers)}"
            tables += f"\nCROSS JOIN {unnest_elements(join, above, elements)}"
            order.insert(0, f"{elements}.n")
        conditions = (
            join_condition(join, row, above, elements),
            *_not_above(row, above, join.level),
            *self._conditions(join.where, row),
        )
        return _Rows(row=row, tables=tables, conditions=conditions, order=", ".join(order))

    def _at(self, path: Path, above: SqlRow, selected: Iterable[ExpressionNode]) -> _Rows:
        """The rows at the end of a path of joins, of all rows of the joins before the last one."""
        tables: list[str] = []
        conditions: list[str] = []
        orders: list[str] = []
        selected = tuple(selected)
        for length in range(1, len(path)):
            join = above.join(path[length - 1 : length])
            named = [one for node in selected for one in references(node) if isinstance(one, Column)]
            read = [replace(one, up=0) for one in named if one.up == len(path) - length]
            if not join.many:
                above, table = self._first(join, above)
                tables.append("\n".join([table, *self._one_rows(above, read)]))
                continue
            rows = self._matching(join, above, read)
            tables.append(rows.tables)
            conditions += rows.conditions
            orders.append(rows.order)
            above = rows.row
        last = self._matching(above.join(path[-1:]), above, selected)
        return _Rows(
            row=last.row,
            tables="\nCROSS JOIN ".join([*tables, last.tables]),
            conditions=(*conditions, *last.conditions),
            order=", ".join([last.order, *orders]),
        )

    def _conditions(self, where: Expression | None, row: SqlRow) -> list[str]:
        """The conditions for a row to count: its `where`, and a row that counts for each required join."""
        conditions = [self._sql(where, _RowNames(writer=self, row=row)) for where in _optional(where)]
        required = (
            self._at(path, row, ()) for path, join in members_below(row.joins) if join.required and not join.listed
        )
        return conditions + ["EXISTS " + subquery(f"SELECT 1\n{rows.text}") for rows in required]

    def _embed(self, path: Path, above: SqlRow) -> str:
        """An embed as json: an object, a value, null or a list."""
        join = above.join(path)
        if join.aggregated or not join.many:
            return self._one(path, above, lambda names: self._value(join.selection, names.row, names))
        if join.listed and not join.required:
            return self._list_join(join, above)
        limit = "" if join.limit is None else f"\nLIMIT {join.limit}"

        def columns(join: Join, rows: _Rows) -> Iterator[str]:
            yield f"{self._value(join.selection, rows.row)} AS v"
            if join.key is not None:
                yield f"{self._sql(join.key, _RowNames(writer=self, row=rows.row))} AS k"

        below = self._numbered(path, above, _selected_nodes, columns)
        if join.distinct:
            below = f"SELECT DISTINCT ON (d.v::jsonb) d.v, d.n\nFROM {subquery(below)} AS d\nORDER BY d.v::jsonb, d.n"
            below = f"SELECT o.v, o.n\nFROM {subquery(below)} AS o"
        below += f"\nORDER BY n{limit}"
        if join.key is not None:  # of several rows with one key the first
            pairs = "jsonb_object_agg(r.k, r.v ORDER BY r.n DESC) FILTER (WHERE r.k IS NOT NULL)"
            return subquery(f"SELECT coalesce({pairs}, '{{}}')\nFROM {subquery(below)} AS r")
        return subquery(f"SELECT coalesce(json_agg(r.v ORDER BY r.n), '[]')\nFROM {subquery(below)} AS r")

    def _numbered(
        self,
        path: Path,
        above: SqlRow,
        selected: Callable[[Join], Iterable[ExpressionNode]],
        columns: Callable[[Join, _Rows], Iterable[str]],
    ) -> str:
        """A query of the rows of a join, or of all in its list, with the columns that `columns` names, and their place `n` in its
        order. `selected`: the nodes that these columns evaluate."""
        join = above.join(path)
        if not join.gathers:
            rows = self._at(path, above, selected(join))
            named = ",\n  ".join([*columns(join, rows), f"row_number() OVER (ORDER BY {rows.order}) AS n"])
            return f"SELECT {named}\n{rows.text}"
        parts: list[str] = []
        directions: list[str] = []
        for number, at in enumerate(gathered_paths(above.joins, path)):
            one = above.join(at)
            rows = self._at(at, above, selected(one))
            terms = list(self._sort_terms(one.order_by, rows.row))
            if not join.parts:
                terms += [(key, "") for key in _key_order(rows.row)]
            directions = [direction for _, direction in terms]
            more = [f"{by} AS s{n}" for n, (by, _) in enumerate(terms)]
            more += [f"{number} AS part", f"row_number() OVER (ORDER BY {rows.order}) AS p"]
            parts.append(f"SELECT {', '.join([*columns(one, rows), *more])}\n{rows.text}")
        order = ", ".join([f"u.s{n}{direction}" for n, direction in enumerate(directions)] + ["u.part", "u.p"])
        union = subquery("\nUNION ALL\n".join(parts))
        return f"SELECT u.*, row_number() OVER (ORDER BY {order}) AS n\nFROM {union} AS u"

    def _list_join(self, join: Join, above: SqlRow) -> str:
        """A list join as json: for each element of the array above, in its order, the rows found, or the value without a row."""
        elements = f"e{next(self._numbers)}"
        rows = self._matching(join, above, _selected_nodes(join), elements)
        value = self._value(join.selection, rows.row)
        found = subquery(f"SELECT {value} AS v,\n  row_number() OVER (ORDER BY {rows.order}) AS n\n{rows.text}")
        nothing = replace(self._row(self._entities[join.entity], join.joins, above), optional=True)
        absent = self._absent(join, above, elements, nothing)
        shown = bool(embeds(join.joins))
        no_row = f"\nLEFT JOIN {table_name(join.entity, self._schema)} AS {nothing.alias} ON false" if shown else ""
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
        for path, join in embeds(row.joins):
            members.append((join.name, self._embed(path, row)))
            if join.total:
                members.append((f"{join.name}_total", self._total(path, row)))
        return members

    def _total(self, path: Path, row: SqlRow) -> str:
        """The number of elements before the limit."""
        join = row.join(path)
        if not join.distinct and not join.gathers:
            return subquery(f"SELECT count(*)\n{self._at(path, row, ()).text}")
        elements = self._numbered(
            path,
            row,
            _selected_nodes,
            lambda one, rows: [f"{self._value(one.selection, rows.row)} AS v"],
        )
        counted = "count(DISTINCT r.v::jsonb)" if join.distinct else "count(*)"
        return subquery(f"SELECT {counted}\nFROM {subquery(elements)} AS r")

    def _one(self, path: Path, above: SqlRow, make: Callable[[_RowNames], str]) -> str:
        """A subquery: `make` writes the value of the one row of a join, or of all rows if they are aggregated."""
        join = above.join(path)
        nodes = [node_of(e) for e in expressions(join.selection)]
        if join.aggregated:
            return self._group(path, above, [a for node in nodes for a in aggregates(node)], make)
        rows = self._at(path, above, nodes)
        value = make(_RowNames(writer=self, row=rows.row))
        return subquery(f"SELECT {value}\n{rows.text}\nORDER BY {rows.order}\nLIMIT 1")

    def _group(self, path: Path, above: SqlRow, wanted: Sequence[Aggregate], make: Callable[[_RowNames], str]) -> str:
        """A subquery: `make` writes the value of aggregates over the rows of a join. The rows are selected first, so that an
        aggregate always runs over exactly them."""
        wanted, join = list(dict.fromkeys(wanted)), above.join(path)
        if join.gathers:
            row = self._row(self._entities[join.entity], join.joins, above)
            selected = self._numbered(path, above, _aggregate_nodes, self._aggregate_columns)
        else:
            rows = self._at(path, above, [node for a in wanted for node in a.read])
            row, columns = rows.row, list(self._columns_of(wanted, rows))
            if any(map(_needs_order, wanted)):
                columns.append(f"row_number() OVER (ORDER BY {rows.order}) AS n")
            selected = f"SELECT {', '.join(columns) or 1}\n{rows.text}"
        names, alias = _RowNames(writer=self, row=row), f"g{next(self._numbers)}"
        totals = [f"{write_aggregate(a, partial(_group_column, n))} AS a{n}" for n, a in enumerate(wanted)]
        inner = f"SELECT {', '.join(totals)}\nFROM {subquery(selected)} AS r"
        group = {a: bound_aggregate(a, f"{alias}.a{n}") for n, a in enumerate(wanted)}
        value = make(replace(names, group=group))
        return subquery(f"SELECT {value}\nFROM {subquery(inner)} AS {alias}")

    def _aggregate_columns(self, join: Join, rows: _Rows) -> Iterator[str]:
        return self._columns_of(_aggregates_of(join), rows)

    def _columns_of(self, wanted: Sequence[Aggregate], rows: _Rows) -> Iterator[str]:
        """The columns that aggregates read of the rows."""
        names = _RowNames(writer=self, row=rows.row)
        return (f"{written} AS {name}" for n, a in enumerate(wanted) for name, written in self._read(a, n, names))

    def _read(self, aggregate: Aggregate, n: int, names: _RowNames) -> Iterator[tuple[str, str]]:
        """The columns that the n-th aggregate reads of each row, by their names."""
        listed = aggregate.function == "array_agg" and aggregate.takes == "json"
        if aggregate.argument is not None:
            value = aggregate.argument
            yield f"v{n}", f"to_json({self.member(value, names)})" if listed else write_expression(value, names)
        if aggregate.second is not None:
            paired = aggregate.function == "json_object_agg"
            value = aggregate.second
            yield f"w{n}", f"to_jsonb({self.member(value, names)})" if paired else write_expression(value, names)
        if aggregate.where is not None:
            yield f"f{n}", write_expression(aggregate.where, names)
        for place, term in enumerate(aggregate.order):
            yield f"o{place}_{n}", write_expression(term.by, names)

    def _value(self, selection: Selection, row: SqlRow, names: _RowNames | None = None) -> str:
        """A level as json: the bare value, or the object of the selected members and the embeds."""
        names = names or _RowNames(writer=self, row=row)
        match selection:
            case BareValue(expression=expression):
                return f"to_json({self.member(node_of(expression), names)})"
            case Fields(members=selected):
                named: Iterable[tuple[str, Expression]] = selected
            case WholeRow():
                named = [(name, Column(name=name)) for name in row.entity.columns]
        members = [(name, self.member(node_of(of), names)) for name, of in named]
        return json_object(members + self._embeds(row))

    def built(self, built: Built, names: _RowNames) -> str:
        """A json object or array, with its members in their order."""
        parts = [self.member(part, names) for part in built.parts]
        if built.names is None:
            return f"json_build_array({', '.join(parts)})"
        return json_object(list(zip(built.names, parts, strict=True)))

    def member(self, node: ExpressionNode, names: _RowNames) -> str:
        """A node as an argument of PostgreSQL's json functions."""
        if isinstance(node, Column):
            return as_json(*names.row.find_column(node))
        if isinstance(node, Built):
            return self.built(node, names)
        if isinstance(node, Shown) and node.flat:
            return self._embed(node.path, names.row)
        if isinstance(node, Shown):
            above = names.row.reach(node.path[:-1])
            return _null_without_row(above, node.path, self._embed(node.path[-1:], above))
        return computed_as_json(node, write_expression(node, names), node.type)

    def _terms(self, order_by: Iterable[OrderTerm], row: SqlRow) -> Iterator[str]:
        return (f"{by}{direction}" for by, direction in self._sort_terms(order_by, row))

    def _sort_terms(self, order_by: Iterable[OrderTerm], row: SqlRow) -> Iterator[tuple[str, str]]:
        names = _RowNames(writer=self, row=row)
        for term in order_by:
            by = sortable(*row.find_column(term.by)) if isinstance(term.by, Column) else self._sortable(term.by, names)
            yield by, f" {'DESC' if term.descending else 'ASC'} NULLS LAST"

    def _sortable(self, expression: Computed, names: _RowNames) -> str:
        """A computed term, in a cast: PostgreSQL would read a bare number in ORDER BY as a position."""
        type_ = ColumnType(name=expression.node.type or "string")
        return sortable(f"({self._sql(expression, names)})::{sql_type(type_)}", type_)


def _null_without_row(above: SqlRow, path: Path, value: str) -> str:
    """The value of a join below a `one`. If the `one` found no row, the value is null, and not the 0 of a count."""
    return f"CASE WHEN {above.column(above.entity.key[0])} IS NOT NULL THEN {value} END" if path[1:] else value


def _selected_nodes(join: Join) -> Iterator[ExpressionNode]:
    return map(node_of, expressions(join.selection))


def _aggregates_of(join: Join) -> list[Aggregate]:
    return list(dict.fromkeys(a for e in expressions(join.selection) for a in aggregates(node_of(e))))


def _aggregate_nodes(join: Join) -> list[ExpressionNode]:
    return [node for aggregate in _aggregates_of(join) for node in aggregate.read]


def _not_above(row: SqlRow, above: SqlRow, levels: int) -> Iterator[str]:
    """The conditions that a row of a recursive join is none of the rows above it."""
    for _ in range(levels):
        keys = [", ".join(one.column(name) for name in one.entity.key) for one in (row, above)]
        yield f"({keys[0]}) <> ({keys[1]})"
        if above.above is None:
            return
        above = above.above


def _group_column(n: int, name: str) -> str:
    """The column of a row that the n-th aggregate of a group reads by a name."""
    return "r.n" if name == "n" else f"r.{name}_{n}" if name.startswith("o") else f"r.{name}{n}"


def _optional(expression: Expression | None) -> tuple[Expression, ...]:
    return () if expression is None else (expression,)


def _and(conditions: Iterable[str]) -> str:
    return "\n  AND ".join(conditions)


def _key_order(row: SqlRow) -> list[str]:
    return [sortable(row.column(name), row.entity.columns[name]) for name in row.entity.key]
