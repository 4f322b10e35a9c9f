"""An edit of the registry: its entries, the registry after it, its lines for people, and what of it waits. Pure.

The repository and the database's triggers make the same registry of it.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from registry.fields import shown_fields
from registry.model import (
    GATE,
    AssignedPath,
    Assignment,
    AssignmentState,
    EdgePath,
    EntityEntry,
    JoinAccess,
    JoinSpec,
    KeyPath,
    ProductEntry,
    Snapshot,
    reads,
    same_json,
    writes,
)


class Signature(NamedTuple):
    """Who makes an edit, and why: for the history."""

    who: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The entries to put and to drop."""

    entities: tuple[EntityEntry, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    """New ones, and those with another state."""
    freed: tuple[Assignment, ...] = ()
    """Those that end."""
    joins: tuple[JoinAccess[AssignedPath], ...] = ()
    dropped: tuple[JoinSpec, ...] = ()
    products: tuple[ProductEntry, ...] = ()
    """Live ones."""
    removed: tuple[str, ...] = ()
    """Live ones that go."""
    waiting: tuple[ProductEntry, ...] = ()
    withdrawn: tuple[str, ...] = ()
    """Those that wait no more."""
    paused: bool | None = None
    """Whether all work pauses; None for no change."""
    paused_topics: tuple[str, ...] | None = None
    """The topics that pause; None for no change."""
    slots: tuple[int, ...] = ()
    """New ones."""
    changes: tuple[str, ...] = ()
    """The edit as lines for people; none: the edit changes nothing."""


def plan_id(after: Snapshot) -> str:
    """The name of a planned edit, from the registry after it: an edit of another version, or another edit, has another name."""
    return hashlib.sha256(repr(after).encode()).hexdigest()[:12]


def edited(stored: Snapshot, change: Edit) -> Snapshot:
    """The registry after the edit, at the next version; the same registry where nothing changes."""
    if not change.changes:
        return stored
    slots = {_place(one): one for one in (*stored.assignments, *change.assignments)}
    for one in change.freed:
        del slots[_place(one)]
    joins = {one.join: one for one in (*stored.joins, *change.joins) if one.join not in change.dropped}
    given = {
        one.name: max(one.version, stored.versions.get(one.name, 0)) for one in (*change.products, *change.waiting)
    }
    after = replace(
        products_after(stored, change),
        version=stored.version + 1,
        slots=stored.slots + len(change.slots),
        entities=_put(stored.entities, change.entities),
        assignments=tuple(slots[place] for place in sorted(slots)),
        joins=tuple(
            one.map(lambda path: slots[_place(path)] if isinstance(path, Assignment) else path)
            for one in sorted(joins.values(), key=lambda one: str(one.join))
        ),
        versions={**stored.versions, **given},
        numbers=with_numbers(stored.numbers, ((one.root, one.name) for one in (*change.products, *change.waiting))),
        paused=stored.paused if change.paused is None else change.paused,
        paused_topics=stored.paused_topics if change.paused_topics is None else change.paused_topics,
    )
    return replace(after, entities=tuple(_with_layouts(stored, after)))


def finish(stored: Snapshot, change: Edit) -> Edit:
    """The edit without joins that stay as they are, with the joins to drop and with its lines."""
    after = products_after(stored, change)
    used = {join for product in (*after.products, *after.waiting) for join in product.joins}
    known = {access.join: access for access in stored.joins}
    joins = tuple(one for one in change.joins if one.join in used and known.get(one.join) != one)
    change = replace(change, joins=joins, dropped=tuple(join for join in known if join not in used))
    return replace(change, changes=tuple(_lines(stored, change)))


def products_after(stored: Snapshot, change: Edit) -> Snapshot:
    """The registry with the live and the waiting products after the edit, and nothing else changed."""
    return replace(
        stored,
        products=_put(stored.products, change.products, change.removed),
        waiting=_put(stored.waiting, change.waiting, change.withdrawn),
    )


def with_numbers(
    known: Mapping[tuple[str, str], int], products: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], int]:
    """The numbers of ledger entries by root and product, with those of new products in their order, as a trigger of the database
    gives them."""
    numbers = dict(known)
    for root, name in products:
        if (root, name) not in numbers:
            numbers[root, name] = max((n for (other, _), n in numbers.items() if other == root), default=-1) + 1
    return numbers


def next_version(stored: Snapshot, name: str) -> int:
    """The version of the next content of a product of this name."""
    given = (one.version for one in (*stored.products, *stored.waiting) if one.name == name)
    return max((stored.versions.get(name, 0), *given)) + 1


def same_product(one: ProductEntry, other: ProductEntry) -> bool:
    """True when two entries ask for the same documents, whenever these go out."""
    keys = [(product.name, product.topic, product.root, product.joins) for product in (one, other)]
    return keys[0] == keys[1] and same_json(one.content, other.content)


def find_product(products: Iterable[ProductEntry], name: str) -> ProductEntry | None:
    """The product of that name, if there is one."""
    return next((one for one in products if one.name == name), None)


def served_joins(joins: Iterable[JoinAccess[AssignedPath]]) -> frozenset[JoinSpec]:
    """The joins of which each slot serves."""
    return frozenset(
        access.join
        for access in joins
        if all(not isinstance(path, Assignment) or reads(path.state) for path in access.paths())
    )


def _with_layouts(stored: Snapshot, after: Snapshot) -> Iterator[EntityEntry]:
    """The entities after an edit. The layout rises where a slot or edges become written, as a trigger of the database does it."""
    before = {_place(one) for one in stored.assignments if writes(one.state)}
    rewritten = {one.entity for one in after.assignments if writes(one.state) and _place(one) not in before}
    rewritten |= {one.entity for one in after.edge_paths() if one not in stored.edge_paths()}
    layouts = {entity.name: entity.layout for entity in stored.entities}
    for entity in after.entities:
        layout = after.version if entity.name in rewritten else layouts.get(entity.name, 0)
        yield replace(entity, layout=layout)


def _place(one: Assignment) -> tuple[str, int]:
    return one.entity, one.slot


def _put(stored: Iterable[Any], put: Iterable[Any], without: Collection[str] = ()) -> tuple[Any, ...]:
    entries = {one.name: one for one in (*stored, *put) if one.name not in without}
    return tuple(entries[name] for name in sorted(entries))


def _lines(stored: Snapshot, change: Edit) -> Iterator[str]:
    entities, joins = {one.name for one in stored.entities}, {access.join for access in stored.joins}
    for entity in change.entities:
        yield f"entity {entity.name}: {'changed' if entity.name in entities else 'added'}"
    yield from _assignment_lines(stored, change)
    for access in change.joins:
        yield f"join {access.join}: {'now ' if access.join in joins else 'added, '}{path_text(access)}"
    yield from _product_lines(stored, change)
    for join in change.dropped:
        yield f"join {join}: dropped, no product uses it"
    if change.slots:
        yield f"slots: GSI_1 to GSI_{change.slots[-1]}, {stored.slots} before"
    if change.paused is not None:
        yield f"all work: {'paused' if change.paused else 'resumed'}"
    if change.paused_topics is not None:
        for topic in sorted({*change.paused_topics} ^ {*stored.paused_topics}):
            yield f"topic {topic}: {'paused' if topic in change.paused_topics else 'resumed'}"


def _assignment_lines(stored: Snapshot, change: Edit) -> Iterator[str]:
    known = {_place(one) for one in stored.assignments}
    for one in change.assignments:
        columns = shown_fields(one.columns)
        if _place(one) in known:
            yield f"entity {one.entity}: GSI_{one.slot} {columns} is {one.state} now"
        elif reads(one.state):
            yield f"entity {one.entity}: GSI_{one.slot} holds {columns}"
        else:
            yield f"entity {one.entity}: GSI_{one.slot} will hold {columns} ({one.state})"
    for one in change.freed:
        yield f"entity {one.entity}: GSI_{one.slot} {shown_fields(one.columns)} is {AssignmentState.FREE} now"


def _product_lines(stored: Snapshot, change: Edit) -> Iterator[str]:
    for product in change.products:
        yield f"product {product.name}: {_live_line(stored, product)}"
    for product in change.waiting:
        yield f"product {product.name}: {_waiting_line(stored, product)}"
    gone = {(one.name, one.version) for one in stored.waiting if one.name in change.withdrawn}
    for name, version in sorted(gone - {(one.name, one.version) for one in change.products}):
        yield f"product {name}: version {version} waits no more"
    for name in change.removed:
        yield f"product {name}: removed"


def _live_line(stored: Snapshot, product: ProductEntry) -> str:
    old, waiting = find_product(stored.products, product.name), find_product(stored.waiting, product.name)
    if old and old.version == product.version:
        return _same_version(old, product)
    if product.retracted:
        return f"retracted, version {product.version} is tombstones"
    if waiting and waiting.version == product.version:
        return f"version {product.version} is live now"
    return f"{'changed' if old else 'added'}, version {product.version}"


def _waiting_line(stored: Snapshot, product: ProductEntry) -> str:
    old, waiting = find_product(stored.products, product.name), find_product(stored.waiting, product.name)
    if waiting and waiting.version == product.version:
        return f"version {product.version}, which waits, is {_same_version(waiting, product)}"
    if old and same_product(old, product):
        return f"version {product.version}, of the same documents, waits until its slots are full"
    return f"{'changed' if old else 'added'}, version {product.version} waits until its slots are full"


def _same_version(old: ProductEntry, new: ProductEntry) -> str:
    """What changes of a product that keeps its version."""
    if old.paused == new.paused:
        return f"changed in `{GATE}` alone, and keeps its version {new.version}"
    return "paused" if new.paused else "resumed"


def path_text(access: JoinAccess[AssignedPath]) -> str:
    """The access paths of a join, as text."""
    return f"down by {_where(access.down)}, up by {_where(access.up)}"


def _where(path: AssignedPath) -> str:
    match path:
        case KeyPath():
            return "key"
        case EdgePath(fields=fields):
            return f"edges by {shown_fields(fields)}"
        case Assignment(slot=slot):
            return f"GSI_{slot}"
