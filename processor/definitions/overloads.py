"""Functions and operators applied to typed arguments: which overload is meant, and what is coerced for it.

int becomes decimal and decimal float, date becomes timestamp (midnight UTC); text that is written out becomes whatever stands
beside it. Everything else takes a cast.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from processor.definitions.errors import Wrong, suggest
from processor.model.entity import ColumnType, TypeName
from processor.model.expression import Call, Literal, Node, Type
from processor.model.function import Function
from processor.model.functions import FUNCTIONS, OVERLOADS
from processor.model.values import canonical

_NUMBERS: Final[tuple[TypeName, ...]] = ("int", "decimal", "float")
_WIDER: Final[dict[TypeName, tuple[TypeName, ...]]] = {
    "int": ("int", "decimal", "float"),
    "decimal": ("decimal", "float"),
    "date": ("date", "timestamp"),
}
_MOST_CONSTANT: Final = 1000
_PRINTABLE: Final = ("int", "decimal", "bool", "date", "timestamp")
ALIKE: Final = frozenset(
    ["=", "<>", "<", "<=", ">", ">=", "is distinct from", "in", "nullif", "coalesce", "greatest", "least"]
)
"""Functions whose arguments are of one type, whichever it is."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A node and its type. `loose`: text that is written out, and may yet become a value of another type."""

    node: Node
    type: Type
    loose: bool = False


def literal(value: str | int | Decimal | bool | None) -> Typed:
    """A literal as SQL types it."""
    match value:
        case bool():
            type_: Type = "bool"
        case int() if -(2**63) <= value < 2**63:
            type_ = "int"
        case int() | Decimal():
            type_ = "decimal"
        case str():
            type_ = "string"
        case None:
            type_ = None
    return Typed(Literal(value=value, type=type_), type_, loose=isinstance(value, str))


def apply(name: str, args: Sequence[Typed]) -> Typed:
    """The call of a function or an operator. Raises Wrong where there is none for these arguments."""
    if name in ALIKE and args:
        return _alike(name, args)
    if name == "case":
        return _case(args)
    if name in ("||", "concat", "concat_ws") and any(arg.type == "string" for arg in args):
        args = [as_text(arg) for arg in args]
    if name.startswith("to "):
        return _cast(name.removeprefix("to "), args)
    for function in sorted(OVERLOADS[name], key=lambda function: _unlike(function, args)):
        if (nodes := _fitting(function, args)) is not None:
            return Typed(Call(function=function.key, args=nodes, type=function.gives), function.gives)
    raise _unfit(name, args)


def to(arg: Typed, type_: TypeName) -> Node:
    """The argument as a value of this type, which it is, widens to or may become."""
    if _is_null(arg.node):
        return Literal(value=None, type=type_)
    if arg.loose and type_ != "string" and isinstance(arg.node, Literal):
        return Literal(value=_parsed(str(arg.node.value), type_), type=type_)
    if arg.type == type_ or arg.type is None:
        return arg.node
    if isinstance(arg.node, Literal) and type_ in _NUMBERS:
        return replace_type(arg.node, type_)
    return Call(function=f"to {type_}({arg.type})", args=(arg.node,), type=type_)


def replace_type(node: Literal, type_: TypeName) -> Literal:
    """A number that is written out, as one of another type."""
    return Literal(value=Decimal(node.value) if type_ == "float" else node.value, type=type_)


def as_text(arg: Typed) -> Typed:
    """The argument as text, where PostgreSQL makes text of it without being asked."""
    if arg.type not in _PRINTABLE:
        return arg
    return Typed(Call(function=f"to string({arg.type})", args=(arg.node,), type="string"), "string")


def unified(args: Sequence[Typed], what: str) -> tuple[tuple[Node, ...], TypeName]:
    """The arguments as values of the one type that they have or widen to. Raises Wrong for types that do not compare."""
    types = {arg.type for arg in args if not arg.loose and arg.type is not None} or {"string"}
    common = next((t for t in ("int", "decimal", "float", "date", "timestamp", *types) if _all_widen(types, t)), None)
    if common is None:
        raise Wrong(f"{what} takes values of one type, not {_listed(args)}", "cast one side, or compare others")
    return tuple(to(arg, common) for arg in args), common


def _all_widen(types: set[TypeName], to_type: str) -> bool:
    return all(to_type in _WIDER.get(t, (t,)) for t in types)


def _alike(name: str, args: Sequence[Typed]) -> Typed:
    nodes, type_ = unified(args, f"`{name}`")
    variadic = f"{name}({type_},...)"
    function = FUNCTIONS.get(variadic) or FUNCTIONS.get(f"{name}({type_},{type_})")
    if function is None:
        raise Wrong(f"`{name}` cannot take {type_}: its values do not compare", "test it with `is null`, or pass it on")
    if not function.variadic and len(args) != 2:
        raise Wrong(f"`{name}` takes two values, not {len(args)}", f"write `{name}(a, b)`")
    return Typed(Call(function=function.key, args=nodes, type=function.gives), function.gives)


def _is_null(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is None


def _case(args: Sequence[Typed]) -> Typed:
    conditions, choices = args[:-1:2], [*args[1::2], args[-1]]
    for condition in conditions:
        if condition.type not in ("bool", None):
            raise Wrong(f"a `when` of `case` is {condition.type}, not bool", "write a comparison there")
    nodes, type_ = unified(choices, "`case`")
    parts: list[Node] = []
    for condition, choice in zip(conditions, nodes, strict=False):
        parts += [to(condition, "bool"), choice]
    key = f"case({type_},...)"
    if key not in FUNCTIONS:
        raise Wrong(f"`case` cannot give {type_}", "let each `then` be a scalar value")
    return Typed(Call(function=key, args=(*parts, nodes[-1]), type=type_), type_)


def _cast(target: str, args: Sequence[Typed]) -> Typed:
    if f"to {target}" not in OVERLOADS:
        known = sorted({name.removeprefix("to ") for name in OVERLOADS if name.startswith("to ")} - {"json"})
        raise Wrong(f"there is no cast to `{target}`", suggest(target, known))
    arg, parameters = args[0], args[1:]
    if parameters and (target != "decimal" or not _is_size(parameters)):
        cure = (
            "write `decimal(precision, scale)`, a scale of at most the precision"
            if target == "decimal"
            else "leave it out"
        )
        raise Wrong(f"a cast to {target} takes no such size", cure)
    if arg.loose or arg.type is None:
        type_ = OVERLOADS[f"to {target}"][0].gives
        arg = Typed(to(arg, type_), type_)
    elif f"to {target}({arg.type})" not in FUNCTIONS:
        raise Wrong(f"{arg.type} cannot be cast to {target}", "see docs/expressions.md for the casts that there are")
    else:
        arg = apply_exactly(f"to {target}({arg.type})", arg)
    if not parameters:
        return arg
    return apply("of size", [arg, *parameters, literal(0)][:3])


def _is_size(parameters: Sequence[Typed]) -> bool:
    numbers = [p.node.value for p in parameters if isinstance(p.node, Literal)]
    return len(numbers) <= 2 and 1 <= numbers[0] <= _MOST_CONSTANT and numbers[-1] <= numbers[0]


def apply_exactly(key: str, arg: Typed) -> Typed:
    """The call of this very overload."""
    gives = FUNCTIONS[key].gives
    return Typed(Call(function=key, args=(arg.node,), type=gives), gives)


def _unlike(function: Function, args: Sequence[Typed]) -> int:
    """How many arguments would have to be coerced."""
    return sum(arg.type != type_ for arg, type_ in zip(args, function.takes, strict=False))


def _fitting(function: Function, args: Sequence[Typed]) -> tuple[Node, ...] | None:
    """The arguments as the function takes them; None where it does not take such."""
    takes = function.takes * len(args) if function.variadic else function.takes
    if len(takes) != len(args) or not args:
        return None
    for i, (arg, type_) in enumerate(zip(args, takes, strict=True)):
        if i in function.constant and not _written_out(arg):
            return None
        if not (arg.type is None or type_ in _WIDER.get(arg.type, (arg.type,)) or (arg.loose and _may_be(arg, type_))):
            return None
    return tuple(to(arg, type_) for arg, type_ in zip(args, takes, strict=True))


def _written_out(arg: Typed) -> bool:
    return isinstance(arg.node, Literal) and (arg.type != "int" or abs(arg.node.value) <= _MOST_CONSTANT)


def _may_be(arg: Typed, type_: TypeName) -> bool:
    if not isinstance(arg.node, Literal) or type_ == "json":
        return False
    try:
        _parsed(str(arg.node.value), type_)
    except Wrong:
        return False
    return True


def _parsed(text: str, type_: TypeName) -> object:
    """The value that a text spells, for a type."""
    spelt: object = text.strip()
    if type_ == "bool":
        spelt = {"true": True, "false": False}.get(text.strip().lower())
    elif type_ == "timestamp":
        spelt = f"{spelt}T00:00:00Z" if len(text.strip()) == len("2026-11-20") else spelt
    elif type_ == "int":
        spelt = Decimal(text.strip()) if text.strip().lstrip("+-").isdecimal() else text
    try:
        if spelt is not None:
            return canonical(spelt, ColumnType(name=type_))
    except ValueError:
        pass
    raise Wrong(f"`'{text}'` is no {type_}", f"write {_EXAMPLES.get(type_, 'a value')}, or compare it with text")


_EXAMPLES: Final = {
    "int": "`42`", "decimal": "`1.5`", "float": "`1.5`", "bool": "`true`", "date": "`'2026-11-20'`",
    "timestamp": "`'2026-11-20T22:38:37Z'`",
}  # fmt: skip


def _unfit(name: str, args: Sequence[Typed]) -> Wrong:
    shown = f"`{name}` cannot take {_listed(args)}" if args else f"`{name}` cannot stand without arguments"
    takes = sorted({_signature(function) for function in OVERLOADS[name]})
    return Wrong(shown, f"it takes {' or '.join(takes)}")


def _signature(function: Function) -> str:
    listed = ", ".join(
        f"{type_} (written out)" if i in function.constant else type_ for i, type_ in enumerate(function.takes)
    )
    return f"({listed}{', ...' if function.variadic else ''})"


def _listed(args: Sequence[Typed]) -> str:
    return ", ".join(arg.type or "null" for arg in args)
