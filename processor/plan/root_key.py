"""The root of a published message, by the message's key."""

from processor.product.document_key import read_root_key
from processor.records import canonical_json
from processor.records.entity import Entity
from statestore import keys


def root_of(root: Entity, key: str) -> str | None:
    """The encoded root key of a message's key; None if it is not a key of the root."""
    try:
        if not isinstance(canonical_json.loads(key), dict):
            return None
        return keys.encode(read_root_key(root, key))
    except ValueError:
        return None
