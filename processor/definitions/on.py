"""Reads `on`: the pairs of child and parent columns that a join sets equal. One side may be the elements of an array."""

from processor.definitions.expression_reader.names import NameScope
from processor.definitions.problems import Problems, suggest
from processor.definitions.shape import as_map, as_text
from processor.definitions.yaml_nodes import Scalar, YamlNode
from processor.product.join_fields import parse_element, type_of
from processor.records.entity import ColumnType, Compare, Entity, united
from registry.text import column_of

_ON = "write `on: {child column: parent column}`"
JoinPairs = tuple[tuple[str, str], ...]


def read_on(node: YamlNode | None, join: Scalar, child: NameScope, above: NameScope, problems: Problems) -> JoinPairs:
    """The (child, parent) pairs of the join, in the order written. Leaves out a pair that is not text, with a problem."""
    if node is None:
        problems.add(join, f"the join `{join.text}` has no `on`", _ON)
    pairs = as_map(node, "`on`", _ON, problems)
    on: list[tuple[str, str]] = []
    for key, value in pairs.entries.values() if pairs else ():
        parent = as_text(value, f"the parent column of `{key.text}`", _ON, problems)
        if parent is None:
            continue
        on.append((key.text, parent))
        if _is_turned(key.text, parent, child, above):
            what = f"`on` is turned round: `{key.text}` is a column of `{above.entity}`, and `{parent}` of `{child.entity}`"
            problems.add(key, what, f"write `{parent}: {key.text}`: first the column of the joined `{child.entity}`")
            continue
        # A list, not a generator: it checks both sides, also where the first one fails.
        if all([_check_side(key.text, key, child, problems), _check_side(parent, value, above, problems)]):
            _check_pair(key, parent, child, above, problems)
    if pairs is not None:
        _check_arrays(on, pairs, problems)
    return tuple(on)


def read_compares(on: JoinPairs, child: NameScope, above: NameScope) -> tuple[Compare, ...]:
    """How the text of each pair compares: by the words of both its columns. Empty where no column has a word."""
    types = [(_field_type(child, field), _field_type(above, parent)) for field, parent in on]
    compares = tuple(united(side.compare for side in sides if side) for sides in types)
    return compares if any(compares) else ()


def _is_turned(field: str, parent: str, child: NameScope, above: NameScope) -> bool:
    """Whether the pair does not exist, but would exist the other way round."""
    below_columns, above_columns = child.columns, above.columns
    if below_columns is None or above_columns is None:
        return False
    name, other = column_of(field), column_of(parent)
    exists = name in below_columns and other in above_columns
    return not exists and other in below_columns and name in above_columns


def _check_side(field: str, node: YamlNode, scope: NameScope, problems: Problems) -> bool:
    """Whether the field exists. True also where the entity has problems of its own, because then nobody can know."""
    columns, column = scope.columns, column_of(field)
    if columns is None or field in columns:
        return True
    if column != field and column in columns:
        return _check_element(field, node, scope, problems)
    if "." in column:
        what = f"`{field}` is not a column of `{scope.entity}` itself"
        problems.add(node, what, "join on columns of the two rows themselves")
    else:
        problems.add(node, f"entity `{scope.entity}` has no column `{column}`", suggest(column, columns))
    return False


def _check_element(field: str, node: YamlNode, scope: NameScope, problems: Problems) -> bool:
    read, columns = parse_element(field), scope.columns
    if read is None or columns is None:
        return True
    declared, column_is = columns[read.column], f"`{scope.entity}.{read.column}` is {columns[read.column]}"
    if declared.kind:
        problems.add(node, f"{column_is}, which has no elements", f"write `{read.column}`")
    elif read.member is not None and declared.name != "json":
        problems.add(node, f"{column_is}, whose elements have no members", f"write `{read.column}[]`")
    elif read.member is not None and ("." in read.member or "[]" in read.member):
        problems.add(node, f"`{field}` names a part of a member of the elements", f"write `{read.column}[].<member>`")
    else:
        return True
    return False


def _check_pair(key: Scalar, parent: str, child: NameScope, above: NameScope, problems: Problems) -> None:
    sides = ((child, key.text), (above, parent))
    kinds = {_comparable_kind(scope, field, key, problems) for scope, field in sides} - {"json"}
    if len(kinds) > 1 and None not in kinds:
        types = " and ".join(f"`{scope.entity}.{field}` is {_field_type(scope, field)}" for scope, field in sides)
        problems.add(key, f"{types}: they never match", "join columns of the same type")


def _comparable_kind(scope: NameScope, field: str, node: YamlNode, problems: Problems) -> str | None:
    """The kind that the field's values compare as. `json`: for json elements; None: the field joins nothing, or is unknown."""
    declared = _field_type(scope, field)
    if declared is None or declared.kind:
        return declared.kind if declared else None
    if parse_element(field):
        return "json"
    cure = f"write `{field}[]` to join its elements{'' if declared.array else ', or join on a scalar column'}"
    problems.add(node, f"`{scope.entity}.{field}` is {declared}, which joins nothing", cure)
    return None


def _field_type(scope: NameScope, field: str) -> ColumnType | None:
    entity = scope.entities.get(scope.entity)
    return type_of(field, entity) if isinstance(entity, Entity) else None


def _check_arrays(on: list[tuple[str, str]], node: YamlNode, problems: Problems) -> None:
    """Adds a problem where `on` names the elements of more than one array."""
    arrays = {(side, read.column) for pair in on for side, field in enumerate(pair) if (read := parse_element(field))}
    if len(arrays) > 1:
        names = " and ".join(f"`{column}[]`" for _, column in sorted(arrays))
        problems.add(node, f"`on` names the elements of several arrays, {names}", "join on the elements of one array")
