"""A table in Postgres as a target.

A transaction takes an advisory lock of its table. So a process that lost its partitions cannot write between two transactions of
the process that has them now, and a tombstone refuses every older message. A document that Postgres refuses, such as one with
U+0000 in a text, goes to a table of its own with the reason; the others of its batch land.
"""

import os
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any, Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from processor.landing import landing_tables as tables
from processor.landing.landed_message import LandedMessage, write_latest
from processor.landing.landing_tables import DocumentTable
from processor.landing.target import LandedDocument, LandedTopic, LandingError, Moment, RefusedDocument, TargetAway
from statestore.postgres.postgres_session import LIMITS

ANSWER_SECONDS: Final = 60.0
"""The longest time of a transaction that lands a batch. A frozen server keeps its connections and never answers."""
NAME_BYTES: Final = 63
"""The longest name of a table in Postgres."""
REFUSALS: Final = (psycopg.DataError, psycopg.errors.ProgramLimitExceeded)
"""The errors of a statement whose cause is a value of a document."""
_AWAY: Final = ("08", "53", "57", "25006", "40", "58", "55P03")
"""The beginnings of the codes after which a later try may succeed."""
_T = TypeVar("_T")


class PostgresTarget:
    """A table at `url` (`postgresql://user@host:port/database`; PG* variables fill in missing parts). `indexes`: members of the
    document that get a column and an index, with their types in JSON Schema. Raises LandingError for an address that is no URL of
    Postgres, and for a name that no table can have."""

    def __init__(self, url: str, table: str, indexes: Mapping[str, str]) -> None:
        if not table or len(table.encode()) > NAME_BYTES or "\0" in table:
            raise LandingError(f"--into {table!r} cannot name a table: give 1 to {NAME_BYTES} bytes")
        self._address, self._table, self._indexes = _address(url), table, indexes
        self._statements = DocumentTable(table)
        self._connection: psycopg.Connection[Any] | None = None

    @property
    def place(self) -> str:
        known = conninfo_to_dict(self._address)
        host = known.get("host") or os.environ.get("PGHOST", "localhost")
        port = known.get("port") or os.environ.get("PGPORT", "5432")
        return f"table {self._table} at {host}:{port}/{known.get('dbname') or os.environ.get('PGDATABASE', '')}"

    def open(self, topic: LandedTopic) -> None:
        self._send(lambda connection: self._open(connection, topic))

    def check(self, topic: LandedTopic) -> None:
        def check(connection: psycopg.Connection[Any]) -> None:
            if not (_exists(connection, tables.OWN_TABLE) and _exists(connection, self._table)):
                raise LandingError(f"{self.place} holds no documents yet: run `statestore land` without --verify first")
            self._check(connection, topic)

        self._send(check)

    def offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        found = self._send(lambda connection: dict(connection.execute(tables.OFFSETS, [self._table]).fetchall()))
        return {partition: found[partition] for partition in partitions if partition in found}

    def land(self, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        return self._send(lambda connection: self._land(connection, messages, ends))

    def show(self) -> str:
        return ""  # readers see each transaction

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

    def _open(self, connection: psycopg.Connection[Any], topic: LandedTopic) -> None:
        connection.execute(tables.LOCK, [""])  # two processes that make the same tables would refuse each other
        if not _exists(connection, tables.OWN_TABLE):  # a user without the right to create tables may find them
            connection.execute(tables.OWN_TABLES)
        exists = _exists(connection, self._table)
        if exists:
            self._check(connection, topic)
        else:  # a person may have dropped the table: its offsets go, too
            connection.execute(tables.UNBIND, [self._table])
            connection.execute(tables.BIND, [self._table, *topic])
            connection.execute(self._statements.create)
        columns = {name for (name,) in connection.execute(tables.COLUMNS, [self._table])}
        for member in self._indexes.keys() - columns:
            for statement in self._statements.index(member, self._indexes[member]):
                connection.execute(statement)
        connection.execute(tables.FORGET_DELETED, [self._table])

    def _check(self, connection: psycopg.Connection[Any], topic: LandedTopic) -> None:
        bound = connection.execute(tables.FIND, [self._table]).fetchone()
        if bound is None:
            raise LandingError(f"{self.place} is there, and no landing made it: choose another --into")
        if bound != tuple(topic):
            earlier = bound[:2] == topic[:2]
            held = f"an earlier topic {topic.name}" if earlier else f"topic {bound[1]} of product {bound[0]}"
            cure = "choose another --into, or drop the table to land all documents again"
            raise LandingError(f"{self.place} holds {held}: {cure}")

    def _land(
        self, connection: psycopg.Connection[Any], messages: Sequence[LandedMessage], ends: Mapping[int, int]
    ) -> Counter[str]:
        connection.execute(tables.LOCK, [self._table])
        known = dict(connection.execute(tables.OFFSETS, [self._table]).fetchall())
        new = [message for message in messages if message.offset >= known.get(message.partition, 0)]
        counts = Counter[str]()
        refused = write_latest(new, lambda latest: self._write(connection, latest, counts))
        for message, reason in refused:
            text = (message.document or "").replace("\0", "\N{SYMBOL FOR NULL}")
            connection.execute(tables.NOTE_REFUSED, [self._table, message.key, message.sequence, reason, text])
        partitions = sorted(ends)
        connection.execute(tables.ADVANCE, [self._table, partitions, [ends[partition] for partition in partitions]])
        counts["refused"] = len({message.key for message, _ in refused})
        counts["superseded"] = len(messages) - sum(counts.values())
        return counts

    def _write(
        self, connection: psycopg.Connection[Any], messages: Sequence[LandedMessage], counts: Counter[str]
    ) -> list[tuple[LandedMessage, str]]:
        """Writes one message of each root. Returns those that Postgres refuses, with the reason."""
        hashes = [message.key_hash for message in messages]
        gone = dict(connection.execute(tables.DELETED, [self._table, hashes]).fetchall())
        documents = [m for m in messages if m.document is not None and m.sequence > gone.get(m.key_hash, -1)]
        tombstones = [m for m in messages if m.document is None]
        refused = self._divide(connection, documents, self._upsert, counts, "landed")
        self._divide(connection, tombstones, self._delete, counts, "deleted")
        deleted = [[m.key_hash for m in tombstones], [m.sequence for m in tombstones]]
        connection.execute(tables.NOTE_DELETED, [self._table, *deleted])
        connection.execute(tables.END_REFUSED, [[m.key for m in messages], [m.sequence for m in messages], self._table])
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

    def _upsert(self, connection: psycopg.Connection[Any], messages: Sequence[LandedMessage]) -> int:
        columns = zip(*((m.key, m.document, m.sequence, m.version, m.published_at) for m in messages), strict=True)
        return connection.execute(self._statements.upsert, list(map(list, columns))).rowcount

    def _delete(self, connection: psycopg.Connection[Any], messages: Sequence[LandedMessage]) -> int:
        given = [[m.key for m in messages], [m.sequence for m in messages]]
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
