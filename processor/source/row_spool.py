"""A file of SQLite with the hashes of stored rows, by their keys, and how far a comparison with the source is.

It bounds the memory of a comparison, and a comparison that broke off goes on with the same file. Rows that changed meanwhile
become suspects, and the second look reads them again.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from processor.errors import SettingError

_TABLES: Final = """
    CREATE TABLE IF NOT EXISTS stored (entity, sk, place, digest, key, seen DEFAULT 0, PRIMARY KEY (entity, sk)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS by_place ON stored (entity, place, digest);
    CREATE TABLE IF NOT EXISTS suspects (entity, sk, key, PRIMARY KEY (entity, sk)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS steps (entity PRIMARY KEY, step) WITHOUT ROWID;
"""
_CHUNK: Final = 500
_END: Final = "~"
"""Sorts behind every place."""


class StoredDigest(NamedTuple):
    """A stored row: its encoded key, its place in the order of the source's keys, its hash, and the values of its key."""

    sk: str
    place: str
    digest: int
    key: Sequence[Any]


class PageRange(NamedTuple):
    """The places of a page: behind `after`, up to `last`; None: from the beginning, to the end."""

    after: str | None
    last: str | None


class RowSpool:
    """The file at `path`; None: a file that goes with the process. Raises SettingError for a file that is none of these."""

    def __init__(self, path: Path | None) -> None:
        self._file = sqlite3.connect(path or "", isolation_level=None)
        try:
            self._file.executescript(f"PRAGMA synchronous = OFF; {_TABLES}")
        except sqlite3.DatabaseError as error:
            raise SettingError(
                f"--resume {path}: {error}; give the file of an earlier comparison, or a new one"
            ) from None

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def step(self, entity: str) -> Mapping[str, Any] | None:
        """How far the comparison of an entity is; None before its first step."""
        row = self._file.execute("SELECT step FROM steps WHERE entity = ?", (entity,)).fetchone()
        return json.loads(row[0]) if row else None

    def take_step(self, entity: str, step: Mapping[str, Any]) -> None:
        """Remembers how far the comparison is."""
        self._file.execute("INSERT OR REPLACE INTO steps VALUES (?, ?)", (entity, json.dumps(step, default=str)))

    def forget(self, entity: str) -> None:
        """Forgets all of an entity."""
        for table in ("stored", "suspects", "steps"):
            self._file.execute(f"DELETE FROM {table} WHERE entity = ?", (entity,))

    def keep(self, entity: str, rows: Iterable[StoredDigest]) -> None:
        """Keeps a page of stored rows."""
        values = ((entity, row.sk, row.place, row.digest, json.dumps(row.key, default=str)) for row in rows)
        self._file.execute("BEGIN")
        self._file.executemany(
            "INSERT OR REPLACE INTO stored (entity, sk, place, digest, key) VALUES (?, ?, ?, ?, ?)", values
        )
        self._file.execute("COMMIT")

    def fingerprint(self, entity: str, page: PageRange) -> tuple[int, int]:
        """How many rows a range has, and the sum of their hashes."""
        row = self._file.execute(f"SELECT count(*), sum(digest) {_WITHIN}", _within(entity, page)).fetchone()
        return row[0], row[1] or 0

    def between(self, entity: str, page: PageRange) -> dict[str, int]:
        """The hashes of a range, by encoded keys."""
        return dict(self._file.execute(f"SELECT sk, digest {_WITHIN}", _within(entity, page)).fetchall())

    def take(self, entity: str, sks: Collection[str]) -> dict[str, int]:
        """The hashes of these rows, which `untaken` leaves out from now on."""
        found: dict[str, int] = {}
        wanted = list(sks)
        for first in range(0, len(wanted), _CHUNK):
            chunk = wanted[first : first + _CHUNK]
            marks = ", ".join("?" * len(chunk))
            where = f"WHERE entity = ? AND sk IN ({marks})"
            found |= dict(self._file.execute(f"SELECT sk, digest FROM stored {where}", (entity, *chunk)).fetchall())
            self._file.execute(f"UPDATE stored SET seen = 1 {where}", (entity, *chunk))
        return found

    def untaken(self, entity: str) -> list[str]:
        """The encoded keys of the rows that nobody took."""
        return [sk for (sk,) in self._file.execute("SELECT sk FROM stored WHERE entity = ? AND NOT seen", (entity,))]

    def count(self, entity: str) -> int:
        """How many rows are stored."""
        found = self._file.execute("SELECT count(*) FROM stored WHERE entity = ?", (entity,)).fetchone()
        return int(found[0])

    def suspect(self, entity: str, keys: Mapping[str, Sequence[Any] | None]) -> None:
        """Adds suspects: encoded key -> values of the key, None for those of the stored row."""
        for sk, key in keys.items():
            own = "SELECT ?, ?, ?" if key is not None else "SELECT ?, ?, key FROM stored WHERE entity = ? AND sk = ?"
            more = (json.dumps(key, default=str),) if key is not None else (entity, sk)
            self._file.execute(f"INSERT OR REPLACE INTO suspects {own}", (entity, sk, *more))

    def suspects(self, entity: str) -> dict[str, list[Any]]:
        """The suspects: encoded key -> values of the key."""
        rows = self._file.execute("SELECT sk, key FROM suspects WHERE entity = ? ORDER BY sk", (entity,))
        return {sk: json.loads(key) for sk, key in rows}


_WITHIN: Final = "FROM stored WHERE entity = ? AND place > ? AND place <= ?"


def _within(entity: str, page: PageRange) -> tuple[str, str, str]:
    return entity, page.after or "", page.last or _END
