"""A table in Postgres as a target.

A transaction takes an advisory lock of its table. So a process that lost its partitions cannot write between two transactions of
the process that has them now, and a tombstone refuses every older message. A document that Postgres refuses, such as one with
U+0000 in a text, goes to a table of its own with the reason; the others of its batch land. All tables of a landing are in the
schema of its table, whatever else the search_path names: so two landings never share their notes.
"""

import os
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from secrets import token_hex
from threading import Timer
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from processor.job.landing import landing_tables as tables
from processor.job.landing.landed_message import LandedMessage, write_latest
from processor.job.landing.landing_tables import NAME_BYTES, DocumentTable
from processor.job.landing.target import (
    LandedDocument,
    LandedTopic,
    LandingError,
    Moment,
    Opened,
    RefusedDocument,
    TargetAway,
    TopicReplaced,
    is_created_again,
    located,
)
from statestore.postgres.session import LIMITS

ANSWER_SECONDS: Final = 60.0
"""The longest time of a transaction that lands a batch. A frozen server keeps its connections and never answers."""
REFUSALS: Final = (
    psycopg.DataError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.StatementTooComplex,  # JSON that is nested too deep
    psycopg.errors.CardinalityViolation,  # two texts of the same key: each lands alone
)
"""The errors of a statement whose cause is a value of a document."""
CURE: Final = "drop the table"
_AWAY: Final = ("08", "53", "57", "25006", "40", "58", "55P03")
"""The beginnings of the codes after which a later try may succeed."""
_T = TypeVar("_T")


class _Bound(NamedTuple):
    """A row of `statestore_landing`."""

    topic: LandedTopic
    id: str
    origin: str
    incarnation: int
    earlier: bool


class PostgresTarget:
    """A table at `url` (`postgresql://user@host:port/database`; PG* variables fill in missing parts). `indexes`: members of the
    document that get a column and an index, with their types in JSON Schema by this `version` of the product; 0: unknown. Raises
    LandingError for an address that is no URL of Postgres, and for a name that no table can have."""

    def __init__(self, url: str, table: str, indexes: Mapping[str, str], version: int = 0) -> None:
        if not table or len(table.encode()) > NAME_BYTES or "\0" in table:
            raise LandingError(f"--into {table!r} cannot name a table: give 1 to {NAME_BYTES} bytes")
        self._address, self._table, self._indexes = _address(url), table, indexes
        self._version = version if indexes else 0
        self._statements = DocumentTable(table)
        self._connection: psycopg.Connection[Any] | None = None
        self._schema = ""
        self._bound: _Bound | None = None

    @property
    def place(self) -> str:
        known = conninfo_to_dict(self._address)
        host = str(known.get("host") or os.environ.get("PGHOST", "localhost"))
        port = known.get("port") or os.environ.get("PGPORT", "5432")
        name = f"{self._schema}.{self._table}" if self._schema else self._table
        database = known.get("dbname") or os.environ.get("PGDATABASE", "")
        return located(f"table {name} at {host}:{port}/{database}", host)

    def open(self, topic: LandedTopic, *, new_id: bool = False) -> Opened:
        self._bound = self._send(lambda connection: self._open(connection, topic, new_id))
        return Opened(self._bound.id, self._bound.earlier)

    def check(self, topic: LandedTopic) -> str:
        def check(connection: psycopg.Connection[Any]) -> str:
            if not (_exists(connection, tables.OWN_TABLE) and _exists(connection, self._table)):
                raise LandingError(f"{self.place} holds no documents yet: run `statestore land` without --verify first")
            if connection.execute(tables.NEWEST).fetchone() != (True,):
                raise LandingError(f"an earlier release landed in {self.place}: start `statestore land` once")
            bound = self._found(connection)
            if is_created_again(self.place, bound.topic, topic, CURE):
                raise LandingError(
                    f"{self.place} holds an earlier topic {topic.name}, which was created again: start `statestore land`, "
                    "which begins it"
                )
            return bound.id

        return self._send(check)

    def offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        found = self._send(lambda connection: dict(connection.execute(tables.OFFSETS, [self._table]).fetchall()))
        return {partition: found[partition] for partition in partitions if partition in found}

    def land(self, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        return self._send(lambda connection: self._land(connection, messages, ends))

    def show(self) -> str:
        return ""  # readers see each transaction

    def forget_earlier(self) -> int:
        assert self._bound is not None
        incarnation, count = self._bound.incarnation, 0
        while more := self._send(
            lambda connection: connection.execute(self._statements.forget_earlier, [incarnation]).rowcount
        ):
            count += more
        self._send(lambda connection: connection.execute(tables.FORGOTTEN, [self._table, incarnation]))
        return count

    def refused(self) -> int:
        rows = self._send(lambda connection: connection.execute(tables.COUNT_REFUSED, [self._table]).fetchall())
        return int(rows[0][0])

    def moment(self) -> Moment:
        with self._errors():
            connection = self._connected()
            connection.execute("begin isolation level repeatable read read only")
            offsets = dict(connection.execute(tables.OFFSETS, [self._table]).fetchall())
            refused = [RefusedDocument(*row) for row in connection.execute(tables.REFUSED, [self._table])]
        return Moment(offsets, self._documents(connection), refused)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _documents(self, connection: psycopg.Connection[Any]) -> Iterator[LandedDocument]:
        with self._errors(), connection.cursor("documents") as cursor:
            yield from (LandedDocument(*row) for row in cursor.execute(self._statements.documents))
            connection.execute("commit")

    def _open(self, connection: psycopg.Connection[Any], topic: LandedTopic, new_id: bool) -> _Bound:
        connection.execute(tables.LOCK, [""])  # two processes that make the same tables would refuse each other
        # a user without the right to create tables may find them
        if connection.execute(tables.NEWEST).fetchone() != (True,):
            connection.execute(tables.OWN_TABLES)
        if not _exists(connection, self._table):  # a person may have dropped the table: its offsets go, too
            connection.execute(tables.UNBIND, [self._table])
            connection.execute(tables.BIND, [self._table, *topic, token_hex(8)])
            connection.execute(self._statements.create)
        connection.execute(tables.LOCK, [self._table])
        bound = self._found(connection)
        if is_created_again(self.place, bound.topic, topic, CURE):
            for statement in tables.FORGET:
                connection.execute(statement, [self._table])
            connection.execute(tables.REPLACE, [topic.id, self._table])
        ((origin,),) = connection.execute(tables.ORIGIN, [self._table]).fetchall()
        is_copy = bound.origin not in ("", origin)  # such as a restored dump: another landing
        id_ = token_hex(8) if new_id or is_copy or not bound.id else bound.id
        if (bound.id, bound.origin, bound.topic.cluster) != (id_, origin, topic.cluster):
            connection.execute(tables.NAME, [id_, origin, topic.cluster, self._table])
        self._index(connection)
        connection.execute(tables.FORGET_DELETED, [self._table])
        return self._found(connection)

    def _index(self, connection: psycopg.Connection[Any]) -> None:
        """Gives the table the columns that it lacks, and those whose members have another type now."""
        columns = {name: rest for name, *rest in connection.execute(tables.COLUMNS, [self._table])}
        if "incarnation" not in columns:
            connection.execute(self._statements.widen)
        for member, kind in self._indexes.items():
            if member in columns and not columns[member][1]:
                raise LandingError(
                    f"{self.place} has a column {member} that no landing made: drop it, or leave out --index {member}"
                )
            if member not in columns or not tables.is_current(kind, *columns[member]):
                for statement in self._statements.index(member, kind):
                    connection.execute(statement)

    def _found(self, connection: psycopg.Connection[Any]) -> _Bound:
        row = connection.execute(tables.FIND, [self._table]).fetchone()
        if row is None:
            raise LandingError(f"{self.place} is there, and no landing made it: choose another --into")
        return _Bound(LandedTopic(*row[:4]), *row[4:])

    def _land(
        self, connection: psycopg.Connection[Any], messages: Sequence[LandedMessage], ends: Mapping[int, int]
    ) -> Counter[str]:
        connection.execute(tables.LOCK, [self._table])
        bound = self._bound = self._still_bound(connection)
        known = dict(connection.execute(tables.OFFSETS, [self._table]).fetchall())
        new = [message for message in messages if message.offset >= known.get(message.partition, 0)]
        counts = Counter[str]()
        refused = write_latest(new, lambda latest: self._write(connection, bound.incarnation, latest, counts))
        for message, reason in refused:
            key, why, document = map(_storable, (message.key, reason, message.document or ""))
            note = [self._table, message.key_hash, key, message.sequence, why, document]
            connection.execute(tables.NOTE_REFUSED, note)
        partitions = sorted(ends)
        connection.execute(tables.ADVANCE, [self._table, partitions, [ends[partition] for partition in partitions]])
        counts["refused"] = len({message.key for message, _ in refused})
        counts["superseded"] = len(messages) - sum(counts.values())
        counts["later"] = sum(message.version > self._version > 0 for message in messages)
        return counts

    def _still_bound(self, connection: psycopg.Connection[Any]) -> _Bound:
        """What the table is bound to now: another process may have found another topic, or made the table again."""
        bound = self._found(connection)
        if self._bound is None or (bound.topic.id, bound.id) == (self._bound.topic.id, self._bound.id):
            return bound
        raise TopicReplaced(f"another process of the landing has found another topic {bound.topic.name}")

    def _write(
        self,
        connection: psycopg.Connection[Any],
        incarnation: int,
        messages: Sequence[LandedMessage],
        counts: Counter[str],
    ) -> list[tuple[LandedMessage, str]]:
        """Writes one message of each root. Returns those that Postgres refuses, with the reason."""
        hashes = [message.key_hash for message in messages]
        gone = dict(connection.execute(tables.DELETED, [self._table, hashes]).fetchall())
        documents = [m for m in messages if m.document is not None and m.sequence > gone.get(m.key_hash, -1)]
        tombstones = [m for m in messages if m.document is None]
        refused = self._divide(connection, documents, partial(self._upsert, incarnation), counts, "landed")
        self._divide(connection, tombstones, partial(self._delete, incarnation), counts, "deleted")
        deleted = [[m.key_hash for m in tombstones], [m.sequence for m in tombstones]]
        connection.execute(tables.NOTE_DELETED, [self._table, *deleted])
        connection.execute(tables.END_REFUSED, [hashes, [m.sequence for m in messages], self._table])
        return refused

    def _divide(
        self,
        connection: psycopg.Connection[Any],
        messages: Sequence[LandedMessage],
        write: Callable[[psycopg.Connection[Any], Sequence[LandedMessage]], int],
        counts: Counter[str],
        name: str,
    ) -> list[tuple[LandedMessage, str]]:
        """Writes the messages together, or each half alone where Postgres refuses a value. Returns the refused ones."""
        if not messages:
            return []
        try:
            with connection.transaction():
                counts[name] += write(connection, messages)
            return []
        except REFUSALS as error:
            if len(messages) == 1:
                return [(messages[0], " ".join(str(error.diag.message_detail or error).split()))]
        middle = len(messages) // 2
        halves = (messages[:middle], messages[middle:])
        return [refused for half in halves for refused in self._divide(connection, half, write, counts, name)]

    def _upsert(self, incarnation: int, connection: psycopg.Connection[Any], messages: Sequence[LandedMessage]) -> int:
        columns = zip(*((m.key, m.document, m.sequence, m.version, m.published_at) for m in messages), strict=True)
        return connection.execute(self._statements.upsert, [incarnation, *map(list, columns)]).rowcount

    def _delete(self, incarnation: int, connection: psycopg.Connection[Any], messages: Sequence[LandedMessage]) -> int:
        given = [[m.key for m in messages], [m.sequence for m in messages], incarnation]
        return connection.execute(self._statements.delete, given).rowcount

    def _send(self, work: Callable[[psycopg.Connection[Any]], _T]) -> _T:
        """Does the work in one transaction."""
        with self._errors():
            connection = self._connected()
            timer = Timer(ANSWER_SECONDS, _cut, [connection])
            timer.daemon = True
            timer.start()
            try:
                with connection.transaction():
                    return work(connection)
            finally:
                timer.cancel()

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            self._connection = psycopg.connect(self._address, autocommit=True)
            self._connection.execute("set idle_in_transaction_session_timeout = '60s'")
            ((schema,),) = self._connection.execute(tables.SCHEMA, [self._table]).fetchall()
            if schema is None:
                raise LandingError(
                    f"{self.place}: the search_path names no schema that exists: make it, or correct --to"
                )
            self._schema = schema
            self._connection.execute(tables.STAY, [schema])
        return self._connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            self.close()
            code, message = error.sqlstate or "", error.diag.message_primary or " ".join(str(error).split())
            if code.startswith(_AWAY) or (not code and isinstance(error, psycopg.OperationalError)):
                cure = "start that Postgres, or correct --to; nothing is lost"
                raise TargetAway(f"{self.place} takes no documents: {message}", part="target", cure=cure) from error
            raise LandingError(f"{self.place} refuses the landing: {message}") from error


def _exists(connection: psycopg.Connection[Any], table: str) -> bool:
    return connection.execute(tables.EXISTS, [table]).fetchone() == (True,)


def _storable(text: str) -> str:
    """A text that a column of Postgres can hold."""
    return text.replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()


def _cut(connection: psycopg.Connection[Any]) -> None:
    """Cuts a connection whose server does not answer: its request fails."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


def _address(url: str) -> str:
    kind, _, rest = url.partition("://")
    plain = f"postgresql://{rest}"
    try:
        if kind not in ("postgresql", "postgres", "postgresql+psycopg"):
            raise psycopg.ProgrammingError
        given = conninfo_to_dict(plain)
        own = {name: limit for name, limit in LIMITS.items() if name not in given}
        return make_conninfo(plain, **own, client_encoding="utf8", application_name="statestore land")
    except psycopg.Error:  # its message may hold the password
        raise LandingError("--to is no address of Postgres: give postgresql://user@host:port/database") from None
