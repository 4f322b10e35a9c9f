"""Edges: items of the table that name the rows which hold a join key. Reads of them are strongly consistent, and a row may hold
many keys.

    PK      `EDGE#<entity>#<fields>=<key>`: `EDGE#star#username=octocat`, `EDGE#team#member_ids[]=7`
    SK      the row's sort key
    row     the row's partition key
    _f, _v  the format version, and the last version of the row that named the key

An edge is a hint: the reader checks the row itself. The writer puts every edge of a row's new version before it writes the row.
The writer removes an edge only for a version of the row that does not name its key, after it has seen that version
(docs/correctness.md).
"""

from statestore import keys
from statestore.item_attributes import write_note
from statestore.items import Edge
from statestore.keys import Key
from statestore.store import AbsentOrBelow, Delete, Item, Write


def put_edge(row: Key, edge: Edge, version: str) -> Write:
    """Records that `version` of the row names the edge's key. The store refuses it where an edge as new or newer is there."""
    return write_note(_key(row, edge), {"_v": version, "row": row.pk}, when=AbsentOrBelow("_v", version))


def drop_edge(row: Key, edge: Edge, version: str) -> Delete:
    """Removes an edge that `version` of the row does not name. The store refuses it where an edge as new or newer is there."""
    return Delete(key=_key(row, edge), when=AbsentOrBelow("_v", version))


def row_of(edge: Item) -> Key:
    """The row that an edge item names."""
    return Key(edge["row"], edge["SK"])


def _key(row: Key, edge: Edge) -> Key:
    return Key(keys.edge_partition(keys.entity_of(row.pk), *edge), row.sk)
