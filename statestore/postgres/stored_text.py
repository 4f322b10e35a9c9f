"""Items and keys as a Postgres table holds them: text.

    item    JSON of its attributes. A text, a boolean, a null and a number of 64 bits are themselves; any other value has
            DynamoDB's JSON, `{"N": "1.5"}`. So no value has two readings, and numbers stay exact.
    key     itself, with U+0000 as U+0001 U+0001 and U+0001 as U+0001 U+0002: Postgres takes no U+0000, and the order of keys
            stays the same.

Promises: a reader gets an item that equals the written one.
"""

from base64 import b64encode
from typing import Any, Final

import orjson

from statestore.attribute_values import decode, encode
from statestore.item_format import check_format
from statestore.keys import Key
from statestore.store import Item

NEXT: Final = "\x01"
"""Behind a stored key: the first text after this key."""

_THEMSELVES: Final = frozenset((str, bool, type(None)))
_INT64: Final = 1 << 63


def item_text(item: Item) -> bytes:
    """The JSON of an item, in UTF-8."""
    if not _THEMSELVES.issuperset(map(type, item.values())):
        item = {name: value if _is_itself(value) else encode(value) for name, value in item.items()}
    return orjson.dumps(item, default=_base64)


def read_item(text: str) -> Item:
    """The item of a JSON text. Raises NewerFormat for an item of a newer release."""
    item: dict[str, Any] = orjson.loads(text)
    if dict in map(type, item.values()):
        item = {name: decode(value) if type(value) is dict else value for name, value in item.items()}
    check_format(item)
    return item


def key_of(item: Item) -> Key:
    """The key of an item."""
    return Key(item["PK"], item["SK"])


def stored_key(key: str) -> str:
    """A key, or a part of it, as its column holds it."""
    if "\x00" in key or "\x01" in key:
        return key.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return key


def _is_itself(value: Any) -> bool:
    return type(value) in _THEMSELVES or (type(value) is int and -_INT64 <= value < _INT64)


def _base64(value: bytes) -> str:
    return b64encode(value).decode()
