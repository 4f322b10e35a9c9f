"""The joins of a level, `join` and `embed`: each with its own level below it."""

from dataclasses import dataclass, replace

from processor.definitions.columns import Level
from processor.definitions.errors import Problems, suggest
from processor.definitions.on import read_on
from processor.definitions.selection import check_members, read_order, read_selection, read_where
from processor.definitions.shape import as_count, as_map, as_text, check_keys, describe
from processor.definitions.yaml_nodes import Map, Scalar
from processor.model.elements import array_of
from processor.model.product import Join

_KEYS = (
    "one", "many", "on", "strong", "where", "required", "order_by", "limit", "total", "fields", "value", "join", "embed",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A join to be read. `shown`: it is an `embed`; `visible`: and stands below no `join`, so that somebody sees it."""

    name: Scalar
    body: Map
    shown: bool
    visible: bool


def read_joins(body: Map, above: Level, visible: bool, problems: Problems) -> dict[str, Join | None]:
    """The joins of a level, those of `join` before those of `embed`; None for one with problems."""
    joins: dict[str, Join | None] = {}
    for word, shown in (("join", False), ("embed", True)):
        written = as_map(body.get(word), f"`{word}`", f"write `{word}: {{name: {{one: entity, on: ...}}}}`", problems)
        for name, (key, node) in written.entries.items() if written else ():
            if name in joins:
                problems.add(key, f"`{name}` is both a `join` and an `embed`", "rename one of them")
            as_text(key, "the name of a join", "use text without control characters", problems)
            what = f"the join `{name}`"
            joined = as_map(node, what, "write `{one: entity, on: {child column: parent column}}`", problems)
            place = _Place(name=key, body=joined, shown=shown, visible=visible and shown) if joined else None
            joins[name] = _read_join(place, above, problems) if place else None
    return joins


def _read_join(place: _Place, above: Level, problems: Problems) -> Join | None:
    before = len(problems)
    body, name = place.body, place.name.text
    check_keys(body, f"the join `{name}`", _KEYS, problems)
    entity, many = _read_entity(place, above, problems)
    if entity is None:
        return None
    child = Level(entities=above.entities, entity=entity, above=above, many=many)
    on = read_on(body.get("on"), place.name, child, above, problems)
    if array_of(tuple(parent for _, parent in on)) is not None:
        _check_list(body, name, problems)
    joins = read_joins(body, child, place.visible, problems)
    level = replace(child, joins=joins)
    selection = read_selection(body, level, problems)
    where = read_where(body.get("where"), level, problems)
    order_by = read_order(body.get("order_by"), level, problems)
    limit = _read_limit(body, many, problems)
    required, total, strong = (_read_flag(body, word, problems) for word in ("required", "total", "strong"))
    check_members(body, selection, joins, level, problems)
    if len(problems) > before:
        return None
    join = Join(
        name=name,
        entity=entity,
        many=many,
        shown=place.shown,
        on=on,
        order_by=order_by,
        limit=limit,
        total=total,
        where=where,
        required=required,
        selection=selection,
        joins=tuple(join for join in joins.values() if join is not None),
        strong=strong,
    )
    _check_rows(join, body, problems)
    return join if len(problems) == before else None


def _check_rows(join: Join, body: Map, problems: Problems) -> None:
    """Note what does not go together: `total` and no cut, aggregates and a cut, aggregates and an embed of one row."""
    if join.total and (join.limit is None or not join.shown):
        what = "`total` says how many rows there were before `limit`, and nothing is cut here"
        problems.add(body.key("total"), what, "write `limit` beside it, in an `embed`; or count by `value: count(*)`")
    if join.aggregated and join.limit is not None:
        what = f"`{join.name}` is one value of all its rows, and has a `limit`"
        problems.add(body.key("limit"), what, "remove it: an aggregate is taken over all rows")
    if join.aggregated and any(below.shown for below in join.joins):
        what = f"`{join.name}` is one value of all its rows, and an `embed` below it would belong to one of them"
        problems.add(body.key("embed"), what, "use `join`, and aggregate its columns")


def _read_entity(place: _Place, above: Level, problems: Problems) -> tuple[str | None, bool]:
    """The joined entity, and whether it is a `many`; no entity when it is not said or unknown."""
    body, name = place.body, place.name.text
    words = [word for word in ("one", "many") if word in body.entries]
    if len(words) != 1:
        what = f"the join `{name}` has {'both `one` and `many`' if words else 'neither `one` nor `many`'}"
        problems.add(place.name, what, "write `one: entity` for an object, or `many: entity` for a list")
        return None, False
    node = body.entries[words[0]][1]
    entity = as_text(node, f"`{words[0]}`", "write the name of an entity", problems)
    if entity is not None and entity not in above.entities:
        problems.add(node, f"there is no entity `{entity}`", suggest(entity, above.entities))
        return None, False
    return entity, words == ["many"]


def _check_list(body: Map, name: str, problems: Problems) -> None:
    """A list join shows the parent's array, element by element."""
    if "one" in body.entries:
        what = f"`{name}` looks up each element of an array, which is a list"
        problems.add(body.key("one"), what, "write `many`, or join on a scalar column")
    for word in ("order_by", "limit"):
        if word in body.entries:
            what = f"`{word}` of the list join `{name}`: it keeps the array's order and length"
            problems.add(body.key(word), what, f"remove `{word}`")


def _read_flag(body: Map, word: str, problems: Problems) -> bool:
    node = body.get(word)
    if node is None or (isinstance(node, Scalar) and isinstance(node.value, bool)):
        return isinstance(node, Scalar) and bool(node.value)
    problems.add(node, f"`{word}` is {describe(node)}", f"write `{word}: true`, or leave it out")
    return False


def _read_limit(body: Map, many: bool, problems: Problems) -> int | None:
    node = body.get("limit")
    if node is None:
        return None
    if not many:
        problems.add(body.key("limit"), "`limit` belongs to a `many`", "remove it: a `one` takes the first row")
        return None
    return as_count(node, "`limit`", None, problems)
