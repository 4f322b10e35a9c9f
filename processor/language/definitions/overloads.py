"""Applies functions and operators to typed arguments: chooses the overload, coerces the arguments to its types, keeps scales.

int becomes decimal, decimal becomes float, and date becomes timestamp (midnight UTC). A text literal becomes a value of the type
that the overload takes. Every other conversion needs a cast.

`keep_scales` keeps the scale of decimals where an expression reads it: as text (`price::text` is 4.50), or in a quotient. A row
keeps 4.5 of the source's 4.50. The scale of the declared type gives the zeros back. All other expressions read values only, and
stay as they are. Where the scale is unknown, text is refused, and a quotient counts the digits of the value.

A timestamp may be PostgreSQL's `timestamptz`, a moment, or its `timestamp`, which has no zone: the time in UTC, or the local time
of a time zone. `zone_of` says which. Only text tells a moment from its time in UTC: `at::timestamp::text` has no `+00`. A local
time is another value: a document shows it as text without `Z`, and nothing compares it with a moment.
"""

import typing
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from processor.language.definitions.names import NameScope, scope_at_path, write_path
from processor.language.definitions.problems import WrongDefinition, suggest
from processor.language.product.expressions import zones
from processor.language.product.expressions.catalogue import (
    FUNCTIONS,
    OVERLOADS,
    Function,
    compared_function,
    fold_function,
)
from processor.language.product.expressions.expression import (
    Aggregate,
    Built,
    Call,
    Clock,
    Column,
    Depth,
    ExpressionNode,
    Literal,
    Path,
    Shown,
    Type,
    node_of,
)
from processor.language.product.expressions.functions import to_float, without_exponent
from processor.language.product.expressions.json_values import parse_json
from processor.language.product.product import BareValue
from processor.text import nearest
from processor.values.entity import ColumnType, Compare, TypeName, united
from processor.values.values import canonical_value

_NUMBERS: Final[tuple[TypeName, ...]] = ("int", "decimal", "float")
_WIDER: Final[dict[TypeName, tuple[TypeName, ...]]] = {
    "int": ("int", "decimal", "float"),
    "decimal": ("decimal", "float"),
    "date": ("date", "timestamp"),
}
_MAX_CONSTANT: Final = 1000
_PRINTABLE: Final = ("int", "decimal", "bool", "date", "timestamp")
SAME_TYPE: Final = frozenset(
    ["=", "<>", "<", "<=", ">", ">=", "is distinct from", "in", "nullif", "coalesce", "greatest", "least"]
)
"""Functions whose arguments all have the same type."""
_SAME_TIMES: Final = SAME_TYPE | {"case", "seconds between"}
_COMPARISONS: Final = frozenset(["=", "<>", "<", "<=", ">", ">=", "is distinct from", "in"])


@dataclass(frozen=True, slots=True)
class TypedNode:
    """A node and its type. `loose`: the node is a text literal, which may still become a value of another type. `compare`: how
    its text compares."""

    node: ExpressionNode
    type: Type
    loose: bool = False
    compare: Compare = ()


def make_literal(value: str | int | Decimal | bool | None) -> TypedNode:
    """A literal with the type that SQL gives it."""
    match value:
        case bool():
            type_: Type = "bool"
        case int() if -(2**63) <= value < 2**63:
            type_ = "int"
        case int():
            type_ = "decimal"
        case Decimal():
            type_, value = "decimal", without_exponent(value)
        case str():
            type_ = "string"
        case None:
            type_ = None
    return TypedNode(Literal(value=value, type=type_), type_, loose=isinstance(value, str))


def apply_function(name: str, args: Sequence[TypedNode]) -> TypedNode:
    """The call of a function or an operator. Raises: WrongDefinition where no overload takes these arguments."""
    if name in _SAME_TIMES and len({zone_of(a.node) for a in args if a.type == "timestamp"} & {"moment", "local"}) > 1:
        what = f"`{name}` mixes a moment and a local time"
        raise WrongDefinition(what, "write `at time zone 'Europe/Zurich'` behind one of them")
    compare = united(arg.compare for arg in args)
    return _apply_compared(name, args, compare) if compare else _apply(name, args)


def fold(arg: TypedNode, compare: Compare) -> TypedNode:
    """Text as it compares; another value as it is."""
    if arg.type != "string" or not compare:
        return arg
    function = FUNCTIONS[fold_function(compare)]
    if isinstance(arg.node, Literal):
        return replace(arg, node=replace(arg.node, value=function.run(arg.node.value)), compare=())
    return TypedNode(Call(function=function.key, args=(arg.node,), type="string"), "string")


def _apply_compared(name: str, args: Sequence[TypedNode], compare: Compare) -> TypedNode:
    """The call where text compares so. Text that a function makes of it compares in the same way."""
    if name in _COMPARISONS:
        return _apply(name, [fold(arg, compare) for arg in args])
    if name == "nullif" and len(args) == 2:
        same = _apply("=", [fold(arg, compare) for arg in args])
        return _apply_compared("case", [same, make_literal(None), args[0]], compare)
    if name in ("greatest", "least"):
        nodes, _ = unify_types(args, f"`{name}`")
        call = Call(function=compared_function(name, compare), args=nodes, type="string")
        return TypedNode(call, "string", compare=compare)
    if name == "like" and "ci" in compare:
        args = [*(fold(arg, ("ci",)) for arg in args[:2]), _checked_escape(args[2])]
    made = _apply(name, args)
    return replace(made, compare=compare) if made.type == "string" else made


def _checked_escape(escape: TypedNode) -> TypedNode:
    """The escape of a pattern in lower case, in which a letter would stand for itself, too."""
    text = str(escape.node.value) if isinstance(escape.node, Literal) else ""
    if text.upper() != text.lower():
        raise WrongDefinition(
            f"`escape '{text}'` is a letter, in a pattern without upper and lower case", "write a sign"
        )
    return escape


def _apply(name: str, args: Sequence[TypedNode]) -> TypedNode:
    if name in SAME_TYPE and args:
        return _apply_same_type(name, args)
    if name == "case":
        return _apply_case(args)
    if name == "concat" or (name in ("||", "concat_ws") and any(arg.type == "string" for arg in args)):
        args = [
            _coerce_to_text(arg, letter=name != "||" and (name, n) != ("concat_ws", 0)) for n, arg in enumerate(args)
        ]
    if name.startswith("to "):
        return _apply_cast(name.removeprefix("to "), args)
    for function in sorted(OVERLOADS[name], key=lambda function: _count_coercions(function, args)):
        if (nodes := _fit_arguments(function, args)) is not None:
            return TypedNode(Call(function=function.key, args=nodes, type=function.gives), function.gives)
    raise _no_such_overload(name, args)


def coerce(arg: TypedNode, type_: TypeName) -> ExpressionNode:
    """The argument as a value of this type. The argument has the type, widens to it, or is a text literal.

    Raises: WrongDefinition for a text literal that is not a value of this type.
    """
    if _is_null(arg.node):
        return Literal(value=None, type=type_)
    if arg.loose and type_ != "string" and isinstance(arg.node, Literal):
        return Literal(value=_parse_text(str(arg.node.value), type_), type=type_)
    if arg.type == type_ or arg.type is None:
        return arg.node
    if isinstance(arg.node, Literal) and type_ in _NUMBERS:
        return replace_type(arg.node, type_)
    return Call(function=f"to {type_}({arg.type})", args=(arg.node,), type=type_)


def replace_type(node: Literal, type_: TypeName) -> Literal:
    """A number literal as a literal of another type. Raises: WrongDefinition for a number beyond a float."""
    if type_ == "float" and to_float(node.value) is None:
        what = (
            f"the number {Decimal(node.value).normalize():.6g} is beyond a float, which reaches from 1E-130 to 1E+126"
        )
        raise WrongDefinition(what, "write a number in this range, or 0")
    return Literal(value=Decimal(node.value) if type_ == "float" else node.value, type=type_)


def _coerce_to_text(arg: TypedNode, letter: bool) -> TypedNode:
    """The argument as text, where PostgreSQL makes text of it without a cast; else the argument itself. `letter`: of a bool, as
    `concat` writes it."""
    if arg.type not in _PRINTABLE:
        return arg
    if letter and arg.type == "bool":
        return apply_overload("as letter(bool)", arg)
    return TypedNode(Call(function=f"to string({arg.type})", args=(arg.node,), type="string"), "string")


def unify_types(args: Sequence[TypedNode], subject: str) -> tuple[tuple[ExpressionNode, ...], TypeName]:
    """The arguments as values of the one type that they have or widen to, and that type. `subject` names the call in an error.

    Raises: WrongDefinition for types without a common type.
    """
    types = {arg.type for arg in args if not arg.loose and arg.type is not None} or {"string"}
    common = next((t for t in ("int", "decimal", "float", "date", "timestamp", *types) if _all_widen(types, t)), None)
    if common is None:
        what = f"{subject} takes values of one type, not {_list_types(args)}"
        number = next((arg.node.value for arg in args if isinstance(arg.node, Literal) and arg.type in _NUMBERS), None)
        if number is not None and types <= {"string", *_NUMBERS}:
            raise WrongDefinition(what, f"write the number as text, `'{number}'`, or cast the text")
        raise WrongDefinition(what, "cast some of them, or use values of one type")
    return tuple(coerce(arg, common) for arg in args), common


def _all_widen(types: set[TypeName], to_type: str) -> bool:
    return all(to_type in _WIDER.get(t, (t,)) for t in types)


def _apply_same_type(name: str, args: Sequence[TypedNode]) -> TypedNode:
    nodes, type_ = unify_types(args, f"`{name}`")
    variadic = f"{name}({type_},...)"
    function = FUNCTIONS.get(variadic) or FUNCTIONS.get(f"{name}({type_},{type_})")
    if function is None:
        what = f"`{name}` cannot take {type_}, whose values do not compare"
        raise WrongDefinition(what, "test it with `is null`, or select it as it is")
    if not function.variadic and len(args) != 2:
        raise WrongDefinition(f"`{name}` takes two values, not {len(args)}", f"write `{name}(a, b)`")
    return TypedNode(Call(function=function.key, args=nodes, type=function.gives), function.gives)


def _is_null(node: ExpressionNode) -> bool:
    return isinstance(node, Literal) and node.value is None


def _apply_case(args: Sequence[TypedNode]) -> TypedNode:
    conditions, choices = args[:-1:2], [*args[1::2], args[-1]]
    for condition in conditions:
        if condition.type not in ("bool", None):
            what = f"a `when` of `case` is {condition.type}, not bool"
            raise WrongDefinition(what, "write a condition, e.g. `status = 'open'`")
    nodes, type_ = unify_types(choices, "`case`")
    parts: list[ExpressionNode] = []
    for condition, choice in zip(conditions, nodes, strict=False):
        parts += [coerce(condition, "bool"), choice]
    key = f"case({type_},...)"
    if key not in FUNCTIONS:
        raise WrongDefinition(f"`case` cannot return {type_}", "write a scalar value after each `then` and `else`")
    return TypedNode(Call(function=key, args=(*parts, nodes[-1]), type=type_), type_)


def _apply_cast(target: str, args: Sequence[TypedNode]) -> TypedNode:
    if f"to {target}" not in OVERLOADS:
        known = sorted({name.removeprefix("to ") for name in OVERLOADS if name.startswith("to ")} - {"json"})
        raise WrongDefinition(f"there is no cast to `{target}`", suggest(target, known))
    arg, parameters = args[0], args[1:]
    if parameters and (target != "decimal" or not _is_size(parameters)):
        if target == "decimal":
            cure = "write `decimal(precision, scale)`, with a scale of at most the precision"
            raise WrongDefinition("a cast to decimal does not take this size", cure)
        raise WrongDefinition(f"a cast to {target} takes no size", "remove the size and its parentheses")
    if arg.type == "json" and target in ("int", "float"):
        arg = apply_overload("to decimal(json)", arg)
    if arg.loose or arg.type is None:
        type_ = OVERLOADS[f"to {target}"][0].gives
        arg = TypedNode(coerce(arg, type_), type_)
    elif f"to {target}({arg.type})" not in FUNCTIONS:
        what = f"there is no cast from {arg.type} to {target}"
        raise WrongDefinition(what, "use a cast of docs/definitions.md, or a column of another type")
    else:
        arg = apply_overload(f"to {target}({arg.type})", arg)
    if not parameters:
        return arg
    return apply_function("of size", [arg, *parameters, make_literal(0)][:3])


def _is_size(parameters: Sequence[TypedNode]) -> bool:
    numbers = [p.node.value for p in parameters if isinstance(p.node, Literal)]
    return len(numbers) <= 2 and 1 <= numbers[0] <= _MAX_CONSTANT and numbers[-1] <= numbers[0]


def apply_overload(key: str, arg: TypedNode) -> TypedNode:
    """The call of the overload with this key."""
    gives = FUNCTIONS[key].gives
    return TypedNode(Call(function=key, args=(arg.node,), type=gives), gives)


def _count_coercions(function: Function, args: Sequence[TypedNode]) -> int:
    """The number of arguments that need coercion."""
    return sum(arg.type != type_ for arg, type_ in zip(args, function.takes, strict=False))


def _fit_arguments(function: Function, args: Sequence[TypedNode]) -> tuple[ExpressionNode, ...] | None:
    """The arguments, coerced to what the function takes. None: the function does not take these arguments."""
    takes = function.takes * len(args) if function.variadic else function.takes
    if len(takes) != len(args) or not args:
        return None
    if any(i in function.constant and not _is_constant(arg) for i, arg in enumerate(args)):
        return None
    nodes = [fitted(arg, type_) for arg, type_ in zip(args, takes, strict=True)]
    return tuple(node for node in nodes if node is not None) if None not in nodes else None


def fitted(arg: TypedNode, type_: TypeName) -> ExpressionNode | None:
    """The argument as a value of this type. None: it has another type, and does not widen to this one."""
    if arg.type is None or type_ in _WIDER.get(arg.type, (arg.type,)) or (arg.loose and _can_become(arg, type_)):
        return coerce(arg, type_)
    return None


def element_type(node: ExpressionNode, scope: NameScope) -> TypeName | None:
    """The type of an array's elements. None: the node is no array."""
    match node:
        case Column():
            declared = _declared(node, scope)
            return declared.name if declared.array else None
        case Shown(path=path, type="json"):
            return element_type(*_shown_value(path, scope))
    return None


def _is_constant(arg: TypedNode) -> bool:
    return isinstance(arg.node, Literal) and (arg.type != "int" or abs(arg.node.value) <= _MAX_CONSTANT)


def _can_become(arg: TypedNode, type_: TypeName) -> bool:
    if not isinstance(arg.node, Literal):
        return False
    try:
        _parse_text(str(arg.node.value), type_)
    except WrongDefinition:
        return False
    return True


def _parse_text(text: str, type_: TypeName) -> object:
    """The value of this type that a text literal means. Raises: WrongDefinition for text that is not such a value."""
    value: object = text.strip()
    if type_ == "json":
        return _checked_json(text)
    if type_ == "bool":
        value = {"true": True, "false": False}.get(text.strip().lower())
    elif type_ == "timestamp":
        value = f"{value}T00:00:00Z" if len(text.strip()) == len("2026-11-20") else value
    elif type_ == "int":
        value = Decimal(text.strip()) if text.strip().lstrip("+-").isdecimal() else text
    try:
        if value is not None:
            found = canonical_value(value, ColumnType(name=type_))
            return without_exponent(Decimal(text.strip())) if type_ == "decimal" else found
    except ValueError:
        pass
    cure = f"write e.g. {_EXAMPLES.get(type_, 'a value')}, or compare it with text"
    raise WrongDefinition(f"`'{text}'` is not a valid {type_}", cure)


def _checked_json(text: str) -> str:
    try:
        parse_json(text)
    except ValueError as error:
        raise WrongDefinition(f"`'{text}'` is not JSON: {error}", "write e.g. `'{\"a\": 1}'`") from None
    return text


_EXAMPLES: Final = {
    "int": "`42`", "decimal": "`1.5`", "float": "`1.5`", "bool": "`true`", "date": "`'2026-11-20'`",
    "timestamp": "`'2026-11-20T22:38:37Z'`",
}  # fmt: skip


def _no_such_overload(name: str, args: Sequence[TypedNode]) -> WrongDefinition:
    what = f"`{name}` cannot take {_list_types(args)}" if args else f"`{name}` has no arguments"
    types = [arg.type for arg in args]
    for names, first, rest, cure in _MEANT:
        if name in names and types[:1] == [first] and (not rest or types[1:] == [rest]):
            return WrongDefinition(what, cure)
    takes = sorted({_signature(function) for function in OVERLOADS[name]})
    return WrongDefinition(what, f"it takes {' or '.join(takes)}")


_SPAN: Final = "write the time between as one, `at + interval '7 days'`"
_MEANT: Final = (
    (("->", "->>", "#>", "#>>"), "string", "", "give the column the type `json` in entities.yaml"),
    (("-",), "timestamp", "timestamp", "write `extract(epoch from a - b)` for seconds, or subtract dates for days"),
    (("+", "-"), "timestamp", "int", _SPAN),
    (("+", "-"), "timestamp", "string", _SPAN),
    (("+ interval", "- interval"), "string", "", "give the column the type `timestamp` in entities.yaml"),
)
"""Mistakes of beginners, and what they meant: the names of the call, the types of its first argument and of the other one ("":
any type), and the cure."""


def _signature(function: Function) -> str:
    parameters = ", ".join(
        f"constant {type_}" if i in function.constant else type_ for i, type_ in enumerate(function.takes)
    )
    return f"({parameters}{', ...' if function.variadic else ''})"


def _list_types(args: Sequence[TypedNode]) -> str:
    return ", ".join(arg.type or "null" for arg in args)


Reader = typing.Literal["text", "quotient"] | None
"""What reads the scale of a node's value. None: nothing does."""
_PASS: Final = ("largest", "sum", "same")
"""Of functions whose result has a scale by the scales of their decimals."""
_WITHOUT_ZONE: Final = "without zone(timestamp)"


def keep_scales(node: ExpressionNode, scope: NameScope, *, stored: bool = False) -> ExpressionNode:
    """The node, where each decimal whose scale is read has its scale. `stored`: the definition is in a registry already, and text
    that this version refuses stays the text of the value.

    Raises: WrongDefinition for text of a decimal of unknown scale.
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
            others = _kept_others(node, inner, stored)
            if node.type != "decimal":
                reader = None
            if reader and node.function != "sum" and not _is_even(argument, inner):
                what = f"`{node.function}` takes one of several equal numbers, whose texts may differ"
                kept = replace(others, argument=_kept(argument, inner, None, stored))
                return _unknown(kept, reader, stored, what, f"round its argument, `{node.function}(round(x, 2))`")
            return replace(others, argument=_kept(argument, inner, reader, stored))
        case Aggregate():
            return _kept_others(node, scope_at_path(node.over, scope), stored)
        case Built(parts=parts):
            return replace(node, parts=tuple(_kept(part, scope, None, stored) for part in parts))
        case Column() if reader and (declared := _declared(node, scope)).name == "decimal" and not declared.array:
            name = write_path(node)
            what = f"`{name}` is a decimal without a scale: its text in the source may be 4.5 or 4.50"
            cure = f"declare it as decimal(precision,scale), or say its digits, `round({name}, 2)`"
            return _scaled(node, declared.scale, reader, stored, what, cure)
        case Shown(path=path) if reader and node.type == "decimal":
            what = f"the digits of `{'.'.join(path)}` differ from row to row, so its text is unknown"
            cure = "make the text in the `value` of the join itself, or round that value"
            return _scaled(node, _fixed_scale(node, scope), reader, stored, what, cure)
    return node


def _kept_others(node: Aggregate, inner: NameScope, stored: bool) -> Aggregate:
    """The aggregate, with all that it reads but its argument."""
    if node.second is None and node.where is None and not node.order:
        return node
    return replace(
        node,
        second=None if node.second is None else _kept(node.second, inner, None, stored),
        where=None if node.where is None else _kept(node.where, inner, None, stored),
        order=tuple(replace(term, by=_kept(term.by, inner, None, stored)) for term in node.order),
    )


def _lacks_zone(node: ExpressionNode, scope: NameScope) -> bool:
    """Whether the value comes from a cast to `timestamp`, which has no time zone in PostgreSQL."""
    match node:
        case Call(function=zones.LOCAL_TIME):
            return True
        case Call(function=zones.MOMENT_OF | "with zone(timestamp)"):
            return False
        case Call(function=function, args=args, type="timestamp"):
            return function == _WITHOUT_ZONE or any(_lacks_zone(arg, scope) for arg in args)
        case Aggregate(argument=argument, over=over, type="timestamp") if argument is not None:
            return _lacks_zone(argument, scope_at_path(over, scope))
        case Shown(path=path, type="timestamp"):
            return _lacks_zone(*_shown_value(path, scope))
    return False


TimeKind = typing.Literal["", "moment", "utc", "local"]
"""moment: with a time zone. utc, local: without one. Empty: a constant or a day, which is what its place needs."""
_KINDS: Final[tuple[TimeKind, ...]] = ("local", "moment", "utc")
_MOMENTS: Final = (zones.MOMENT_OF, "with zone(timestamp)", "to timestamp(timestamp)", "as stored(timestamp)")


def zone_of(node: ExpressionNode, scope: NameScope | None = None) -> TimeKind:
    """The kind of a timestamp. `scope`: of the node, where it may show the values of a join."""
    match node:
        case Literal() | Call(function="to timestamp(date)"):
            return ""
        case Call(function=zones.LOCAL_TIME):
            return "local"
        case Call(function="without zone(timestamp)", args=(inner,)):
            is_cast = isinstance(inner, Call) and inner.function.startswith("to timestamp(")
            return "moment" if zone_of(inner, scope) == "utc" and not is_cast else "utc"
        case Call(function=function, args=args) if function not in _MOMENTS:
            name = FUNCTIONS[function].name
            picks = (*args[1::2], args[-1]) if name == "case" else args if name in SAME_TYPE - {"nullif"} else args[:1]
            found = [zone_of(one, scope) for one in picks]
            return next((kind for kind in _KINDS if kind in found), "")
        case Aggregate(argument=argument, over=over) if argument is not None:
            return zone_of(argument, scope_at_path(over, scope) if scope else None)
        case Shown(path=path, type="timestamp") if scope:
            return zone_of(*_shown_value(path, scope))
    return "moment"


def in_zone(moment: TypedNode, name: object, scope: NameScope) -> TypedNode:
    """`x at time zone 'Europe/Zurich'`: the local time of a moment, or the moment of a time without a zone."""
    if not isinstance(name, str):
        what = "`at time zone` with a zone that is not a constant is not offered"
        raise WrongDefinition(what, "write `case tz when 'Europe/Zurich' then at at time zone 'Europe/Zurich' ... end`")
    is_utc = name.upper() in ("UTC", "ETC/UTC")
    known = name if is_utc else zones.zone_names().get(name.lower())
    if known is None:
        raise _unknown_zone(name)
    if moment.type != "timestamp":
        moment = _apply_cast("timestamp", [moment])
    kind = zone_of(moment.node, scope)
    if not is_utc:
        rules = [make_literal(known), make_literal(scope.tzdata or zones.installed())]
        return apply_function("moment of" if kind in ("utc", "local") else "local time", [moment, *rules])
    if kind == "local":
        return apply_overload("with zone(timestamp)", moment)
    if isinstance(moment.node, Call) and moment.node.function == _WITHOUT_ZONE:
        return TypedNode(moment.node.args[0], "timestamp")
    return apply_overload(_WITHOUT_ZONE, moment)


def _unknown_zone(name: str) -> WrongDefinition:
    names = zones.zone_names().values()
    near = next((other for other in names if other.lower().endswith(f"/{name.lower()}")), None) or nearest(name, names)
    what = f"there is no time zone `{name}`"
    if name.upper() in zones.short_names():
        what, near = f"the time zone `{name}` is an offset in PostgreSQL, or has no place in its name", None
    return WrongDefinition(
        what, f"did you mean '{near}'?" if near else "write 'UTC', or a place such as 'Europe/Zurich'"
    )


def without_zone(cast: TypedNode) -> TypedNode:
    """The cast to `timestamp` as PostgreSQL reads it. A local time stays what it is."""
    inner = cast.node.args[0] if isinstance(cast.node, Call) else cast.node
    return TypedNode(inner, "timestamp") if zone_of(inner) == "local" else apply_overload(_WITHOUT_ZONE, cast)


def with_zone(cast: TypedNode) -> TypedNode:
    """The cast to `timestamptz`. Raises WrongDefinition for a local time."""
    if isinstance(cast.node, Call) and zone_of(cast.node.args[0]) == "local":
        what = "the cast of a local time to a moment lacks the time zone"
        raise WrongDefinition(what, "write `at time zone 'Europe/Zurich'` in place of the cast")
    return cast


def shown_time(value: TypedNode) -> TypedNode:
    """The value as a document shows it: a local time as text, since it is no moment."""
    is_local = value.type == "timestamp" and zone_of(value.node) == "local"
    return apply_overload("text of local(timestamp)", value) if is_local else value


def _text_without_zone(text: Call, moment: ExpressionNode, scope: NameScope, stored: bool) -> ExpressionNode:
    if zone_of(moment, scope) == "local":
        return Call(function="text without zone(timestamp)", args=(_kept(moment, scope, None, stored),), type="string")
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
    if function.scale == "text":
        return ["text"]
    if function.scale == "quotient":
        return [reader or "quotient"] * len(args)
    if function.scale not in _PASS:
        return [None] * len(args)
    if function.name == "case":
        return [reader if n % 2 or n == len(args) - 1 else None for n in range(len(args))]
    return [reader, None] if function.name == "nullif" else [reader] * len(args)


def _scaled(
    node: Column | Shown, scale: int | None, reader: Reader, stored: bool, what: str, cure: str
) -> ExpressionNode:
    if scale is None:
        return _unknown(node, reader, stored, what, cure)
    return Call(function="of scale(decimal,int)", args=(node, Literal(value=scale, type="int")), type="decimal")


def _unknown(node: ExpressionNode, reader: Reader, stored: bool, what: str, cure: str) -> ExpressionNode:
    """A number of unknown scale, as the value alone. Raises: WrongDefinition for its text."""
    if reader == "text" and not stored:
        raise WrongDefinition(what, cure)
    return Call(function="without zeros(decimal)", args=(node,), type="decimal")


def _is_even(node: ExpressionNode, scope: NameScope) -> bool:
    """Whether equal values of the node have equal scales."""
    return isinstance(node, Column) or _fixed_scale(node, scope) is not None


def _fixed_scale(node: ExpressionNode, scope: NameScope) -> int | None:
    """The scale of all values of a decimal or an int. None: it differs from row to row, or is unknown."""
    match node:
        case Column():
            declared = _declared(node, scope)
            return 0 if declared.name == "int" else declared.scale
        case Literal(value=value):
            return max(0, -int(value.as_tuple().exponent)) if isinstance(value, Decimal) else 0
        case Aggregate(argument=argument, over=over):
            return 0 if argument is None or node.type == "int" else _fixed_scale(argument, scope_at_path(over, scope))
        case Shown(path=path):
            return _fixed_scale(*_shown_value(path, scope))
        case Call():
            return 0 if node.type == "int" else _scale_of_call(node, scope)
        case Built() | Clock():
            return None
        case Depth():
            return 0


def _scale_of_call(call: Call, scope: NameScope) -> int | None:
    scale, args = FUNCTIONS[call.function].scale, call.args
    if scale == "given":
        last = args[-1]
        return max(0, last.value) if isinstance(last, Literal) else None
    if scale == "whole":
        return 0
    if scale not in _PASS:
        return None
    counted = [a for a, r in zip(args, _readers(call, "text"), strict=True) if r and not _is_null(a)]
    scales = [_fixed_scale(one, scope) for one in counted]
    known = [scale for scale in scales if scale is not None]
    if not known or len(known) < len(scales):
        return None
    if scale == "sum":
        return sum(known)
    return max(known) if scale == "largest" or len({*known}) == 1 else None


def _shown_value(path: Path, scope: NameScope) -> tuple[ExpressionNode, NameScope]:
    """The node that a join shows, and its scope."""
    above = scope_at_path(path[:-1], scope)
    join = above.joins[path[-1]]
    assert join is not None
    assert isinstance(join.selection, BareValue)
    return node_of(join.selection.expression), above.below(join)


def _declared(column: Column, scope: NameScope) -> ColumnType:
    for _ in range(column.up):
        assert scope.above is not None
        scope = scope.above
    columns = scope_at_path(column.path, scope).columns
    assert columns is not None
    return columns[column.name]
