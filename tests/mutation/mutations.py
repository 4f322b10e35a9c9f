"""The small faults that `tests.mutation.run` puts into the functions of a module, one at a time.

Of each function, also of properties and of those with a cache: another comparison, a condition that always or never holds, one
part of `and`, `or`, `|`, `&`, `+`, `-` alone, a number plus one, another text, True for False, a statement, keyword argument,
entry or filter left out, None for a result. Not of the defaults of parameters and fields, nor of constants of the module.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OTHER_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One fault. `function`: its qualified name; `lines`: those of its statement, or of the head of its block; `text`: before and
    after. `apply` puts it into the tree."""

    function: str
    lines: range
    text: str
    apply: Callable[[], None]


def mutations(tree: ast.Module) -> Iterator[Mutation]:
    """All faults of a module, in the order of its functions. Each is for a tree of its own: apply one, and only one."""
    for name, function in _functions(tree):
        for lines, before, after, apply in _of_block(function, "body", range(0)):
            yield Mutation(function=name, lines=lines, text=f"{before} -> {after}", apply=apply)


_Found = tuple[range, str, str, Callable[[], None]]


def _functions(node: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for one in node.body:
        if isinstance(one, ast.FunctionDef):
            yield prefix + one.name, one
        elif isinstance(one, ast.ClassDef):
            yield from _functions(one, f"{prefix}{one.name}.")


def _of_block(owner: ast.AST, name: str, lines: range) -> Iterator[_Found]:
    """The faults of the statements of a block, or of the expressions of a list."""
    block: list[Any] = getattr(owner, name)
    for at, node in enumerate(block):
        if node is None:  # of `**`, among the keys of a dict
            continue
        put = partial(block.__setitem__, at)
        if isinstance(node, ast.stmt):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring
            lines = _lines(node)
            if _is_left_out(node):
                yield lines, _shown(node), "nothing", partial(put, ast.Pass())
        yield from _of_node(node, put, lines)


def _of_node(node: ast.AST, put: Callable[[Any], None], lines: range) -> Iterator[_Found]:
    """The faults in place of a node, and those below it."""
    for after in _replacements(node):
        yield lines, _shown(node), _shown(after), partial(put, after)
    if isinstance(node, ast.JoinedStr):
        values = [one for one in node.values if isinstance(one, ast.FormattedValue)]
        for one in values:
            yield from _of_node(one.value, partial(setattr, one, "value"), lines)
        return
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue
        if name == "annotation" or (
            isinstance(node, ast.FunctionDef) and name in ("args", "returns", "decorator_list")
        ):
            continue
        if isinstance(value, list) and any(isinstance(one, ast.AST) for one in value):
            yield from _of_block(node, name, lines)
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            yield from _of_node(value, partial(setattr, node, name), lines)


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    """What may come in place of a node. The node itself stays as it is."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for at, op in enumerate(ops):
                other = [*ops[:at], COMPARISONS[type(op)](), *ops[at + 1 :]]
                yield ast.Compare(left=left, ops=other, comparators=comparators)
        case ast.BoolOp(op=op, values=values):
            for at in range(len(values)):
                kept = [*values[:at], *values[at + 1 :]]
                yield kept[0] if len(kept) == 1 else ast.BoolOp(op=op, values=kept)
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right):
            yield left
            if isinstance(op, ast.BitOr | ast.BitAnd | ast.Add):
                yield right
        case ast.AugAssign(target=target, value=value):
            yield ast.Assign(targets=[target], value=value)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(value=not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value=value + 1)
        case ast.Constant(value=str(value)):
            yield ast.Constant(value=f"{value}~")
        case ast.Constant(value=bytes(value)):
            yield ast.Constant(value=value + b"~")
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield ast.Return(value=ast.Constant(value=None))
        case ast.If(body=body, orelse=orelse):
            for holds in (True, False):
                yield ast.If(test=ast.Constant(value=holds), body=body, orelse=orelse)
        case ast.IfExp(body=body, orelse=orelse):
            yield body
            yield orelse
        case ast.comprehension(target=target, iter=iter_, ifs=ifs, is_async=is_async):
            for at in range(len(ifs)):
                kept = [*ifs[:at], *ifs[at + 1 :]]
                yield ast.comprehension(target=target, iter=iter_, ifs=kept, is_async=is_async)
        case ast.Call(func=func, args=args, keywords=keywords):
            if isinstance(func, ast.Name) and func.id in OTHER_CALLS:
                yield ast.Call(func=ast.Name(id=OTHER_CALLS[func.id], ctx=ast.Load()), args=args, keywords=keywords)
            for at, keyword in enumerate(keywords):
                if keyword.arg != "strict":  # the lengths are equal
                    yield ast.Call(func=func, args=args, keywords=[*keywords[:at], *keywords[at + 1 :]])
        case ast.Dict(keys=keys, values=values):
            for at in range(len(keys)):
                yield ast.Dict(keys=[*keys[:at], *keys[at + 1 :]], values=[*values[:at], *values[at + 1 :]])
        case ast.Tuple(elts=elts, ctx=ast.Load()) | ast.List(elts=elts, ctx=ast.Load()) | ast.Set(elts=elts):
            for at, one in enumerate(elts):
                if isinstance(one, ast.Starred):
                    kind: Any = type(node)
                    rest = [*elts[:at], *elts[at + 1 :]]
                    yield kind(elts=rest) if isinstance(node, ast.Set) else kind(elts=rest, ctx=ast.Load())


def _lines(node: ast.stmt) -> range:
    """The lines of a statement, or of the head of a block."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    first = getattr(body[0], "pattern", body[0])
    return range(node.lineno, max(first.lineno, node.lineno + 1))


def _is_left_out(node: ast.stmt) -> bool:
    """Whether a fault leaves this statement out. Without an assignment to a name most functions end at once."""
    match node:
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            return True
    return False


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.If):
        return f"if {_shown(node.test)}"
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 90 else f"{text[:60]} ... {text[-25:]}"
