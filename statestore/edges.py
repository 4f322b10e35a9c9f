"""Edge items: which rows hold a join key, in the table itself, where a read is strongly consistent and a row may hold many.

    PK      `EDGE#<entity>#<fields>=<key>`: `EDGE#star#username=octocat`, `EDGE#team#member_ids[]=7`
    SK      the row's sort key
    row     the row's partition key
    _f, _v  the format version, and the version of the row that named the key last

An edge is a candidate, the row itself is the evidence. Every edge of a row's new version is put before the row is written, and
one is removed only in the name of a version of the row that does not name its key, after that version was seen (docs/edges.md).
"""

from statestore import keys
from statestore.items import FORMAT, Edge
from statestore.keys import Key
from statestore.store import AbsentOrBelow, Delete, Item, Write


def put_edge(row: Key, edge: Edge, version: str) -> Write:
    """Says that `version` of the row names the edge's key; refused where a version as new says so."""
    values = {"_f": FORMAT, "_v": version, "row": row.pk}
    return Write(key=_key(row, edge), set=values, when=AbsentOrBelow("_v", version))


def drop_edge(row: Key, edge: Edge, version: str) -> Delete:
    """Removes an edge that `version` of the row does not name; refused where a version as new names it."""
    return Delete(key=_key(row, edge), when=AbsentOrBelow("_v", version))


def row_of(edge: Item) -> Key:
    """The row that an edge item names."""
    return Key(edge["row"], edge["SK"])


def _key(row: Key, edge: Edge) -> Key:
    return Key(keys.edge_partition(keys.entity_of(row.pk), *edge), row.sk)
