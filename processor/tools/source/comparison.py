"""Compares the rows of a table of the source with the stored rows of its entity.

    1. hash every stored row, into the file of digests: the partitions of the table are read as they are
    2. page by page of the source's key: compare the number of rows and the sum of their hashes, which the source computes; only
       for a page that differs the hash of each row. The rows that differ are suspects. Where the order of keys is the source's
       secret (text), each page gives hashes; where a column has no exact text (JSON, floats), its values
    3. look at the suspects on both sides by key. A difference counts if two looks find the same source row and the same stored
       version, and the pipeline passed the position of the source between the two looks

Promises: reads only; pages of `PAGE` rows, at most `rate` rows a second of the source. Does not: see columns of `left_out`.

The repair of a row that differs is a dead letter with the values of the source (`processor.values.dead_letters`).
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from processor.engine.plan.row_image import declared_row
from processor.engine.protocol.erasures import erasure_key
from processor.errors import SettingError
from processor.tools.source.compared_table import ComparedTable, comparable_value, source_value
from processor.values import canonical_json
from processor.values.canonical_json import equal
from processor.values.dead_letters import REPAIR, repair_record
from processor.values.entity import PLACEHOLDER
from processor.values.reasons import is_unrepresentable
from processor.values.record import Rejected, Value
from statestore.items import Row
from statestore.store import Store

if TYPE_CHECKING:
    from processor.tools.source.session import SourceSession


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
    """The hash of a stored row."""

    sk: str
    """The encoded key."""
    place: str
    """Sorts as the source sorts the key (`ComparedTable.place`)."""
    digest: int
    key: Sequence[Any]
    """The values of the key."""


class PageRange(NamedTuple):
    """The places of a page: behind `after`, up to `last`; None: from the beginning, to the end."""

    after: str | None
    last: str | None


class DigestFile:
    """A file of SQLite with the hashes of stored rows, by their keys, and the progress of a comparison with the source.

    It bounds the memory of a comparison, and an interrupted comparison continues with the same file. Rows that changed meanwhile
    become suspects, and the second look reads them again. `path` None: a file that ends with the process. Raises SettingError for
    a file of another kind.
    """

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
        """The encoded keys of the rows that remain."""
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


PAGE: Final = 10_000
LOOKED_AT: Final = 100
"""Suspects of one request."""
LOOKS: Final = 5
"""A row that changed between all these looks stays open."""
RowDifference = Literal["missing", "orphaned", "different", "erased"]
ReportRows = Callable[[str, int], object]
"""Gets a phase, and how many rows of it are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDifference:
    """A row that differs."""

    entity: str
    sk: str
    """The encoded key."""
    kind: RowDifference
    key: Mapping[str, Value]
    """By column."""
    columns: tuple[str, ...] = ()
    """Those that differ."""
    source: Mapping[str, Value] | None = None
    """The source's row; None: it has none."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why the declared types refuse values, by column."""
    seen: Row | None = None
    """The stored row or its delete marker; None: neither is there."""

    def is_like(self, other: "SourceDifference | None") -> bool:
        """Whether neither side changed since the other look."""
        return other is not None and (self.source, self.seen) == (other.source, other.seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedEntity:
    """The result of a comparison."""

    table: ComparedTable
    rows: int
    """Of the source, at the first pass."""
    stored: int
    """Rows of the entity in the table, at the first pass."""
    differences: tuple[SourceDifference, ...]
    moving: tuple[str, ...] = ()
    """The encoded keys of suspects that changed at every look."""

    def of(self, kind: RowDifference) -> list[SourceDifference]:
        """The differences of one kind."""
        return [one for one in self.differences if one.kind == kind]

    @property
    def equal(self) -> bool:
        """Whether there is no difference, and no column that the table lacks: a row that an operator erased is none."""
        return not self.moving and not self.table.gone and len(self.differences) == len(self.of("erased"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceComparison:
    """Compares tables."""

    session: "SourceSession"
    store: Store
    digests: DigestFile
    passed: Callable[[], object]
    """Waits until the pipeline passed the source's position of now."""
    report: ReportRows
    rate: float = 0.0
    """The most rows of the source in a second; 0: no limit."""
    page: int = PAGE

    def scan(self, table: ComparedTable) -> None:
        """Finds the suspects of a table in the snapshot of now, or continues an interrupted scan."""
        step = self.digests.step(table.name)
        if step is None:
            self.digests.forget(table.name)
            self._keep_stored(table)
            step = {"rows": 0, "after": None, "place": None, "done": False}
            self.digests.take_step(table.name, step)
        if not step["done"]:
            self._pages(table, step)

    def result(self, table: ComparedTable) -> ComparedEntity:
        """Looks at the suspects of a scan. Ends the snapshot of the scan."""
        found, moving = self._looks(table, self.digests.suspects(table.name))
        rows = int((self.digests.step(table.name) or {})["rows"])
        return ComparedEntity(
            table=table,
            rows=rows,
            stored=self.digests.count(table.name),
            differences=tuple(found),
            moving=tuple(moving),
        )

    def _keep_stored(self, table: ComparedTable) -> None:
        rows, read = self._stored(table), 0
        while page := list(islice(rows, self.page)):
            self.digests.keep(table.name, page)
            read += len(page)
            self.report(f"{table.name}: the table", read)

    def _stored(self, table: ComparedTable) -> Iterator[StoredDigest]:
        for partition in table.entity.partitions():
            for item in self.store.items(partition):
                row = declared_row(item, table.entity)
                if row.columns is not None:
                    key = [row.columns[name] for name in table.key]
                    yield StoredDigest(row.key.sk, table.place(row.columns), table.stored_digest(row.columns), key)

    def _pages(self, table: ComparedTable, step: Mapping[str, Any]) -> None:
        """Compares pages up to the end of the source's table."""
        began, before = monotonic(), step["rows"]
        while not step["done"]:
            after = table.parameters(step["after"] or (), "a")
            last = self.session.read_rows(table.last_key(bool(after), self.page), after)
            values = table.key_values(last[0]) if last else None
            place = table.place(dict(zip(table.key, values, strict=True))) if values else None
            rows = self._compare_page(table, after, PageRange(step["place"], place))
            step = {"rows": step["rows"] + rows, "after": values, "place": place, "done": values is None}
            if step["done"] and not table.is_ordered:
                self.digests.suspect(table.name, dict.fromkeys(self.digests.untaken(table.name)))
            self.digests.take_step(table.name, step)
            self.report(f"{table.name}: the source", step["rows"])
            if self.rate:
                sleep(max(0.0, (step["rows"] - before) / self.rate - (monotonic() - began)))

    def _compare_page(self, table: ComparedTable, after: Mapping[str, Any], page: PageRange) -> int:
        """Adds the suspects of a page. Returns how many rows of the source it has."""
        if table.is_ordered and table.is_exact:
            ((count, total),) = self.session.read_rows(table.fingerprint(bool(after), self.page), after)
            if (count, int(total or 0)) == self.digests.fingerprint(table.name, page):
                return int(count)
        width = len(table.key)
        keys: dict[str, Sequence[Any] | None] = {}
        digests: dict[str, int] = {}
        rows = self.session.read_rows(table.digests(bool(after), self.page), after)
        for texts in rows:
            sk = table.encoded(texts[:width])
            keys[sk] = table.key_values(texts[:width])
            digests[sk] = int(texts[width]) if table.is_exact else self._digest(table, texts[width:])
        stored = (
            self.digests.between(table.name, page) if table.is_ordered else self.digests.take(table.name, keys.keys())
        )
        wrong = [sk for sk in digests.keys() | stored.keys() if digests.get(sk) != stored.get(sk)]
        self.digests.suspect(table.name, {sk: keys.get(sk) for sk in wrong})
        return len(rows)

    @staticmethod
    def _digest(table: ComparedTable, texts: Sequence[Any]) -> int:
        """The hash of a row whose values the source gave; -1 for one with a value that its declared type refuses."""
        values, refused = read_values(table, texts)
        return -1 if refused else table.stored_digest(values)

    def _looks(
        self, table: ComparedTable, suspects: Mapping[str, Sequence[Any]]
    ) -> tuple[list[SourceDifference], list[str]]:
        """The differences of suspects, and the keys that change at every look."""
        sure: list[SourceDifference] = []
        before: dict[str, SourceDifference] = {}
        open_ = dict(suspects)
        for look in range(LOOKS):
            if not open_:
                break
            if look:
                self.passed()
            found = {one.sk: one for one in self._look(table, open_)}
            sure += [one for sk, one in found.items() if one.is_like(before.get(sk))]
            before = {sk: one for sk, one in found.items() if not one.is_like(before.get(sk))}
            open_ = {sk: open_[sk] for sk in before}
            self.report(f"{table.name}: look {look + 1} at suspects", len(found))
        return sorted(sure, key=lambda one: one.sk), sorted(open_)

    def _look(self, table: ComparedTable, suspects: Mapping[str, Sequence[Any]]) -> Iterator[SourceDifference]:
        """The suspects that differ now, in a new snapshot of the source."""
        self.session.begin_snapshot()
        rest = iter(suspects.items())
        while chunk := dict(islice(rest, LOOKED_AT)):
            yield from self._compare_rows(table, chunk)

    def _compare_rows(self, table: ComparedTable, chunk: Mapping[str, Sequence[Any]]) -> Iterator[SourceDifference]:
        bound: dict[str, Any] = {}
        for n, key in enumerate(chunk.values()):
            bound |= table.parameters(key, f"k{n}")
        width = len(table.key)
        rows = self.session.read_rows(table.rows(len(chunk)), bound)
        source = {table.encoded(texts[:width]): read_values(table, texts[width:]) for texts in rows}
        items = self.store.get([table.entity.key(sk) for sk in chunk])
        stored = {key.sk: declared_row(item, table.entity) for key, item in items.items()}
        erased = self._erased(table, [sk for sk in chunk if sk in source and sk not in stored])
        for sk, key in chunk.items():
            values, refused = source.get(sk, (None, {}))
            found = _difference(table, values, refused, stored.get(sk))
            if found is not None:
                kind, columns = found
                yield SourceDifference(
                    entity=table.name,
                    sk=sk,
                    kind="erased" if sk in erased and kind == "missing" else kind,
                    key=dict(zip(table.key, key, strict=True)),
                    columns=columns,
                    source=values,
                    refused=refused,
                    seen=stored.get(sk),
                )

    def _erased(self, table: ComparedTable, sks: Iterable[str]) -> set[str]:
        """Those that an operator erased: the source still has them."""
        notes = {erasure_key(table.name, sk): sk for sk in sks}
        return {notes[key] for key in self.store.get(notes.keys())} if notes else set()


def read_values(table: ComparedTable, texts: Sequence[Any]) -> tuple[dict[str, Value], dict[str, str]]:
    """The canonical values of a row of the source, and why the declared types refuse others, by column."""
    values: dict[str, Value] = {}
    refused: dict[str, str] = {}
    for (name, form), text in zip(table.forms.items(), texts, strict=True):
        try:
            values[name] = source_value(text, form, table.entity.entity.columns[name])
        except ValueError as error:
            if table.entity.entity.nulls(name) and is_unrepresentable(error):
                values[name] = None
            else:
                refused[name] = str(error)
    return values, refused


def _difference(
    table: ComparedTable, source: Mapping[str, Value] | None, refused: Mapping[str, str], stored: Row | None
) -> tuple[RowDifference, tuple[str, ...]] | None:
    """How a row differs, and in which columns; None where it does not."""
    columns = stored.columns if stored is not None else None
    if source is None:
        return ("orphaned", ()) if columns is not None else None
    if columns is None:
        return "missing", ()
    differ = [
        name
        for name, form in table.forms.items()
        if name in refused or not equal(comparable_value(source[name], form), comparable_value(columns.get(name), form))
    ]
    return ("different", tuple(differ)) if differ else None


def repair_letter(
    found: SourceDifference, table: ComparedTable, why: str, number: int, json_text: Mapping[str, bool]
) -> Rejected | str:
    """The letter that gives a row what the source has; else why there is none. `why`: of the person; `number`: no other letter's.
    `json_text`: JSON columns -> whether the entity's rows hold them as text. Columns that do not compare keep their values."""
    if found.refused:
        column, reason = next(iter(found.refused.items()))
        return f"column {column} of the source: {reason}"
    entity = table.entity.entity
    values: dict[str, Value] | None = None
    if found.source is not None:
        kept = {*(entity.columns.keys() - table.forms.keys()), *(found.seen.more if found.seen else ())}
        values = dict(found.source) | dict.fromkeys(kept, PLACEHOLDER)
        for name, form in table.forms.items():
            if form.json and values[name] is not None and entity.columns[name].name == "json":
                if name not in json_text:
                    return f"column {name} is JSON, and no stored row shows whether the connector sends it as text"
                values[name] = values[name] if json_text[name] else canonical_json.loads(str(values[name]))
            elif entity.columns[name].text and values[name] is not None:
                values[name] = canonical_json.dumps(values[name])
    key = {name: found.key[name] for name in entity.key}
    record = repair_record(entity, key, values, found.seen.version if found.seen else "", number)
    return Rejected(record=record, reason=f"differs from the source: {why}", code=REPAIR, entity=entity.name)
