"""Prints an expression as PostgreSQL. The query chooses the names of columns, joins and aggregates (`SqlNames`)."""

from decimal import Decimal
from typing import Protocol

from processor.product.expressions.catalogue import FUNCTIONS, folded_order
from processor.product.expressions.expression import Aggregate, Call, Column, ExpressionNode, Literal, Path, Type
from processor.product.expressions.function import timestamp_text, within_range
from processor.product.sql_printer.sql_text import literal, sql_type
from processor.records.entity import ColumnType
from processor.records.record import Value


class SqlNames(Protocol):
    """The SQL text of a query for the columns, joins and aggregates of an expression."""

    def column(self, column: Column) -> str:
        """A column of a row."""

    def shown(self, path: Path) -> str:
        """The value of a join."""

    def aggregate(self, aggregate: Aggregate) -> str:
        """An aggregate over rows."""


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
        case _:
            return names.shown(node.path)


def computed_as_json(node: ExpressionNode, written: str, type_: Type) -> str:
    """A computed value as an argument of PostgreSQL's json functions."""
    match type_:
        case "timestamp":
            return timestamp_text(written)
        case "string" if isinstance(node, Literal):
            return f"{written}::text"
        case _:
            return written


def write_aggregate(aggregate: Aggregate, value: str, order: str) -> str:
    """The call of an aggregate function. `order`: the order of the rows; a sum of floats depends on it."""
    match aggregate:
        case Aggregate(argument=None):
            return "count(*)"
        case Aggregate(function="sum", type="float"):
            return f"sum({value} ORDER BY {order})"
        case Aggregate(function="sum"):
            return f"sum({value}::numeric)"
        case Aggregate(compare=compare) if compare:
            order = folded_order(value, "+".join(compare), "ASC" if aggregate.function == "min" else "DESC")
            return f"(array_agg({value} ORDER BY {order}) FILTER (WHERE {value} IS NOT NULL))[1]"
        case Aggregate(type="string"):
            return f'{aggregate.function}({value} COLLATE "C") COLLATE "default"'
        case _:
            return f"{aggregate.function}({value})"


def bound_aggregate(aggregate: Aggregate, written: str) -> str:
    """The aggregate's value, or null if it is out of range."""
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
