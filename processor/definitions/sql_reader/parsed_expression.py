"""An expression as its author wrote it: an untyped tree of names, constants and calls of functions or operators.

`processor.definitions.expression_reader.read_expression` knows the functions, and gives each part its type.
"""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A dotted name. `*` as its last part means the rows."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParsedConstant:
    """A literal: text, a number, a boolean or null."""

    value: str | int | Decimal | bool | None


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call of a function or an operator, with its name in lower case: `lower`, `+`, `is null`, `to decimal`."""

    name: str
    args: tuple["ParsedExpression", ...]


ParsedExpression = ParsedName | ParsedConstant | ParsedCall
