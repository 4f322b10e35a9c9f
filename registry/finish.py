"""Finishes an edit: the joins that no product uses after it, and its changes as lines for people. Pure; prints nothing."""

from collections.abc import Iterator
from dataclasses import replace

from registry.edited import Edit, find_product, products_after, same_product
from registry.lifecycle import reads
from registry.model import AssignedPath, Assignment, AssignmentState, EdgePath, KeyPath, ProductEntry, Snapshot


def finish(stored: Snapshot, change: Edit) -> Edit:
    """The edit without joins that stay as they are, with the joins to drop and with its lines."""
    after = products_after(stored, change)
    used = {join for product in (*after.products, *after.waiting) for join in product.joins}
    known = {access.join: access for access in stored.joins}
    joins = tuple(one for one in change.joins if one.join in used and known.get(one.join) != one)
    change = replace(change, joins=joins, dropped=tuple(join for join in known if join not in used))
    return replace(change, changes=tuple(_lines(stored, change)))


def _lines(stored: Snapshot, change: Edit) -> Iterator[str]:
    entities, joins = {one.name for one in stored.entities}, {access.join for access in stored.joins}
    for entity in change.entities:
        yield f"entity {entity.name}: {'changed' if entity.name in entities else 'added'}"
    yield from _assignment_lines(stored, change)
    for access in change.joins:
        how = f"down by {_where(access.down)}, up by {_where(access.up)}"
        yield f"join {access.join}: {'now ' if access.join in joins else 'added, '}{how}"
    yield from _product_lines(stored, change)
    for join in change.dropped:
        yield f"join {join}: dropped, no product uses it"
    if change.paused is not None:
        yield f"all work: {'paused' if change.paused else 'resumed'}"
    if change.paused_topics is not None:
        for topic in sorted({*change.paused_topics} ^ {*stored.paused_topics}):
            yield f"topic {topic}: {'paused' if topic in change.paused_topics else 'resumed'}"


def _assignment_lines(stored: Snapshot, change: Edit) -> Iterator[str]:
    known = {(one.entity, one.slot) for one in stored.assignments}
    for one in change.assignments:
        columns = "#".join(one.columns)
        if (one.entity, one.slot) in known:
            yield f"entity {one.entity}: GSI_{one.slot} {columns} is {one.state} now"
        elif reads(one.state):
            yield f"entity {one.entity}: GSI_{one.slot} holds {columns}"
        else:
            yield f"entity {one.entity}: GSI_{one.slot} will hold {columns} ({one.state})"
    for one in change.freed:
        yield f"entity {one.entity}: GSI_{one.slot} {'#'.join(one.columns)} is {AssignmentState.FREE} now"


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
        return "paused" if product.paused else "resumed"
    if product.retracted:
        return f"retracted, version {product.version} is tombstones"
    if waiting and waiting.version == product.version:
        return f"version {product.version} is live now"
    return f"{'changed' if old else 'added'}, version {product.version}"


def _waiting_line(stored: Snapshot, product: ProductEntry) -> str:
    old, waiting = find_product(stored.products, product.name), find_product(stored.waiting, product.name)
    if waiting and waiting.version == product.version:
        return f"version {product.version}, which waits, is {'paused' if product.paused else 'resumed'}"
    if old and same_product(old, product):
        return f"version {product.version}, of the same documents, waits until its slots are full"
    return f"{'changed' if old else 'added'}, version {product.version} waits until its slots are full"


def _where(path: AssignedPath) -> str:
    match path:
        case KeyPath():
            return "key"
        case EdgePath(fields=fields):
            return f"edges by {'#'.join(fields)}"
        case Assignment(slot=slot):
            return f"GSI_{slot}"
