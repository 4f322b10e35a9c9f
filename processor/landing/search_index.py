"""What an index of a landing holds: four kinds of entries, which the field `statestore.kind` tells apart.

document    a document of the product, with its members at the top; the alias of readers shows only this kind
tombstone   the sequence of a deleted document: the index itself forgets it after a minute (`index.gc_deletes`), and at a restart
offset      the offset of the next message of a partition
refused     a document that the index refuses, with the reason

An entry has the hash of the key as its id, so that nothing of a deleted document stays but that.
"""

from collections.abc import Mapping
from time import time
from typing import Any, Final

import orjson
import simplejson

from processor.landing.landed_message import LandedMessage
from processor.landing.search_client import IndexWrite
from processor.landing.target import LandedDocument, LandedTopic, RefusedDocument

OWN: Final = "statestore"
"""The member in which an entry keeps what is not of the document."""
KEEP_DAYS: Final = 7
"""So long a tombstone stays, to refuse older messages of its key from a partition that another process reads late."""
_OWN_FIELDS: Final = {
    "kind": {"type": "keyword"},
    "key": {"type": "keyword", "ignore_above": 8191},
    "sequence": {"type": "long"},
    "product_version": {"type": "integer"},
    "published_at": {"type": "date"},
    "deleted_at": {"type": "date"},
}


def index_body(mapping: Mapping[str, Any], topic: LandedTopic, write_alias: str) -> dict[str, Any]:
    """The request that makes an index. `mapping`: of the product's documents."""
    properties = {**mapping["properties"], OWN: {"dynamic": False, "properties": _OWN_FIELDS}}
    return {
        "aliases": {write_alias: {}},
        "mappings": {**mapping, "properties": properties, "_meta": {OWN: topic._asdict()}},
        "settings": {"index.translog.durability": "request"},
    }


def of_kind(*kinds: str) -> dict[str, Any]:
    """The query for entries of these kinds."""
    return {"terms": {f"{OWN}.kind": kinds}}


def earlier_versions(version: int) -> dict[str, Any]:
    """The query for documents of earlier versions of the product, with those that the index refuses."""
    return {"query": {"range": {f"{OWN}.product_version": {"lt": version}}}}


def forgotten() -> dict[str, Any]:
    """The query for tombstones that are older than KEEP_DAYS."""
    old = {"range": {f"{OWN}.deleted_at": {"lt": f"now-{KEEP_DAYS}d"}}}
    return {"bool": {"filter": [of_kind("tombstone"), old]}}


def entry_of(message: LandedMessage) -> IndexWrite | None:
    """The entry of a message; None for a document that is no JSON object."""
    if message.document is None:
        gone = {"kind": "tombstone", "sequence": message.sequence, "deleted_at": int(time() * 1000)}
        return IndexWrite(id_of(message), message.sequence, orjson.dumps({OWN: gone}))
    text = message.document.replace("\n", " ").replace("\r", " ").strip()
    if not text.startswith("{"):
        return None
    members = text[1:].lstrip()
    own = orjson.dumps({"kind": "document", **_shared(message)}).decode()
    source = f'{{"{OWN}":{own}{"" if members.startswith("}") else ","}{members}'
    return IndexWrite(id_of(message), message.sequence, source.encode())


def refused_entry(message: LandedMessage, reason: str) -> IndexWrite:
    """The note of a document that the index refuses."""
    own = {"kind": "refused", **_shared(message), "reason": reason, "document": message.document}
    return IndexWrite(refused_id(message), message.sequence, orjson.dumps({OWN: own}))


def end_of_refused(message: LandedMessage) -> IndexWrite:
    """Removes the note of a document that the index refused, where the message is newer."""
    return IndexWrite(refused_id(message), message.sequence, None)


def offset_entry(partition: int, offset: int) -> IndexWrite:
    """The entry of a partition. A process that is late never puts an offset back."""
    own = {"kind": "offset", "partition": partition, "next_offset": offset, "landed_at": int(time() * 1000)}
    return IndexWrite(f"offset-{partition}", offset, orjson.dumps({OWN: own}))


def document_of(entry: Mapping[str, Any]) -> LandedDocument:
    """The document in an entry, whose numbers are exact."""
    own = entry[OWN]
    document = {name: value for name, value in entry.items() if name != OWN}
    return LandedDocument(own["key"], simplejson.dumps(document, use_decimal=True), int(own["sequence"]))


def refused_of(entry: Mapping[str, Any]) -> RefusedDocument:
    """The refused document in a note."""
    return RefusedDocument(entry[OWN]["key"], int(entry[OWN]["sequence"]), entry[OWN]["reason"])


def id_of(message: LandedMessage) -> str:
    return message.key_hash.hex()


def refused_id(message: LandedMessage) -> str:
    return f"refused-{id_of(message)}"


def _shared(message: LandedMessage) -> dict[str, Any]:
    return {
        "key": message.key,
        "sequence": message.sequence,
        "product_version": message.version,
        "published_at": message.published_at,
    }
