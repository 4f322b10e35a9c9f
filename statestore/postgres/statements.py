"""The SQL of reads and writes. Each statement takes one array a column, so its text does not depend on the number of rows.

Every comparison of a key names the collation "C", as the columns do: the order of bytes. Each text is made once per table.
"""

from functools import cache
from typing import Final

from psycopg.sql import SQL, Composed, Identifier

from statestore.table import MAX_SLOTS, slot_names

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
