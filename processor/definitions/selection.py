"""What a level selects: `fields`, `value` or neither; which rows count; and by what they are ordered."""

import re
from collections.abc import Mapping

from processor.definitions.columns import Level, own_column
from processor.definitions.errors import Place, Problems, Wrong
from processor.definitions.expressions import Read, check_grouped, read_expression
from processor.definitions.shape import as_text, as_texts, describe
from processor.definitions.yaml_nodes import Map, Node, Scalar, Sequence
from processor.model.expression import Column, Expression, aggregates, node_of
from processor.model.product import Bare, Fields, Join, Order, Selection, Whole, expressions

_EXPRESSION = "name a column, e.g. `title`, or write an expression, e.g. `upper(title)`"
_FIELDS = "write a list of columns, or a mapping `name: expression`"


def read_selection(body: Map, level: Level, problems: Problems) -> Selection:
    """The selection of a root or a join."""
    fields, value = body.get("fields"), body.get("value")
    if fields is not None and value is not None:
        problems.add(body.key("value"), "`fields` and `value` exclude each other", "keep one of them")
    if value is not None:
        return _grouped(value, Bare(of=_expression(value, "`value`", level, problems).expression), problems)
    if fields is not None:
        return _grouped(fields, Fields(members=_members(fields, level, problems)), problems)
    return Whole()


def read_where(node: Node | None, level: Level, problems: Problems) -> Expression | None:
    """The condition under which a row counts."""
    if node is None:
        return None
    read = _expression(node, "`where`", level, problems, grouped=False)
    if read.right and read.type not in ("bool", None):
        problems.add(node, f"`where` is {read.type}, not bool", "write a condition, e.g. `status = 'open'`")
    return read.expression


def _grouped(node: Node, selection: Selection, problems: Problems) -> Selection:
    """Notes what reads one row beside aggregates over all of them."""
    selected = expressions(selection)
    if any(True for expression in selected for _ in aggregates(node_of(expression))):
        for expression in selected:
            try:
                check_grouped(expression)
            except Wrong as wrong:
                problems.add(node, wrong.what, wrong.cure)
    return selection


def _members(node: Node, level: Level, problems: Problems) -> tuple[tuple[str, Expression], ...]:
    match node:
        case Map(entries=entries):
            return tuple(
                (name, _expression(value, f"the field `{name}`", level, problems).expression)
                for name, (key, value) in entries.items()
                if as_text(key, "the name of a field", _FIELDS, problems)
            )
        case Sequence():
            names = as_texts(node, "`fields`", _FIELDS, problems)
            _check_once(names, problems)
            return tuple((name, own_column(name, item, level, problems)) for item, name in names)
        case Scalar():
            problems.add(node, f"`fields` is {describe(node)}, not a list or a mapping", _FIELDS)
            return ()


def _check_once(names: list[tuple[Node, str]], problems: Problems) -> None:
    seen: set[str] = set()
    for item, name in names:
        if name in seen:
            problems.add(item, f"`fields` names `{name}` twice", "name each member once")
        seen.add(name)


def _expression(node: Node, what: str, level: Level, problems: Problems, *, grouped: bool = True) -> Read:
    text = _written(node) or as_text(node, what, _EXPRESSION, problems)
    if text is None:
        return Read(expression=Column(name=""), type=None, right=False)
    return read_expression(text.strip(), node, level, problems, grouped=grouped and level.many)


def _written(node: Node) -> str | None:
    """An expression that YAML reads as another value than text (`1`, `true`, `null`), or that has several lines."""
    if not isinstance(node, Scalar):
        return None
    if isinstance(node.value, str):
        return re.sub(r"[\n\t]", " ", node.value).strip() if "\n" in node.value or "\t" in node.value else None
    return node.text if node.text.lower() in ("true", "false", "null") or isinstance(node.value, int) else None


def read_order(node: Node | None, level: Level, problems: Problems) -> tuple[Order, ...]:
    """The terms of `order_by`: a list, or one of them alone; a leading `-` is descending."""
    cure = "write e.g. `order_by: [-created_at]`"
    if node is None:
        return ()
    if isinstance(node, Scalar):
        node = Sequence(file=node.file, line=node.line, items=(node,))
    return tuple(
        _term(text.strip(), item, level, problems) for item, text in as_texts(node, "`order_by`", cure, problems)
    )


def _term(text: str, place: Place, level: Level, problems: Problems) -> Order:
    descending = text.startswith("-")
    read = read_expression(text.removeprefix("-").strip(), place, level, problems)
    if read.type == "json":
        what = f"`{text.removeprefix('-')}` is json or an array, which has no order"
        problems.add(place, what, "order by a scalar value")
    return Order(by=read.expression, descending=descending)


def check_members(
    body: Map, selection: Selection, joins: Mapping[str, Join | None], level: Level, problems: Problems
) -> None:
    """Note an embed that has no place in the object, or whose name another member has."""
    shown = body.get("embed")
    if not isinstance(shown, Map):
        return
    if isinstance(selection, Bare):
        what = "`embed` beside `value` has no object to be shown in"
        problems.add(body.key("embed"), what, "use `fields`, or `join` instead of `embed`")
        return
    selected = set(level.columns or ()) if isinstance(selection, Whole) else {name for name, _ in selection.members}
    for name in shown.entries:
        join = joins.get(name)
        if name in selected:
            what = f"the embed `{name}` and a selected column would be two members of that name"
            cure = f"rename one of them, or select the others by `fields` without `{name}`"
            problems.add(shown.key(name), what, cure)
        if join is not None and join.total and f"{name}_total" in {*selected, *shown.entries}:
            what = f"`{name}_total`, the total of the embed `{name}`, would be two members of that name"
            problems.add(shown.key(name), what, "rename one of them")
