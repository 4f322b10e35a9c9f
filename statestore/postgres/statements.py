"""The SQL of reads and writes. Each statement takes one array a column, so its text does not depend on the number of rows.

Every comparison of a key names the collation "C", as the columns do: the order of bytes. Each text is made once per table.

Items and keys are text in the table. A reader gets an item that equals the written one.

    shown   JSON of the attributes that indexes show of an item, for an item in an index
    item    JSON of its other attributes. A text, a boolean, a null and a number of 64 bits are themselves; any other value has
            DynamoDB's JSON, `{"N": "1.5"}`. So no value has two readings, and numbers stay exact.
    key     itself, with U+0000 as U+0001 U+0001 and U+0001 as U+0001 U+0002: Postgres takes no U+0000, and the order of keys
            stays the same.
"""

from base64 import b64encode
from functools import cache
from typing import Any, Final

import orjson
from psycopg.sql import SQL, Composed, Identifier

from statestore.items import check_format, key_of_item
from statestore.keys import index_row
from statestore.store import Item, Query
from statestore.table import MAX_SLOTS, ROW, SHOWN, slot_names
from statestore.values import decode, encode

ITEMS: Final = "items"
FENCES: Final = "fences"
SLOTS: Final = [name.lower() for name in slot_names(MAX_SLOTS)]
"""The columns of all slots. A table has all of them from the start; a slot is there when its index is."""
_KEY: Final = {"pk": "text", "sk": "text"}
_OTHERS: Final = {**dict.fromkeys(SLOTS, "text"), "gsi_sk": "text", "ttl": "bigint", "shown": "text", "item": "text"}
_SAME_KEY: Final = SQL('t.pk = r.pk COLLATE "C" AND t.sk = r.sk COLLATE "C"')


def schema_name(table: str) -> str:
    """The schema of a table's rows and fences."""
    return f"state_{table}"


class Statements:
    """The statements over one table."""

    def __init__(self, table: str) -> None:
        self._items = Identifier(schema_name(table), ITEMS)
        fences = Identifier(schema_name(table), FENCES)
        keys, rows = _rows(_KEY), _rows(_KEY | _OTHERS)
        get = SQL("SELECT t.item, t.shown FROM {} JOIN {} AS t ON {}").format(keys, self._items, _SAME_KEY)
        changes = SQL(", ").join(SQL("{0} = r.{0}").format(Identifier(name)) for name in _OTHERS)
        self.get = get.as_bytes()
        self.lock = SQL("{} ORDER BY t.pk, t.sk FOR UPDATE OF t").format(get).as_bytes()
        self.insert = (
            SQL("INSERT INTO {} ({}) SELECT * FROM {}").format(self._items, _names(_KEY | _OTHERS), rows).as_bytes()
        )
        self.update = (
            SQL("UPDATE {} AS t SET {} FROM {} WHERE {}").format(self._items, changes, rows, _SAME_KEY).as_bytes()
        )
        self.delete = SQL("DELETE FROM {} AS t USING {} WHERE {}").format(self._items, keys, _SAME_KEY).as_bytes()
        self.expire = (
            SQL(
                "DELETE FROM {0} WHERE ctid = ANY (ARRAY("
                "SELECT ctid FROM {0} WHERE ttl <= %s ORDER BY ttl LIMIT %s FOR UPDATE SKIP LOCKED))"
            )
            .format(self._items)
            .as_bytes()
        )
        self.hold = SQL("SELECT 1 FROM {} WHERE name = %s AND generation = %s FOR SHARE").format(fences).as_bytes()
        self.take = (
            SQL(
                "INSERT INTO {} AS held (name, generation) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE "
                "SET generation = excluded.generation WHERE held.generation <= excluded.generation RETURNING 1"
            )
            .format(fences)
            .as_bytes()
        )
        self.fences = SQL("SELECT 1 FROM {} LIMIT 1").format(fences).as_bytes()
        self.drop_others = SQL("DELETE FROM {} WHERE name <> %s").format(fences).as_bytes()
        self.scan = (
            SQL('SELECT item, shown FROM {} WHERE (pk, sk) > (%s COLLATE "C", %s COLLATE "C") ORDER BY pk, sk LIMIT %s')
            .format(self._items)
            .as_bytes()
        )
        self.read = cache(self._read)

    def _read(self, slot: str | None) -> bytes:
        """The reads of one index, or of partitions of the table: a row for each item, with the number of its read, in order. An
        index shows only a part of an item, so the server leaves a wide rest alone."""
        value, name, texts = ("pk", "sk", ["item", "shown"]) if slot is None else (slot.lower(), "gsi_sk", ["shown"])
        statement = SQL(
            "SELECT q.n, {texts} FROM unnest(%b::text[], %b::text[], %b::text[], %b::bigint[]) WITH ORDINALITY "
            "AS q (value, first, last, most, n) CROSS JOIN LATERAL (SELECT {name}, {texts} FROM {items} "
            'WHERE {value} = q.value COLLATE "C" AND {name} >= q.first COLLATE "C" '
            'AND {name} <= coalesce(q.last, repeat(chr(1114111), 257)) COLLATE "C" '
            "ORDER BY {name} LIMIT q.most) AS t ORDER BY q.n, t.{name}"
        )
        texts_ = SQL(", ").join(map(Identifier, texts))
        return statement.format(
            items=self._items, value=Identifier(value), name=Identifier(name), texts=texts_
        ).as_bytes()


def _names(columns: dict[str, str]) -> Composed:
    return SQL(", ").join(map(Identifier, columns))


def _rows(columns: dict[str, str]) -> Composed:
    """The rows of a statement, from one array a column. Postgres fills a shorter array up with nulls."""
    arrays = SQL(", ").join(SQL("%b::{}[]").format(SQL(kind)) for kind in columns.values())
    return SQL("unnest({}) AS r ({})").format(arrays, _names(columns))


NEXT: Final = "\x01"
"""Behind a stored key: the first text after this key."""

_THEMSELVES: Final = frozenset((str, bool, type(None)))
INT64: Final = 1 << 63
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
    return {**item, query.slot: query.value, ROW: index_row(key_of_item(item))}


def _item(item: dict[str, Any]) -> Item:
    if dict in map(type, item.values()):
        item = {name: decode(value) if type(value) is dict else value for name, value in item.items()}
    check_format(item)
    return item


def stored_key(key: str) -> str:
    """A key, or a part of it, as its column holds it."""
    if "\x00" in key or "\x01" in key:
        return key.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return key


def _is_itself(value: Any) -> bool:
    return type(value) in _THEMSELVES or (type(value) is int and -INT64 <= value < INT64)


def _base64(value: bytes) -> str:
    return b64encode(value).decode()
