"""An expression as PostgreSQL: what its nodes are called in a query is the query's matter (`Names`)."""

from decimal import Decimal
from typing import Protocol

from processor.model.change import Value
from processor.model.entity import ColumnType
from processor.model.expression import Aggregate, Call, Column, Literal, Node, Path, Type
from processor.model.function import instant, within_range
from processor.model.functions import FUNCTIONS
from processor.model.sql_text import literal, sql_type


class Names(Protocol):
    """How a query names what an expression reads."""

    def column(self, column: Column) -> str:
        """A column of a row."""

    def shown(self, path: Path) -> str:
        """The value of a join."""

    def aggregate(self, aggregate: Aggregate) -> str:
        """An aggregate over rows."""


def write(node: Node, names: Names) -> str:
    """The node as an expression that needs no parentheses around it."""
    match node:
        case Column():
            return names.column(node)
        case Literal(value=value, type=type_):
            return _literal(value, type_)
        case Call(function=function, args=args):
            return FUNCTIONS[function].write([write(arg, names) for arg in args])
        case Aggregate():
            return names.aggregate(node)
        case _:
            return names.shown(node.path)


def as_json(node: Node, written: str, type_: Type) -> str:
    """A computed value as PostgreSQL's json functions are to take it."""
    match type_:
        case "timestamp":
            return instant(written)
        case "decimal":
            return f"trim_scale({written})"
        case "string" if isinstance(node, Literal):
            return f"{written}::text"
        case _:
            return written


def aggregated(aggregate: Aggregate, value: str, order: str) -> str:
    """The call of an aggregate function. `order`: that of the rows, which the sum of floats depends on."""
    match aggregate:
        case Aggregate(of=None):
            return "count(*)"
        case Aggregate(function="sum", type="float"):
            return f"sum({value} ORDER BY {order})"
        case Aggregate(function="sum"):
            return f"sum({value}::numeric)"
        case Aggregate(type="string"):
            return f'{aggregate.function}({value} COLLATE "C") COLLATE "default"'
        case _:
            return f"{aggregate.function}({value})"


def bounded(aggregate: Aggregate, written: str) -> str:
    """The aggregate's value where it is used; null where it is out of range."""
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
