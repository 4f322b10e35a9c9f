"""`on`: the pairs of child and parent columns that a join sets equal; one side of it may be the elements of an array."""

from processor.definitions.columns import Level
from processor.definitions.errors import Problems, suggest
from processor.definitions.shape import as_map, as_text
from processor.definitions.yaml_nodes import Node, Scalar
from processor.model.elements import column_of, element, type_of
from processor.model.entity import ColumnType, Entity

_ON = "write `on: {child column: parent column}`"
Pairs = tuple[tuple[str, str], ...]


def read_on(node: Node | None, join: Scalar, child: Level, above: Level, problems: Problems) -> Pairs:
    """The (child, parent) pairs of the join, in the order written; without those that are no text."""
    if node is None:
        problems.add(join, f"the join `{join.text}` has no `on`", _ON)
    pairs = as_map(node, "`on`", _ON, problems)
    on: list[tuple[str, str]] = []
    for key, value in pairs.entries.values() if pairs else ():
        parent = as_text(value, f"the parent column of `{key.text}`", _ON, problems)
        if parent is None:
            continue
        on.append((key.text, parent))
        # The list, because both sides are to be checked.
        if all([_check_side(key.text, key, child, problems), _check_side(parent, value, above, problems)]):
            _check_pair(key, parent, child, above, problems)
    if pairs is not None:
        _check_arrays(on, pairs, problems)
    return tuple(on)


def _check_side(field: str, node: Node, level: Level, problems: Problems) -> bool:
    """Is the field there? True also if nobody knows, because its entity has problems of its own."""
    columns, column = level.columns, column_of(field)
    if columns is None or field in columns:
        return True
    if column != field and column in columns:
        return _check_element(field, node, level, problems)
    if "." in column:
        problems.add(node, f"`{field}` is no column of `{level.entity}`", "join on columns of the two rows themselves")
    else:
        problems.add(node, f"entity `{level.entity}` has no column `{column}`", suggest(column, columns))
    return False


def _check_element(field: str, node: Node, level: Level, problems: Problems) -> bool:
    read, columns = element(field), level.columns
    if read is None or columns is None:
        return True
    declared, said = columns[read.column], f"`{level.entity}.{read.column}` is {columns[read.column]}"
    if not declared.array:
        cure = f"write `{read.column}`" if declared.kind else f"declare `{read.column}` as an array, `json[]`"
        problems.add(node, f"{said}, which has no elements", cure)
    elif read.member is not None and declared.name != "json":
        problems.add(node, f"{said}, whose elements have no members", f"write `{read.column}[]`")
    elif read.member is not None and ("." in read.member or "[]" in read.member):
        problems.add(node, f"`{field}` reaches below a member of the elements", f"write `{read.column}[].<member>`")
    else:
        return True
    return False


def _check_pair(key: Scalar, parent: str, child: Level, above: Level, problems: Problems) -> None:
    sides = ((child, key.text), (above, parent))
    kinds = {_kind(level, field, key, problems) for level, field in sides} - {"json"}
    if len(kinds) > 1 and None not in kinds:
        said = " and ".join(f"`{level.entity}.{field}` is {_type(level, field)}" for level, field in sides)
        problems.add(key, f"{said}: they never match", "join columns of the same type")


def _kind(level: Level, field: str, node: Node, problems: Problems) -> str | None:
    """What the field's values compare as; `json` for those of json elements, None for what joins nothing, or is unknown."""
    declared = _type(level, field)
    if declared is None or declared.kind:
        return declared.kind if declared else None
    if element(field):
        return "json"
    cure = f"write `{field}[]` to join its elements" if declared.array else "join on a scalar column"
    problems.add(node, f"`{level.entity}.{field}` is {declared}, which joins nothing", cure)
    return None


def _type(level: Level, field: str) -> ColumnType | None:
    entity = level.entities.get(level.entity)
    return type_of(field, entity) if isinstance(entity, Entity) else None


def _check_arrays(on: list[tuple[str, str]], node: Node, problems: Problems) -> None:
    """The elements of one array, at most, are looked up."""
    arrays = {(side, read.column) for pair in on for side, field in enumerate(pair) if (read := element(field))}
    if len(arrays) > 1:
        names = " and ".join(f"`{column}[]`" for _, column in sorted(arrays))
        problems.add(node, f"`on` takes the elements of several arrays, {names}", "join on the elements of one array")
