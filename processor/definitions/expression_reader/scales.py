"""Keeps the scale of decimals where an expression reads it: as text (`price::text` is 4.50), or in a quotient.

A row keeps 4.5 of the source's 4.50. The scale of the declared type gives the zeros back. All other expressions read values only,
and stay as they are. Where nobody knows the scale, text is refused, and a quotient counts the digits of the value.

Only text tells PostgreSQL's `timestamp` from its `timestamptz`, too: `at::timestamp::text` has no `+00`.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Final, Literal

from processor.definitions.expression_reader.names import NameScope, scope_at_path, write_path
from processor.definitions.problems import WrongDefinition
from processor.product.expressions.catalogue import FUNCTIONS
from processor.product.expressions.expression import (
    Aggregate,
    Call,
    Column,
    ExpressionNode,
    Path,
    Shown,
    node_of,
)
from processor.product.expressions.expression import Literal as Constant
from processor.product.product import BareValue
from processor.records.entity import ColumnType

Reader = Literal["text", "quotient"] | None
"""What reads the scale of a node's value. None: nothing does."""
_PASS: Final = (
    "+",
    "-",
    "*",
    "%",
    "mod",
    "unary -",
    "abs",
    "coalesce",
    "greatest",
    "least",
    "case",
    "nullif",
    "to decimal",
)
"""Functions whose result has a scale by the scales of their decimals."""
_WITHOUT_ZONE: Final = "without zone(timestamp)"
_WHOLE: Final = ("round", "trunc", "floor", "ceil")


def keep_scales(node: ExpressionNode, scope: NameScope, *, stored: bool = False) -> ExpressionNode:
    """The node, where each decimal whose scale is read has its scale. `stored`: the definition is in a registry already, and text
    that this version refuses stays the text of the value.

    Raises: WrongDefinition for text of a decimal whose scale nobody knows.
    """
    return _kept(node, scope, None, stored)


def _kept(node: ExpressionNode, scope: NameScope, reader: Reader, stored: bool) -> ExpressionNode:
    match node:
        case Call(function="to string(timestamp)", args=(moment,)) if _lacks_zone(moment, scope):
            return _text_without_zone(node, moment, scope, stored)
        case Call(args=args):
            readers = _readers(node, reader)
            return replace(node, args=tuple(_kept(a, scope, r, stored) for a, r in zip(args, readers, strict=True)))
        case Aggregate(argument=argument) if argument is not None:
            inner = scope_at_path(node.over, scope)
            if node.type != "decimal":
                reader = None
            if reader and node.function != "sum" and not _is_even(argument, inner):
                what = f"`{node.function}` takes one of several equal numbers, whose texts may differ"
                kept = replace(node, argument=_kept(argument, inner, None, stored))
                return _unknown(kept, reader, stored, what, f"round its argument, `{node.function}(round(x, 2))`")
            return replace(node, argument=_kept(argument, inner, reader, stored))
        case Column() if reader and (declared := _declared(node, scope)).name == "decimal" and not declared.array:
            name = write_path(node)
            what = f"`{name}` is a decimal without a scale: nobody knows whether its text in the source is 4.5 or 4.50"
            cure = f"declare it as decimal(precision,scale), or say its digits, `round({name}, 2)`"
            return _scaled(node, declared.scale, reader, stored, what, cure)
        case Shown(path=path) if reader and node.type == "decimal":
            what = f"the digits of `{'.'.join(path)}` differ from row to row, so its text is unknown"
            cure = "make the text in the `value` of the join itself, or round that value"
            return _scaled(node, _fixed_scale(node, scope), reader, stored, what, cure)
    return node


def _lacks_zone(node: ExpressionNode, scope: NameScope) -> bool:
    """Whether the value comes from a cast to `timestamp`, which has no time zone in PostgreSQL."""
    match node:
        case Call(function=function, args=args, type="timestamp"):
            return function == _WITHOUT_ZONE or any(_lacks_zone(arg, scope) for arg in args)
        case Aggregate(argument=argument, over=over, type="timestamp") if argument is not None:
            return _lacks_zone(argument, scope_at_path(over, scope))
        case Shown(path=path, type="timestamp"):
            return _lacks_zone(*_shown_value(path, scope))
    return False


def _text_without_zone(text: Call, moment: ExpressionNode, scope: NameScope, stored: bool) -> ExpressionNode:
    if isinstance(moment, Call) and moment.function == _WITHOUT_ZONE and not _lacks_zone(moment.args[0], scope):
        return Call(
            function="text without zone(timestamp)", args=(_kept(moment.args[0], scope, None, stored),), type="string"
        )
    if not stored:
        what = "the text of a `timestamp` that other functions have changed may have a time zone or not"
        raise WrongDefinition(what, "cast it at last, `(...)::timestamp::text`, or cast to timestamptz")
    return replace(text, args=(_kept(moment, scope, None, stored),))


def _readers(call: Call, reader: Reader) -> list[Reader]:
    """What reads the scale of each argument."""
    function, args = FUNCTIONS[call.function], call.args
    name, decimals = function.name, "decimal" in function.takes
    if name == "to string" and decimals:
        return ["text"]
    if name == "/" and decimals:
        return [reader or "quotient"] * len(args)
    if name not in _PASS or call.type != "decimal":
        return [None] * len(args)
    if name == "case":
        return [reader if n % 2 or n == len(args) - 1 else None for n in range(len(args))]
    return [reader, None] if name == "nullif" else [reader] * len(args)


def _scaled(
    node: Column | Shown, scale: int | None, reader: Reader, stored: bool, what: str, cure: str
) -> ExpressionNode:
    if scale is None:
        return _unknown(node, reader, stored, what, cure)
    return Call(function="of scale(decimal,int)", args=(node, Constant(value=scale, type="int")), type="decimal")


def _unknown(node: ExpressionNode, reader: Reader, stored: bool, what: str, cure: str) -> ExpressionNode:
    """A number whose scale nobody knows, as the value alone. Raises: WrongDefinition for its text."""
    if reader == "text" and not stored:
        raise WrongDefinition(what, cure)
    return Call(function="without zeros(decimal)", args=(node,), type="decimal")


def _is_even(node: ExpressionNode, scope: NameScope) -> bool:
    """Whether equal values of the node have equal scales."""
    return isinstance(node, Column) or _fixed_scale(node, scope) is not None


def _fixed_scale(node: ExpressionNode, scope: NameScope) -> int | None:
    """The scale of all values of a decimal or an int. None: it differs from row to row, or nobody knows it."""
    match node:
        case Column():
            declared = _declared(node, scope)
            return 0 if declared.name == "int" else declared.scale
        case Constant(value=value):
            return max(0, -int(value.as_tuple().exponent)) if isinstance(value, Decimal) else 0
        case Aggregate(argument=argument, over=over):
            return 0 if argument is None or node.type == "int" else _fixed_scale(argument, scope_at_path(over, scope))
        case Shown(path=path):
            return _fixed_scale(*_shown_value(path, scope))
        case Call():
            return 0 if node.type == "int" else _scale_of_call(node, scope)


def _scale_of_call(call: Call, scope: NameScope) -> int | None:
    function, args = FUNCTIONS[call.function], call.args
    name = function.name
    if name in ("of size", "of scale") or (name in _WHOLE and len(args) > 1):
        last = args[-1]
        return max(0, last.value) if isinstance(last, Constant) else None
    if name in _WHOLE:
        return 0
    if name not in _PASS or not {"int", "decimal"}.issuperset(function.takes):
        return None
    counted = [a for a, r in zip(args, _readers(call, "text"), strict=True) if r and not _is_null(a)]
    scales = [_fixed_scale(one, scope) for one in counted]
    known = [scale for scale in scales if scale is not None]
    if not known or len(known) < len(scales):
        return None
    if name == "*":
        return sum(known)
    return max(known) if name in ("+", "-", "%", "mod") or len({*known}) == 1 else None


def _shown_value(path: Path, scope: NameScope) -> tuple[ExpressionNode, NameScope]:
    """The node that a join shows, and its scope."""
    above = scope_at_path(path[:-1], scope)
    join = above.joins[path[-1]]
    assert join is not None
    assert isinstance(join.selection, BareValue)
    return node_of(join.selection.expression), above.below(join)


def _is_null(node: ExpressionNode) -> bool:
    return isinstance(node, Constant) and node.value is None


def _declared(column: Column, scope: NameScope) -> ColumnType:
    for _ in range(column.up):
        assert scope.above is not None
        scope = scope.above
    columns = scope_at_path(column.path, scope).columns
    assert columns is not None
    return columns[column.name]
