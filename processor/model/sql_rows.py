"""The rows of a query that a product is printed as, and how two are joined: by columns, or by the elements of an array."""

from dataclasses import dataclass, field

from processor.model.elements import array_of, element, type_of
from processor.model.entity import ColumnType, Entity
from processor.model.expression import Column, Path
from processor.model.product import Join
from processor.model.sql_text import as_json, literal, quote, subquery


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row that expressions can name: its alias in the query, the row above it, and the rows of `one` joins beside it."""

    alias: str
    entity: Entity
    joins: tuple[Join, ...]
    above: "Row | None" = None
    beside: "dict[str, Row]" = field(default_factory=dict)

    def own(self, name: str) -> str:
        return f"{self.alias}.{quote(name)}"

    def join(self, name: str) -> Join:
        return next(join for join in self.joins if join.name == name)

    def reach(self, path: Path, up: int = 0) -> "Row":
        row = self
        for _ in range(up):
            assert row.above is not None
            row = row.above
        for step in path:
            row = row.beside[step]
        return row

    def find(self, column: Column) -> tuple[str, ColumnType]:
        """The SQL name of a column, and its type."""
        row = self.reach(column.path, column.up)
        return row.own(column.name), row.entity.columns[column.name]


def joined(join: Join, row: Row, above: Row, elements: str) -> str:
    """That a row of the child joins the one above, by one of the `elements` of a list join; where the child joins by an array of
    its own, that some element of it does."""
    array = array_of(join.child_columns)
    elements = f"e_{row.alias}" if array else elements
    pairs = (_equal(operand(row, child, elements), operand(above, parent, elements)) for child, parent in join.on)
    condition = "\n  AND ".join(pairs)
    if array is None:
        return condition
    return "EXISTS " + subquery(f"SELECT FROM unnest({row.own(array)}) AS {elements}(v)\nWHERE {condition}")


def unnested(join: Join, above: Row, alias: str) -> str:
    """The elements of the array that a list join looks up, as FROM takes them: v, and their place n."""
    return f"unnest({above.own(array_of(join.parent_columns) or '')}) WITH ORDINALITY AS {alias}(v, n)"


def operand(row: Row, field: str, elements: str) -> tuple[str, ColumnType]:
    """A field by which a row joins, and its type; `elements`: the alias of the elements that a field of an array reads."""
    read, column = element(field), type_of(field, row.entity)
    if read is None:
        return row.own(field), column
    return f"{elements}.v" if read.member is None else f"{elements}.v -> {literal(read.member)}", column


def _equal(*sides: tuple[str, ColumnType]) -> str:
    """The join condition. A float meets an int or a decimal by its shortest decimal form, not rounded to a double; a json value
    equals what json would make of the other side."""
    names = {column.name for _, column in sides}
    if "json" in names:
        left, right = (e if column.name == "json" else f"to_jsonb({as_json(e, column)})" for e, column in sides)
    else:
        mixed = "float" in names and len(names) > 1
        left, right = (f"{e}::text::numeric" if mixed and column.name == "float" else e for e, column in sides)
    return f"{left} = {right}"
