"""The key of a published message: of its root row, and the root of a key."""

from collections.abc import Mapping

from processor.language.product.document import read_root_key
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.record import Value
from statestore import keys


def root_message_key(root: Entity, columns: Mapping[str, Value]) -> str:
    """The key of the messages of a root row with these columns."""
    return canonical_json.dumps_flat({name: columns[name] for name in root.key})


def root_of(root: Entity, key: str) -> str | None:
    """The encoded root key of a message's key; None if it is not a key of the root."""
    try:
        if not isinstance(canonical_json.loads(key), dict):
            return None
        return keys.encode(read_root_key(root, key))
    except ValueError:
        return None
