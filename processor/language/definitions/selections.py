"""Reads what a level of a product selects: `fields`, `value` or neither, the condition `where`, `order_by`, and `key`."""

import re
from collections.abc import Collection, Iterator, Mapping

from processor.language.definitions.expressions import (
    TypedExpression,
    check_aggregate_columns,
    computed_node,
    folded,
    read_expression,
)
from processor.language.definitions.names import NameScope, read_own_column, write_path
from processor.language.definitions.problems import Location, Problems, WrongDefinition, suggest
from processor.language.definitions.shape import as_text, as_texts, describe_node
from processor.language.definitions.yaml import Map, Scalar, Sequence, YamlNode
from processor.language.product.expressions.expression import Call, Column, Computed, Expression, aggregates, node_of
from processor.language.product.product import BareValue, Fields, Join, OrderTerm, Selection, WholeRow, expressions

_EXPRESSION = "name a column, e.g. `title`, or write an expression, e.g. `upper(title)`"
_DIRECTION = re.compile(
    r"(?P<term>\S.*?)\s+(?:(?P<direction>asc|desc)(?:\s+nulls\s+(?:first|last))?|nulls\s+(?:first|last))", re.I
)
"""A term of SQL's ORDER BY with its direction, or with the place of its nulls."""
_FIELDS = "write a list of columns, or a mapping `name: expression`"


def read_selection(body: Map, scope: NameScope, problems: Problems) -> Selection:
    """The selection of a root or a join."""
    fields, value = body.get("fields"), body.get("value")
    if fields is not None and value is not None:
        problems.add(body.key_node("value"), "there are both `fields` and `value`", "keep one of them")
    if value is not None:
        return _check_aggregates(
            value, BareValue(expression=_read_node(value, "`value`", scope, problems).expression), problems
        )
    left_out = _read_except(body, scope, problems)
    if fields is not None:
        return _check_aggregates(fields, Fields(members=_read_members(fields, left_out, scope, problems)), problems)
    if left_out:
        return Fields(members=tuple(_declared(left_out, scope)))
    return WholeRow()


def _read_except(body: Map, scope: NameScope, problems: Problems) -> set[str]:
    """The columns that `*` leaves out."""
    node, columns = body.get("except"), scope.columns
    cure = "write `except: [column]`"
    named = as_texts(node, "`except`", cure, problems) if node is not None else []
    fields = body.get("fields")
    if node is not None and (body.get("value") is not None or (fields is not None and not _has_star(fields))):
        problems.add(
            body.key_node("except"), "`except` has no `*` to leave columns out of", "add `*` to `fields`, or remove it"
        )
    for item, name in named:
        if columns is not None and name not in columns:
            problems.add(item, f"entity `{scope.entity}` has no column `{name}`", suggest(name, columns))
    if len(named) > 0 and columns is not None and {*columns} <= {name for _, name in named}:
        problems.add(body.key_node("except"), "`except` leaves out every column", "keep one of them")
    return {name for _, name in named}


def _has_star(fields: YamlNode) -> bool:
    if isinstance(fields, Map):
        return "*" in fields.entries
    return isinstance(fields, Sequence) and any(isinstance(one, Scalar) and one.value == "*" for one in fields.items)


def _declared(left_out: Collection[str], scope: NameScope) -> Iterator[tuple[str, Expression]]:
    """The members for `*`: the declared columns."""
    return ((name, Column(name=name)) for name in scope.columns or () if name not in left_out)


def read_where(node: YamlNode | None, scope: NameScope, problems: Problems) -> Expression | None:
    """The condition of `where`, which each counted row fulfils."""
    if node is None:
        return None
    read = _read_node(node, "`where`", scope, problems, may_aggregate=False)
    if read.valid and read.type not in ("bool", None):
        problems.add(node, f"`where` is {read.type}, not bool", "write a condition, e.g. `status = 'open'`")
    return read.expression


def read_value(node: YamlNode, subject: str, scope: NameScope, problems: Problems) -> TypedExpression:
    """An expression of one row."""
    return _read_node(node, subject, scope, problems, may_aggregate=False)


def _check_aggregates(node: YamlNode, selection: Selection, problems: Problems) -> Selection:
    """Returns the selection. Adds a problem where it has both an aggregate over all rows and a column of one row."""
    selected = expressions(selection)
    if any(True for expression in selected for _ in aggregates(node_of(expression))):
        for expression in selected:
            try:
                check_aggregate_columns(expression)
            except WrongDefinition as wrong:
                problems.add(node, wrong.what, wrong.cure)
    return selection


def _read_members(
    node: YamlNode, left_out: Collection[str], scope: NameScope, problems: Problems
) -> tuple[tuple[str, Expression], ...]:
    members: list[tuple[str, Expression]] = []
    match node:
        case Map(entries=entries):
            for name, (key, value) in entries.items():
                if name == "*":
                    if not isinstance(value, Scalar) or value.value not in ("*", None):
                        problems.add(value, "`*` is all declared columns, and has no expression", 'write `"*": "*"`')
                    members += _declared({*left_out, *entries}, scope)
                elif as_text(key, "the name of a field", _FIELDS, problems):
                    members.append((name, _read_member(value, f"the field `{name}`", scope, problems).expression))
            return tuple(members)
        case Sequence():
            names = as_texts(node, "`fields`", _FIELDS, problems)
            _check_unique_names(names, problems)
            own = {name for _, name in names}
            for item, name in names:
                if name == "*":
                    members += _declared({*left_out, *own}, scope)
                else:
                    column = read_own_column(name, item, scope, problems)
                    members.append((name, computed_node(column, scope) or column))
            return tuple(members)
        case Scalar():
            problems.add(node, f"`fields` is {describe_node(node)}, not a list or a mapping", _FIELDS)
            return ()


def _check_unique_names(names: list[tuple[YamlNode, str]], problems: Problems) -> None:
    seen: set[str] = set()
    for item, name in names:
        if name in seen:
            problems.add(item, f"`fields` names `{name}` twice", "name each column once")
        seen.add(name)


def _read_node(
    node: YamlNode, subject: str, scope: NameScope, problems: Problems, *, may_aggregate: bool = True
) -> TypedExpression:
    text = _expression_text(node) or as_text(node, subject, _EXPRESSION, problems)
    if text is None:
        return TypedExpression(expression=Column(name=""), type=None, valid=False)
    return read_expression(text.strip(), node, scope, problems, may_aggregate=may_aggregate and scope.many)


def _read_member(node: YamlNode, subject: str, scope: NameScope, problems: Problems) -> TypedExpression:
    """An expression; a mapping of them as a json object, and a list of them as a json array."""
    before = len(problems)
    match node:
        case Map(entries=entries) if entries:
            parts = [(key.text, _read_member(value, subject, scope, problems)) for key, value in entries.values()]
            pairs = [f"'{name.replace(chr(39), chr(39) * 2)}', {_text_of(part)}" for name, part in parts]
            text = f"json_build_object({', '.join(pairs)})"
        case Sequence(items=items) if items:
            text = f"json_build_array({', '.join(_text_of(_read_member(i, subject, scope, problems)) for i in items)})"
        case _:
            return _read_node(node, subject, scope, problems)
    if len(problems) > before:
        return TypedExpression(expression=Column(name=""), type=None, valid=False)
    return read_expression(text, node, scope, problems, may_aggregate=scope.many)


def _text_of(read: TypedExpression) -> str:
    expression = read.expression
    return write_path(expression) if isinstance(expression, Column) else expression.text


def _expression_text(node: YamlNode) -> str | None:
    """The text of an expression that YAML does not read as text (`1`, `true`, `null`), or that has several lines; else None."""
    if not isinstance(node, Scalar):
        return None
    if isinstance(node.value, str):
        return re.sub(r"[\n\t]", " ", node.value).strip() if "\n" in node.value or "\t" in node.value else None
    return node.text if node.text.lower() in ("true", "false", "null") or isinstance(node.value, int) else None


def read_order(node: YamlNode | None, scope: NameScope, problems: Problems) -> tuple[OrderTerm, ...]:
    """The terms of `order_by`: a list of terms, or one term. A leading `-` means descending."""
    cure = "write e.g. `order_by: [-created_at]`"
    if node is None:
        return ()
    if isinstance(node, Scalar):
        node = Sequence(file=node.file, line=node.line, items=(node,))
    return tuple(
        _read_term(text.strip(), item, scope, problems) for item, text in as_texts(node, "`order_by`", cure, problems)
    )


def _read_term(text: str, location: Location, scope: NameScope, problems: Problems) -> OrderTerm:
    if (wrong := _DIRECTION.fullmatch(text)) and not text.startswith("-"):
        term, direction = wrong["term"], (wrong["direction"] or "").lower()
        cure = f"write `-{term}`" if direction == "desc" else f"write `{term}`"
        what = f"`order_by` has no words for the direction, as `{text}` has"
        problems.add(location, what, f"{cure}: `-` means descending, and nulls come last")
        text = term
    descending = text.startswith("-")
    read = read_expression(text.removeprefix("-").strip(), location, scope, problems)
    if read.type == "json":
        what = f"`{text.removeprefix('-')}` is json or an array, and has no order"
        problems.add(location, what, "order by a scalar value")
    by = folded(read.expression, scope) if read.valid else read.expression
    return OrderTerm(by=by, descending=descending)


def check_members(
    body: Map, selection: Selection, joins: Mapping[str, Join | None], scope: NameScope, problems: Problems
) -> None:
    """Adds a problem for an embed next to `value`, and for an embed whose name another member of the object has."""
    shown = body.get("embed")
    if not isinstance(shown, Map):
        return
    if isinstance(selection, BareValue):
        what = "`value` makes no object, so `embed` has no place in the document"
        problems.add(body.key_node("embed"), what, "use `fields` instead of `value`, or `join` instead of `embed`")
        return
    selected = set(scope.columns or ()) if isinstance(selection, WholeRow) else {name for name, _ in selection.members}
    for name in shown.entries:
        join = joins.get(name)
        if name in selected:
            what = f"the embed `{name}` and a selected column have the same name"
            cure = f"rename one of them, or select the other columns with `fields`, without `{name}`"
            problems.add(shown.key_node(name), what, cure)
        if join is not None and join.total and f"{name}_total" in {*selected, *shown.entries}:
            what = f"the total of the embed `{name}` is `{name}_total`, but another member has that name"
            problems.add(shown.key_node(name), what, "rename one of them")


def read_key(body: Map, scope: NameScope, problems: Problems) -> Expression | None:
    """The expression of `key`, as text."""
    node = body.get("key")
    if node is None:
        return None
    read = _read_node(node, "`key`", scope, problems, may_aggregate=False)
    if not read.valid or read.type == "string":
        return read.expression
    if read.type not in ("int", "bool", "date"):
        problems.add(node, f"`key` is {read.type}, not text", "cast it, e.g. `created_at::text`")
    call = Call(function=f"to string({read.type})", args=(node_of(read.expression),), type="string")
    return Computed(text=_text_of(read), node=call)
