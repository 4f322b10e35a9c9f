"""The two sides of a join: their fields in pairs, in one order, so that both sides encode the same key."""

from processor.product.join_fields import type_of, typed_field
from processor.product.product import Join
from processor.records.entity import Entity

Columns = tuple[str, ...]


def align_columns(join: Join, child: Entity, parent: Entity) -> tuple[Columns, Columns]:
    """The join's child and parent columns, in pairs. If one side is a whole primary key, the pairs have the key's order. Else the
    parent's column names give the order."""
    pairs, compares = list(join.on), dict(zip(join.on, join.compare, strict=False))
    by_parent, by_child = {p: c for c, p in pairs}, dict(pairs)
    if set(by_parent) == set(parent.key) and len(pairs) == len(parent.key):
        pairs = [(by_parent[p], p) for p in parent.key]
    elif set(by_child) == set(child.key) and len(pairs) == len(child.key):
        pairs = [(c, by_child[c]) for c in child.key]
    else:
        pairs.sort(key=lambda pair: (pair[1], pair[0]))
    return (
        tuple(typed_field(c, child, type_of(p, parent), compares.get((c, p), ())) for c, p in pairs),
        tuple(typed_field(p, parent, type_of(c, child), compares.get((c, p), ())) for c, p in pairs),
    )
