"""The rows of a product's query, and the conditions that join two of them: by columns, or by elements of an array."""

from dataclasses import dataclass, field

from processor.product.expressions.catalogue import folded_text
from processor.product.expressions.expression import Column, Path
from processor.product.join_fields import array_of, parse_element, type_of
from processor.product.product import Join
from processor.product.sql_printer.sql_text import as_json, literal, quote, sql_name, subquery
from processor.records.entity import ColumnType, Compare, Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlRow:
    """A row that expressions can name. `alias`: its name in the query; `above`: the row above it; `one_joins`: the rows that its
    `one` joins find, by the join's name."""

    alias: str
    entity: Entity
    joins: tuple[Join, ...]
    above: "SqlRow | None" = None
    one_joins: "dict[str, SqlRow]" = field(default_factory=dict)

    def column(self, name: str) -> str:
        return f"{self.alias}.{quote(sql_name(name))}"

    def join(self, name: str) -> Join:
        return next(join for join in self.joins if join.name == name)

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
    column = row.column(name)
    if row.entity.columns[name].array:
        return f"unnest({column})"
    return f"jsonb_array_elements(CASE jsonb_typeof({column}) WHEN 'array' THEN {column} END)"


def operand(row: SqlRow, field: str, elements: str) -> tuple[str, ColumnType]:
    """The SQL of a field by which a row joins, and its type. `elements`: the alias of the elements, for a field of an array."""
    read, column = parse_element(field), type_of(field, row.entity)
    if read is None:
        return row.column(field), column
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
