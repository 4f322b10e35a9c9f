"""The store over Postgres: sends the requests of a turn together, one statement for each kind.

Promises: every failure is a `Transient` or a `Terminal` that names table, key and cause, and says what to do. Indexes show every
acknowledged write. Threads may share a store, and take turns. Does not: hide that the server may have committed writes whose
answer was lost; the retry is then `Refused`, with the items that the writes themselves made. Does not: serve a forked process.

A turn's writes are one transaction, in two trips:

    1. Hold the fence, and lock the rows of all keys in the order of keys. So no two writers wait for each other.
    2. Evaluate the conditions here, as the memory store does. Then insert, update, delete and commit. Another writer may have
       inserted one of the keys meanwhile: then the server refuses the whole transaction, and the store begins again.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

import psycopg

from statestore.items import key_of_item
from statestore.keys import Key, behind_rows, index_row, index_rows
from statestore.limits import RequestNames, check_condition, check_key, check_query, storable
from statestore.postgres import table as definition
from statestore.postgres.session import (
    ATTEMPTS,
    NumberColumn,
    PostgresSession,
    TextColumn,
    byte_column,
    number_column,
    text_column,
)
from statestore.postgres.table import (
    INT64,
    NEXT,
    RANGES,
    Durability,
    Statements,
    item_text,
    read_durability,
    read_item,
    read_shown,
    refusal,
    shown_text,
    stored_key,
    take_fence,
)
from statestore.store import (
    Delete,
    Done,
    FencingToken,
    Item,
    NoTable,
    Page,
    Query,
    Read,
    Refused,
    ReportIndex,
    TableDescription,
    Terminal,
    Write,
    WriteOutcome,
    evaluate_delete,
    evaluate_write,
)
from statestore.table import MAX_SLOTS, ROW, TTL, TableState, TableUsage, range_name, slot_names


class Bounds(NamedTuple):
    """The names that a read asks for, as the table holds them. `last` None: up to the end."""

    value: str
    first: str
    last: str | None


def bounds(read: Read) -> Bounds:
    """The bounds of a read."""
    source, after, _ = read
    if isinstance(source, str):
        return Bounds(stored_key(source), stored_key(after.sk) + NEXT if after else "", None)
    first, last = _range(source)
    behind = stored_key(index_row(after)) + NEXT if after else ""
    return Bounds(stored_key(source.value), max(first, behind), last)


def bound_columns(reads: Sequence[Read]) -> tuple[TextColumn, TextColumn, TextColumn, NumberColumn]:
    """The columns value, first, last and most of these reads."""
    found = [bounds(read) for read in reads]
    values, firsts, lasts = ([one[n] for one in found] for n in range(3))
    return (
        text_column(values),
        text_column(firsts),
        text_column(lasts),
        number_column([read.limit for read in reads]),
    )


def _range(query: Query) -> tuple[str, str | None]:
    if query.row is not None:
        name = stored_key(query.name or index_row(query.row))
        return name, name
    if query.entity is None:
        return "", None
    return stored_key(query.start or index_rows(query.entity)), stored_key(behind_rows(query.entity))


Changes = dict[Key, Item | None]
"""The items after a turn by their keys; None for an item that is gone."""
_SLOTS: Final = slot_names(MAX_SLOTS)


def settable(request: Write | Delete) -> dict[str, Any]:
    """The attributes that a request sets. Raises Terminal for a request that no store takes."""
    if isinstance(request, Write):
        return storable(request)
    check_key(request.key)
    check_condition(request.key, request.when)
    return {}


def evaluate(
    requests: Sequence[Write | Delete], values: Sequence[dict[str, Any]], stored: Mapping[Key, Item]
) -> tuple[list[WriteOutcome], Changes]:
    """The outcomes of the requests, one after the other, and the items that change. `values`: as `settable` returns them."""
    outcomes: list[WriteOutcome] = []
    changes: Changes = {}
    for request, sets in zip(requests, values, strict=True):
        key = request.key
        old = changes[key] if key in changes else stored.get(key)
        outcome: WriteOutcome
        if isinstance(request, Delete):
            outcome, new = evaluate_delete(old, request)
        else:
            outcome, new = evaluate_write(old, request, sets)
        outcomes.append(outcome)
        if new is not old:
            changes[key] = new
    return outcomes, changes


def key_columns(keys: Sequence[Key]) -> tuple[TextColumn, TextColumn]:
    """The columns pk and sk."""
    return text_column([stored_key(pk) for pk, _ in keys]), text_column([stored_key(sk) for _, sk in keys])


def item_columns(items: Sequence[tuple[Key, Item]]) -> list[TextColumn | NumberColumn]:
    """All columns of these rows. A column without any value is empty."""
    columns: list[TextColumn | NumberColumn] = [*key_columns([key for key, _ in items])]
    for name in (*_SLOTS, *RANGES):
        values = [item.get(name) for _, item in items]
        columns.append(text_column([value and stored_key(value) for value in values] if any(values) else []))
    columns.append(number_column([expiry(item) for _, item in items]))
    columns.append(byte_column([shown_text(item) for _, item in items]))
    columns.append(byte_column([item_text(item) for _, item in items]))
    return columns


def expiry(item: Item) -> int | None:
    """The time after which the store may delete an item, where that is a whole number, as DynamoDB wants it."""
    ttl = item.get(TTL)
    return ttl if type(ttl) is int and -INT64 <= ttl < INT64 else None


PAGE: Final = 1_000
"""The items of a page, where the caller reads all, and the most rows of one statement."""
EXPIRE_SECONDS: Final = 60.0
"""So often a store deletes expired rows, with its writes."""
EXPIRE_ROWS: Final = 1_000
_T = TypeVar("_T")
_Connection = psycopg.Connection[Any]


class PostgresStore:
    """A `Store` over one table at `url`, in its schema `state_<table>`. `fence`: the fencing token of a run that has taken the
    table over; None for a store that no run fences. `unlogged`: the form that `create` gives the table. `attempts`: of one
    request. `show_keys`: whether errors name the rows. `clock`: seconds since 1970, for rows that expire. Connects at the first
    request. Raises Terminal for a malformed address or table name."""

    consistent = True
    created: int | None = None

    def __init__(
        self,
        *,
        url: str,
        table: str,
        fence: FencingToken | None = None,
        unlogged: bool = False,
        attempts: int = ATTEMPTS,
        random: Random | None = None,
        show_keys: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.table = definition.table_name(table)
        self._session = PostgresSession(url, attempts=attempts, random=random or Random())
        self.requests = self._session.requests
        self._statements = Statements(table)
        self._names = RequestNames(show_keys)
        self._fence, self._unlogged, self._clock = fence, unlogged, clock
        self._expires_at = 0.0
        self._slots = frozenset[str]()

    @property
    def spent(self) -> Counter[str]:
        """The retries so far, by the name of the request (`retries Query`)."""
        return self._session.spent

    def create(self, slots: int) -> str | None:
        """Creates the table with its indexes, or checks the one that exists, and alters its form."""
        slot_names(slots)
        return self._manage(
            "creating", lambda c: definition.create_table(c, self.table, slots, unlogged=self._unlogged)
        )

    def add_slots(self, slots: int, progress: ReportIndex) -> None:
        """Adds the missing indexes, while other requests go on."""
        slot_names(slots)
        self._manage("adding slots", lambda c: definition.add_slots(c, self.table, slots, progress))

    def describe(self) -> TableDescription | None:
        """Describes the table; None when there is none."""
        return self._manage("describing", lambda c: definition.describe_table(c, self.table))

    def state(self) -> TableState | None:
        """The table as it is now, for an operator who checks a set-up; None when there is none."""
        return self._manage("describing", lambda c: definition.table_state(c, self.table))

    def usage(self) -> TableUsage | None:
        """What the server counts of the table: rows, bytes, and the time of statements; None when there is no table."""
        return self._manage("describing", lambda c: definition.table_usage(c, self.table))

    def durability(self) -> Durability:
        """What a crash of the server, or a failover, leaves of the commits. Needs no table."""
        return self._manage("describing", read_durability)

    def take_over(self, fence: FencingToken) -> None:
        """Writes under this fencing token, and fences all other runs: waits for their transactions, and refuses later ones."""
        self._manage("taking over", lambda c: take_fence(c, self._statements, self.table, fence))
        self._fence = fence

    def close(self) -> None:
        """Closes the connection."""
        self._session.close()

    def read(self, reads: Sequence[Read]) -> list[Page]:
        """The pages of these reads: one statement for each index, and one for partitions."""
        groups: dict[str | None, list[int]] = defaultdict(list)
        for n, (source, _, _) in enumerate(reads):
            if not isinstance(source, str):
                check_query(source)
                self._check_slot(source.slot)
            groups[None if isinstance(source, str) else source.slot].append(n)
        asked = [(slot, ns[i : i + PAGE]) for slot, ns in groups.items() for i in range(0, len(ns), PAGE)]
        found: list[list[Item]] = [[] for _ in reads]

        def send(connection: _Connection) -> None:
            for items in found:
                items.clear()
            with connection.pipeline():
                sent = [
                    (
                        ns,
                        connection.execute(
                            self._statements.read(slot), bound_columns([reads[n] for n in ns]), binary=True
                        ),
                    )
                    for slot, ns in asked
                ]
                for ns, cursor in sent:
                    for number, *texts in cursor:
                        source = reads[ns[number - 1]].source
                        item = (
                            read_item(*texts) if isinstance(source, str) else read_shown(texts[0], source, *texts[1:])
                        )
                        found[ns[number - 1]].append(item)

        if asked:
            self._session.send({"Query": len(asked)}, self._where(self._names.reading(reads[0].source)), send)
        return [
            Page(items, key_of_item(items[-1]) if len(items) == read.limit else None)
            for items, read in zip(found, reads, strict=True)
        ]

    def write_all(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        """Does writes and deletes in one transaction for each thousand of them."""
        outcomes: list[WriteOutcome] = []
        for start in range(0, len(requests), PAGE):
            outcomes += self._write_some(requests[start : start + PAGE])
        return outcomes

    def write(self, write: Write) -> WriteOutcome:
        """Does one conditional update and returns the former item."""
        return self.write_all([write])[0]

    def delete(self, delete: Delete) -> Done | Refused:
        """Does one conditional delete and returns the former item."""
        outcome: Any = self.write_all([delete])[0]
        return outcome  # type: ignore[no-any-return]

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key. Leaves out keys without an item."""
        unique = list(dict.fromkeys(keys))
        for key in unique:
            check_key(key)
        asked = [key_columns(unique[start : start + PAGE]) for start in range(0, len(unique), PAGE)]

        def send(connection: _Connection) -> dict[Key, Item]:
            sent = [connection.execute(self._statements.get, columns, binary=True) for columns in asked]
            return {key_of_item(item): item for item in (read_item(*texts) for texts in chain.from_iterable(sent))}

        if not asked:
            return {}
        return self._session.send(
            {"BatchGetItem": len(asked)}, self._where(f"reading {self._names.row(unique[0])}"), send
        )

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        """The same: no read is late here."""
        return self.get(keys)

    def query(self, query: Query) -> list[Item]:
        """Reads one index."""
        return self.read([Read(query)])[0].items

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of one index, or of one partition of the table, from the end of an earlier page."""
        return self.read([Read(source, after, limit)])[0]

    def partition(self, pk: str) -> list[Item]:
        """Reads all items of one partition of the table, by sort key."""
        return self.read([Read(pk)])[0].items

    def items(self, pk: str) -> Iterator[Item]:
        """The same items, a page at a time."""
        return self._pages(pk)

    def walk(self, source: Query | str, without: str) -> Iterator[Key]:
        """The keys of the items of a query, or of one partition of the table; not those with the attribute `without`."""
        return (key_of_item(item) for item in self._pages(source) if without not in item)

    def scan(self, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of the whole table, in the order of keys."""
        where, values = self._where("scanning"), [*map(stored_key, after or ("", "")), limit]
        rows = self._session.send({"Scan": 1}, where, lambda c: c.execute(self._statements.scan, values).fetchall())
        items = [read_item(*texts) for texts in rows]
        return Page(items, key_of_item(items[-1]) if len(items) == limit else None)

    def _pages(self, source: Query | str) -> Iterator[Item]:
        if not isinstance(source, str) and range_name(source.slot) != ROW:  # its order may know no page behind a key
            yield from self.query(source)
            return
        after: Key | None = None
        while True:
            page = self.page(source, after, PAGE)
            yield from page.items
            if (after := page.after) is None:
                return

    def _write_some(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        """The outcomes of one transaction."""
        values = [settable(request) for request in requests]
        locks = key_columns(sorted({request.key for request in requests}))
        now = self._clock()

        def send(connection: _Connection) -> list[WriteOutcome]:
            with connection.pipeline():
                connection.execute("BEGIN")
                held = self._fence and connection.execute(self._statements.hold, self._fence)
                rows = connection.execute(self._statements.lock, locks, binary=True).fetchall()
                if self._fence and held and held.fetchone() is None:
                    raise refusal(connection, self._statements, self.table, self._fence)
                stored = {key_of_item(item): item for item in (read_item(*texts) for texts in rows)}
                outcomes, changes = evaluate(requests, values, stored)
                self._change(connection, stored, changes)
                expired = self._expire(connection, now)
                connection.execute("COMMIT")
            if expired is not None and expired.rowcount < EXPIRE_ROWS:
                self._expires_at = now + EXPIRE_SECONDS
            return outcomes

        names = {"DeleteItem" if isinstance(request, Delete) else "UpdateItem" for request in requests}
        where = self._where(f"writing {self._names.row(requests[0].key)}")
        return self._session.send(dict.fromkeys(names, 1), where, send)

    def _change(self, connection: _Connection, stored: Mapping[Key, Item], changes: Changes) -> None:
        """Sends the statements that change the rows, in the order of keys."""
        kept = [(key, item) for key, item in sorted(changes.items(), key=itemgetter(0)) if item is not None]
        for statement, rows in (
            (self._statements.insert, [(key, item) for key, item in kept if key not in stored]),
            (self._statements.update, [(key, item) for key, item in kept if key in stored]),
        ):
            if rows:
                connection.execute(statement, item_columns(rows))
        if gone := [key for key, item in changes.items() if item is None and key in stored]:
            connection.execute(self._statements.delete, key_columns(gone))

    def _expire(self, connection: _Connection, now: float) -> psycopg.Cursor[Any] | None:
        """Sends the statement that deletes expired rows, where it is time."""
        if now < self._expires_at:
            return None
        return connection.execute(self._statements.expire, [int(now), EXPIRE_ROWS])

    def _check_slot(self, slot: str) -> None:
        """Raises Terminal for an index that the table does not have. Looks again: another process may have added it."""
        if slot not in self._slots:
            description = self.describe()
            if description is None:
                raise NoTable(f"there is no table {self.table}: create it")
            self._slots = frozenset(slot_names(description.slots)) if description.slots else frozenset()
            if slot not in self._slots:
                raise Terminal(f"no index {slot}: the table has {description.slots} slots; create it with more of them")

    def _manage(self, doing: str, work: Callable[[_Connection], _T]) -> _T:
        return self._session.send({}, self._where(doing), work)

    def _where(self, doing: str) -> str:
        return f"table {self.table}: {doing}"
