"""Items and keys as a Postgres table holds them: text.

    shown   JSON of the attributes that indexes show of an item, for an item in an index
    item    JSON of its other attributes. A text, a boolean, a null and a number of 64 bits are themselves; any other value has
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
from statestore.keys import Key, index_row
from statestore.store import Item, Query
from statestore.table import ROW, SHOWN

NEXT: Final = "\x01"
"""Behind a stored key: the first text after this key."""

_THEMSELVES: Final = frozenset((str, bool, type(None)))
_INT64: Final = 1 << 63
_SHOWN: Final = ("PK", "SK", *SHOWN)


def shown_text(item: Item) -> bytes | None:
    """The JSON of what indexes show of an item, in UTF-8; None for an item in no index."""
    return _text({name: item[name] for name in _SHOWN if name in item}) if ROW in item else None


def item_text(item: Item) -> bytes:
    """The JSON of the rest of an item, in UTF-8."""
    return _text({name: value for name, value in item.items() if name not in _SHOWN} if ROW in item else item)


def _text(item: Item) -> bytes:
    if not _THEMSELVES.issuperset(map(type, item.values())):
        item = {name: value if _is_itself(value) else encode(value) for name, value in item.items()}
    return orjson.dumps(item, default=_base64)


def read_item(text: str, shown: str | None) -> Item:
    """The item of its texts. Raises NewerFormat for an item of a newer release."""
    return _item(orjson.loads(text) if shown is None else orjson.loads(shown) | orjson.loads(text))


def read_shown(text: str, query: Query) -> Item:
    """What an index shows of an item, for a query that found it. Raises NewerFormat for an item of a newer release."""
    item = _item(orjson.loads(text))
    return {**item, query.slot: query.value, ROW: index_row(key_of(item))}


def _item(item: dict[str, Any]) -> Item:
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
