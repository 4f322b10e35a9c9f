"""Reads a root that is a group: one document for each value of columns of a table.

    root: {group: sale, by: [item]}                         a document for each item
    root: {group: sale, by: {day: "at::date", shop: shop}, where: not cancelled, join: {...}}

The group becomes a root that no table has, whose first join finds its rows. The name of that join is the name of the table. So
the other readers see an ordinary tree, and aggregates without the name of a `many` read these rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from processor.language.definitions.expressions import read_row_expression
from processor.language.definitions.names import NameScope, parse_path
from processor.language.definitions.problems import Problems, suggest
from processor.language.definitions.shape import GROUP, as_map, as_text, as_texts, check_keys
from processor.language.definitions.yaml import Map, Scalar, YamlNode
from processor.language.product.join_fields import type_of, write_computed
from processor.language.product.product import GroupColumn, GroupEntity, group_entity
from processor.values.entity import ColumnType, Entity

_BY = "write the columns of a group, `by: [item]`, or `by: {day: at::date}`"
_CURES = {
    "float": "cast it to decimal or text",
    "json": "take a part of it, `(data ->> 'kind')`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGroup:
    """The root of a product of groups. `body`: the product's, with the join that finds the rows."""

    group: GroupEntity
    by: tuple[GroupColumn, ...]
    body: Map


def read_group(
    root: Map, body: Map, entities: Mapping[str, Entity | None], reads: set[tuple[str, str]], problems: Problems
) -> ReadGroup | None:
    """The group that `root` of a product means. `reads`: collects the computed columns that it names. None: it has problems."""
    before = len(problems)
    check_keys(root, "`root`", GROUP, problems)
    for word in ("group", "by"):
        if word not in root.entries:
            problems.add(root, f"`root` has no `{word}`", "write `root: {group: entity, by: [column]}`")
    node = root.get("group")
    name = as_text(node, "`group`", "write the name of an entity", problems) if node is not None else None
    if node is not None and name is not None and name not in entities:
        problems.add(node, f"there is no entity `{name}`", suggest(name, entities))
    rows = entities.get(name or "")
    if rows is None or len(problems) > before:
        return None
    by = tuple(_columns(root, rows, NameScope(entities=entities, entity=rows.name, reads=reads), problems))
    if len(problems) > before:
        return None
    fields = [column.field for column in by]
    if not by or len({*fields}) < len(fields):
        problems.add(root.key_node("by"), "`by` names a column twice" if by else "`by` is empty", _BY)
    elif {*rows.key} <= {*fields}:
        what = f"`by` has the whole key of `{rows.name}`, so each row is a group"
        problems.add(root.key_node("by"), what, f"write `root: {rows.name}`")
    joined = _with_rows(root, body, rows.name, by, problems)
    if len(problems) > before:
        return None
    return ReadGroup(group=group_entity(rows, by), by=by, body=joined)


def _columns(root: Map, rows: Entity, scope: NameScope, problems: Problems) -> Iterator[GroupColumn]:
    """The columns of `by`: a list of columns, or a mapping from a name to a column or an expression."""
    node = root.get("by")
    named: list[tuple[YamlNode, str, YamlNode]]
    if isinstance(node, Map):
        named = [(key, name, value) for name, (key, value) in node.entries.items()]
    else:
        named = [(item, text, item) for item, text in as_texts(node, "`by`", _BY, problems)] if node else []
    for key, name, value in named:
        text = as_text(value, f"`{name}` of `by`", _BY, problems)
        field = None if text is None else _field(text.strip(), value, scope, problems)
        if text is None or field is None:
            continue
        type_ = type_of(field, rows)
        if what := _no_group(type_):
            cure = _CURES.get(
                "json" if type_.array else type_.name,
                "write `compare: {}` in the product, and group by `lower(...)` of it",
            )
            problems.add(key, f"`{text}` is {what}", cure)
        yield GroupColumn(name, field, text.strip())


def _field(text: str, node: YamlNode, scope: NameScope, problems: Problems) -> str | None:
    """The field of the rows that holds a column of the group."""
    if text in scope.computed:
        scope.reads.add((scope.entity, text))
        return scope.computed[text].field
    if text in (scope.columns or ()):
        return text
    path = parse_path(text)
    if path is not None:
        what = f"entity `{scope.entity}` has no column `{text}`"
        problems.add(node, what, suggest(text, scope.names) if not path[1:] else "group by columns of the row itself")
        return None
    made = read_row_expression(text, node, scope, problems)
    return None if made is None else write_computed(made.node, made.compare)


def _no_group(type_: ColumnType) -> str:
    """Why a value of this type makes no group; empty where it does. Two values are one group only where they are one key."""
    if type_.array or type_.name in ("json", "float"):
        return f"{type_}, whose equal values may look different: a document needs one key"
    if type_.compare:
        compare = " and ".join(type_.compare)
        return f"text that compares by {compare}: equal texts may look different, and a document needs one key"
    return ""


def _with_rows(root: Map, body: Map, rows: str, by: tuple[GroupColumn, ...], problems: Problems) -> Map:
    """The product's mapping, with the join that finds the rows of a group before its other joins."""
    at = root.entries["group"][0]

    def scalar(text: str | bool) -> Scalar:
        return Scalar(file=at.file, line=at.line, value=text, text=str(text))

    def entry(key: str, value: YamlNode) -> tuple[Scalar, YamlNode]:
        return replace(at, value=key, text=key), value

    on = Map(file=at.file, line=at.line, entries={c.text: entry(c.text, scalar(c.name)) for c in by})
    words = {"many": entry("many", scalar(rows)), "on": entry("on", on), "required": entry("required", scalar(True))}
    words |= {word: root.entries[word] for word in ("where", "join") if word in root.entries}
    join = body.get("join")
    others = as_map(join, "`join`", "write `join: {name: {one: entity, on: ...}}`", problems) if join else None
    shown = body.get("embed")
    named: dict[str, tuple[Scalar, YamlNode]] = {**(others.entries if others else {})}
    for other in (named, shown.entries if isinstance(shown, Map) else {}):
        if rows in other:
            what = f"`{rows}` is the name of the rows of a group, and of a join"
            problems.add(other[rows][0], what, "rename the join")
    joined = {rows: entry(rows, Map(file=at.file, line=at.line, entries=words)), **named}
    entries = {**body.entries, "join": entry("join", Map(file=at.file, line=at.line, entries=joined))}
    return replace(body, entries=entries)


def scope_of_group(group: GroupEntity, entities: Mapping[str, Entity | None], reads: set[tuple[str, str]]) -> NameScope:
    """The names at the level of the group: its columns, and in aggregates those of its rows."""
    return NameScope(entities={**entities, group.name: group}, entity=group.name, rows=group.rows, reads=reads)
