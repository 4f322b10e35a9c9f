"""What a level selects: `fields`, `value` or neither; and by what it is ordered."""

from collections.abc import Collection

from processor.definitions.columns import Level, check_ordered, own_column, read_column
from processor.definitions.errors import Place, Problems
from processor.definitions.shape import as_text, as_texts, describe
from processor.definitions.yaml_nodes import Map, Node, Scalar, Sequence
from processor.model.product import Bare, Column, Fields, Order, Selection, Whole

_EXPRESSION = "name a column, e.g. `title`, or a column of a `one` join, e.g. `repo.name`"
_FIELDS = "write a list of columns, or a mapping `name: column`"


def read_selection(body: Map, level: Level, problems: Problems) -> Selection:
    """The selection of a root or a join."""
    fields, value = body.get("fields"), body.get("value")
    if fields is not None and value is not None:
        problems.add(body.key("value"), "`fields` and `value` exclude each other", "keep one of them")
    if value is not None:
        return Bare(of=_expression(value, "`value`", level, problems))
    if fields is not None:
        return Fields(members=_members(fields, level, problems))
    return Whole()


def _members(node: Node, level: Level, problems: Problems) -> tuple[tuple[str, Column], ...]:
    match node:
        case Map(entries=entries):
            return tuple(
                (name, _expression(value, f"the field `{name}`", level, problems))
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


def _expression(node: Node, what: str, level: Level, problems: Problems) -> Column:
    if isinstance(node, Scalar) and not isinstance(node.value, str) and node.value is not None:
        problems.add(node, f"the expression `{node.text}` is not supported by this version", _EXPRESSION)
        return Column(name=node.text)
    text = as_text(node, what, _EXPRESSION, problems)
    return read_column(text.strip(), node, level, problems) if text else Column(name="")


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
    column = read_column(text.removeprefix("-").strip(), place, level, problems)
    check_ordered(column, place, level, problems)
    return Order(by=column, descending=descending)


def check_members(body: Map, selection: Selection, embeds: Collection[str], level: Level, problems: Problems) -> None:
    """Note an embed that has no place in the object, or whose name a selected member has."""
    if isinstance(selection, Bare):
        if embeds:
            what = "`embed` beside `value` has no object to be shown in"
            problems.add(body.key("embed"), what, "use `fields`, or `join` instead of `embed`")
        return
    match selection:
        case Fields(members=members):
            selected = {name for name, _ in members}
        case Whole():
            selected = set(level.columns or ())
    shown = body.get("embed")
    for name in embeds:
        if name in selected and isinstance(shown, Map):
            what = f"the embed `{name}` and a selected column would be two members of that name"
            cure = f"rename one of them, or select the others by `fields` without `{name}`"
            problems.add(shown.key(name), what, cure)
