"""Reads the joins of a level, `join` and `embed`. Each join has its own level below it."""

from dataclasses import dataclass, replace

from processor.definitions.expression_reader.names import NameScope
from processor.definitions.members import JOIN
from processor.definitions.on import read_compares, read_on
from processor.definitions.problems import Problems, suggest
from processor.definitions.selection import check_members, read_order, read_selection, read_where
from processor.definitions.shape import as_count, as_flag, as_map, as_text, check_keys
from processor.definitions.yaml_nodes import Map, Scalar
from processor.product.join_fields import array_of
from processor.product.product import Join

MAX_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _WrittenJoin:
    """A join as the author wrote it. `shown`: it is an `embed`."""

    name: Scalar
    body: Map
    shown: bool


def read_joins(body: Map, above: NameScope, problems: Problems) -> dict[str, Join | None]:
    """The joins of a level by name, first those of `join`, then those of `embed`. A join with problems has None."""
    joins: dict[str, Join | None] = {}
    for word, shown in (("join", False), ("embed", True)):
        mapping = as_map(body.get(word), f"`{word}`", f"write `{word}: {{name: {{one: entity, on: ...}}}}`", problems)
        for name, (key, node) in mapping.entries.items() if mapping else ():
            if name in joins:
                problems.add(key, f"`{name}` is both a `join` and an `embed`", "rename one of them")
            as_text(key, "the name of a join", "use text without control characters", problems)
            cure = "write `{one: entity, on: {child column: parent column}}`"
            joined = as_map(node, f"the join `{name}`", cure, problems)
            written = _WrittenJoin(name=key, body=joined, shown=shown) if joined else None
            joins[name] = _read_join(written, above, problems) if written else None
    return joins


def _read_join(written: _WrittenJoin, above: NameScope, problems: Problems) -> Join | None:
    before = len(problems)
    body, name = written.body, written.name.text
    check_keys(body, f"the join `{name}`", JOIN, problems)
    entity, many = _read_entity(written, above, problems)
    if entity is None:
        return None
    child = NameScope(entities=above.entities, entity=entity, above=above, many=many)
    on = read_on(body.get("on"), written.name, child, above, problems)
    if array_of(tuple(parent for _, parent in on)) is not None:
        _check_list_join(body, name, problems)
    joins = read_joins(body, child, problems)
    scope = replace(child, joins=joins)
    selection = read_selection(body, scope, problems)
    where = read_where(body.get("where"), scope, problems)
    order_by = read_order(body.get("order_by"), scope, problems)
    limit = _read_limit(body, many, problems)
    required, total, strong = (as_flag(body, word, problems) for word in ("required", "total", "strong"))
    check_members(body, selection, joins, scope, problems)
    if len(problems) > before:
        return None
    join = Join(
        name=name,
        entity=entity,
        many=many,
        shown=written.shown,
        on=on,
        order_by=order_by,
        limit=limit,
        total=total,
        where=where,
        required=required,
        selection=selection,
        joins=tuple(join for join in joins.values() if join is not None),
        strong=strong,
        compare=read_compares(on, child, above),
    )
    _check_combinations(join, body, problems)
    return join if len(problems) == before else None


def _check_combinations(join: Join, body: Map, problems: Problems) -> None:
    """Adds a problem for `total` without `limit`, for aggregates with `limit`, and for aggregates with an `embed` below."""
    if join.total and (join.limit is None or not join.shown):
        what = f"`total` of `{join.name}` counts the rows before `limit`, so it needs an `embed` with a `limit`"
        problems.add(body.key_node("total"), what, "add `limit` to an `embed`, or count with `value: count(*)`")
    if join.aggregated and join.limit is not None:
        what = f"`{join.name}` has a `limit`, but its aggregate reads all rows"
        problems.add(body.key_node("limit"), what, "remove `limit`, or the aggregate")
    if join.aggregated and any(below.shown for below in join.joins):
        what = f"`{join.name}` aggregates all its rows, but an `embed` below it belongs to one row"
        problems.add(body.key_node("embed"), what, "use `join` instead of `embed`, and aggregate its columns")


def _read_entity(written: _WrittenJoin, above: NameScope, problems: Problems) -> tuple[str | None, bool]:
    """The joined entity, and whether the join is a `many`. A missing or unknown entity gives None."""
    body, name = written.body, written.name.text
    words = [word for word in ("one", "many") if word in body.entries]
    if len(words) != 1:
        what = f"the join `{name}` has {'both `one` and `many`' if words else 'neither `one` nor `many`'}"
        problems.add(written.name, what, "write `one: entity` for an object, or `many: entity` for a list")
        return None, False
    node = body.entries[words[0]][1]
    entity = as_text(node, f"`{words[0]}`", "write the name of an entity", problems)
    if entity is not None and entity not in above.entities:
        problems.add(node, f"there is no entity `{entity}`", suggest(entity, above.entities))
        return None, False
    return entity, words == ["many"]


def _check_list_join(body: Map, name: str, problems: Problems) -> None:
    """Adds a problem for each key that a list join cannot have: it shows the parent's array, element by element."""
    if "one" in body.entries:
        what = f"`{name}` is a `one`, but its `on` looks up each element of an array"
        problems.add(body.key_node("one"), what, "write `many`, or join on a scalar column")
    for word in ("order_by", "limit"):
        if word in body.entries:
            what = f"the list join `{name}` has `{word}`, but it keeps the array's order and length"
            problems.add(body.key_node(word), what, f"remove `{word}`")


def _read_limit(body: Map, many: bool, problems: Problems) -> int | None:
    node = body.get("limit")
    if node is None:
        return None
    if not many:
        problems.add(body.key_node("limit"), "a `one` has no `limit`", "remove it: a `one` takes the first row")
        return None
    return as_count(node, "`limit`", MAX_LIMIT, problems)
