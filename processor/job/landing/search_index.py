"""What an index of a landing holds: four kinds of entries, which the field `statestore.kind` tells apart.

document    a document of the product, with its members at the top; the alias of readers shows only this kind
tombstone   the sequence of a deleted document: the index itself forgets it after a minute (`index.gc_deletes`), and at a restart
offset      the offset of the next message of a partition
refused     a document that the index refuses, with the reason

An entry has the hash of the key as its id, so that nothing of a deleted document stays but that. `incarnation` counts how often
the topic was created again. It is the upper part of the version of an entry: a message of a later incarnation replaces every
entry of an earlier one, since the sequences of a new topic may begin again.
"""

from collections.abc import Mapping
from time import time
from typing import Any, Final

import orjson
import simplejson

from processor.job.landing.landed_message import LandedMessage, is_object, shortened
from processor.job.landing.search_client import IndexWrite
from processor.job.landing.target import LandedDocument, LandedTopic, RefusedDocument
from processor.values.record import HIGHEST_SEQUENCE

OWN: Final = "statestore"
"""The member in which an entry keeps what is not of the document."""
_REFUSED: Final = "refused-"
KEEP_DAYS: Final = 7
"""So long a tombstone stays, to refuse older messages of its key from a partition that another process reads late."""
MOST_CHARACTERS: Final = 10_000
"""A note of a refused document has at most so much of its document and of its key: a server takes every note."""
_OWN_FIELDS: Final = {
    "kind": {"type": "keyword"},
    "key": {"type": "keyword", "ignore_above": 8191},
    "sequence": {"type": "long"},
    "incarnation": {"type": "integer"},
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


def bound_body(meta: Mapping[str, Any], topic: LandedTopic, incarnation: int) -> dict[str, Any]:
    """The request that binds an index to a topic that was created again. `meta`: of the index now."""
    bound = topic._asdict() | {"incarnation": incarnation}
    return {"_meta": {**meta, OWN: bound}, "properties": {OWN: {"dynamic": False, "properties": _OWN_FIELDS}}}


def version_of(incarnation: int, number: int) -> int:
    """The version of an entry with this sequence or offset."""
    return incarnation * (HIGHEST_SEQUENCE + 1) + number


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


def earlier_incarnations(incarnation: int) -> dict[str, Any]:
    """The query for documents, tombstones and notes of earlier topics of this name."""
    these = {"range": {f"{OWN}.incarnation": {"gte": incarnation}}}
    return {"bool": {"filter": [of_kind("document", "tombstone", "refused")], "must_not": [these]}}


def entry_of(message: LandedMessage, incarnation: int = 0) -> IndexWrite | None:
    """The entry of a message; None for a document that is no JSON object."""
    version = version_of(incarnation, message.sequence)
    if message.document is None:
        gone = {"kind": "tombstone", "sequence": message.sequence, "incarnation": incarnation}
        return IndexWrite(id_of(message), version, orjson.dumps({OWN: gone | {"deleted_at": int(time() * 1000)}}))
    text = message.document.replace("\n", " ").replace("\r", " ").strip()
    if not text.startswith("{") or not is_object(text):
        return None
    members = text[1:].lstrip()
    own = orjson.dumps({"kind": "document", **_shared(message, incarnation)}).decode()
    source = f'{{"{OWN}":{own}{"" if members.startswith("}") else ","}{members}'
    return IndexWrite(id_of(message), version, source.encode())


def refused_entry(message: LandedMessage, reason: str, incarnation: int = 0) -> IndexWrite:
    """The note of a document that the index refuses. No server refuses it: a long key or document is cut."""
    shared = _shared(message, incarnation) | {"key": shortened(message.key, MOST_CHARACTERS)}
    texts = {"reason": reason, "document": message.document or ""}
    own = {"kind": "refused", **shared} | {name: shortened(text, MOST_CHARACTERS) for name, text in texts.items()}
    return IndexWrite(refused_id(message), version_of(incarnation, message.sequence), orjson.dumps({OWN: own}))


def end_of_refused(message: LandedMessage, incarnation: int = 0) -> IndexWrite:
    """Removes the note of a document that the index refused, where the message is newer."""
    return IndexWrite(refused_id(message), version_of(incarnation, message.sequence), None)


def offset_entry(partition: int, offset: int, incarnation: int = 0) -> IndexWrite:
    """The entry of a partition. A process that is late never puts an offset back."""
    own = {"kind": "offset", "partition": partition, "next_offset": offset, "landed_at": int(time() * 1000)}
    version = version_of(incarnation, offset)
    return IndexWrite(f"offset-{partition}", version, orjson.dumps({OWN: own | {"incarnation": incarnation}}))


def document_of(entry: Mapping[str, Any]) -> LandedDocument:
    """The document in an entry, whose numbers are exact."""
    own = entry[OWN]
    document = {name: value for name, value in entry.items() if name != OWN}
    return LandedDocument(own["key"], simplejson.dumps(document, use_decimal=True), int(own["sequence"]))


def refused_of(id_: str, entry: Mapping[str, Any]) -> RefusedDocument:
    """The refused document in a note."""
    own = entry[OWN]
    return RefusedDocument(own["key"], int(own["sequence"]), own["reason"], bytes.fromhex(id_.removeprefix(_REFUSED)))


def stored_version(own: Mapping[str, Any]) -> int:
    """The version of an entry, by its own part."""
    return version_of(incarnation_of(own), int(own["sequence"]))


def incarnation_of(own: Mapping[str, Any]) -> int:
    """The incarnation of an entry; an earlier release counted none."""
    return int(own.get("incarnation", 0))


def id_of(message: LandedMessage) -> str:
    return message.key_hash.hex()


def refused_id(message: LandedMessage) -> str:
    return f"{_REFUSED}{id_of(message)}"


def _shared(message: LandedMessage, incarnation: int) -> dict[str, Any]:
    return {
        "key": message.key,
        "sequence": message.sequence,
        "incarnation": incarnation,
        "product_version": message.version,
        "published_at": message.published_at,
    }
