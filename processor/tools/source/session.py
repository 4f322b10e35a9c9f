"""The doorway to a source database: PostgreSQL by psycopg, MySQL and MariaDB by PyMySQL (the extra `mysql`).

Promises: a session changes nothing, and `read_rows` counts the bytes of the values that it gets. Errors name the flag and hide
the password.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, Final

from sqlalchemy import Connection, create_engine, exc, make_url, text

from processor.errors import SettingError, StatestoreError

DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}
_SECONDS: Final = 10
_SNAPSHOT: Final = (
    "SET time_zone = '+00:00'",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)


@contextmanager
def connected(address: str, flag: str) -> Iterator[Connection]:
    """A connection to a database. `flag`: gave the address. Raises SettingError for a wrong address, StatestoreError for a
    database that does not answer, refuses the user or a statement."""
    url = _url(address, flag)
    shown = url.render_as_string(hide_password=True).replace("+psycopg", "").replace("+pymysql", "")
    try:
        engine = create_engine(url, connect_args={"connect_timeout": _SECONDS})
    except ImportError:
        cure = "pip install 'statestore[mysql]'"
        raise SettingError(f"{flag} {shown}: the driver PyMySQL of MySQL and MariaDB is missing: {cure}") from None
    try:
        with engine.connect() as connection:
            yield connection
    except exc.SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise StatestoreError(f"{flag} {shown}: {cause}; correct the address, the user or its password") from None
    finally:
        engine.dispose()


def _url(address: str, flag: str) -> Any:
    try:
        url = make_url(address)
    except exc.ArgumentError:
        url = None
    if url is None or url.get_backend_name() not in DRIVERS:
        raise SettingError(f"{flag}: write postgresql://USER@HOST/DATABASE, or mysql://USER@HOST/DATABASE")
    if url.get_backend_name() in ("mysql", "mariadb") and not url.database:
        raise SettingError(f"{flag}: the address names no database: write mysql://USER@HOST/DATABASE")
    if url.password is None and isinstance(password := url.query.get("password"), str):
        url = url.difference_update_query(["password"]).set(password=password)
    return url.set(drivername=DRIVERS[url.get_backend_name()])


@dataclass(slots=True)
class SourceSession:
    """A session that only reads."""

    connection: Connection
    mysql: bool
    """MySQL or MariaDB, else PostgreSQL."""
    bytes_read: int = 0
    """Of the values so far."""

    def begin_snapshot(self) -> None:
        """Ends the snapshot before, and begins a new one: repeatable read, read only."""
        self.connection.rollback()
        if self.mysql:
            for statement in _SNAPSHOT:
                self.connection.execute(text(statement))
        else:
            self.connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))

    def read_rows(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
        """The rows of a statement."""
        rows = self.connection.execute(text(statement), dict(parameters or {})).all()
        self.bytes_read += sum(len(str(value).encode()) for row in rows for value in row if value is not None)
        return rows


@contextmanager
def source_session(address: str, flag: str = "--source") -> Iterator[SourceSession]:
    """A session in a snapshot. Errors as of `connected`."""
    with connected(address, flag) as connection:
        session = SourceSession(connection, mysql=connection.dialect.name in ("mysql", "mariadb"))
        session.begin_snapshot()
        yield session


LOOK_SECONDS: Final = 0.5
PATIENCE: Final = 20.0
"""The longest time of each wait, in lags."""
_POSITION: Final = """
    SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END::text
"""
_SLOTS: Final = """
    SELECT coalesce(bool_and(s.confirmed_flush_lsn >= CAST(:at AS pg_lsn)), false),
           coalesce(bool_and(greatest(r.sent_lsn, s.confirmed_flush_lsn) >= CAST(:at AS pg_lsn)), false), count(*)
    FROM pg_replication_slots s LEFT JOIN pg_stat_replication r ON r.pid = s.active_pid
    WHERE s.slot_type = 'logical' AND s.database = current_database() AND s.active
      AND CAST(:slot AS text) IN ('', s.slot_name::text)
"""
_THREADS: Final = """
    SELECT coalesce(min(state LIKE '%sent all binlog%'), 0), count(*) FROM information_schema.processlist
    WHERE command LIKE 'Binlog Dump%'
"""
Positions = Mapping[str, int]
"""`topic/partition` -> offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineMarker:
    """Waits until the pipeline, from the source's log to the table, has passed a marker: the source's position of now.

    1. the source has sent its log up to the marker to the connector: by the replication slots of PostgreSQL, by the threads
       that send the binary log of MySQL and MariaDB
    2. the connector has produced it: the slot's confirmed position says so at once; without that sign, after `lag` seconds more
    3. the job has read each topic of the entities up to the end that it had then

    Does not: prove a position that nobody shows. Then a line says what is missing, and the comparison continues after the
    patience.
    """

    session: "SourceSession"
    ends: Callable[[], Positions]
    """Where the topics of the entities end."""
    read: Callable[[], Positions | None]
    """Where the job reads next; None: no job runs."""
    warn: Callable[[str], object]
    """Gets a line about what nobody shows."""
    slot: str = ""
    """The connector's replication slot; empty: all that are active."""
    lag: float = 10.0
    """In seconds."""

    def wait(self) -> None:
        """Waits for the three steps."""
        if self.read() is None:
            self.warn("no job runs: rows that the source changed since its last run differ, too")
            return
        # 1, 2
        if not (self._mysql_sent() if self.session.mysql else self._postgres_confirmed()):
            self._until(lambda: False, self.lag)
        ends = self.ends()  # 3
        if not self._until(lambda: self._has_read(ends), PATIENCE * self.lag):
            self.warn("the job has not read its topics up to the end of now: differences may be changes on their way")

    def _postgres_confirmed(self) -> bool:
        """Whether the connector has confirmed the position: what it produced. Returns False where the slot shows only that it got
        the log, or nothing."""
        self.session.begin_snapshot()
        ((at,),) = self.session.read_rows(_POSITION)
        given = {"at": at, "slot": self.slot}

        def look() -> tuple[bool, bool, int]:
            self.session.begin_snapshot()
            ((confirmed, sent, slots),) = self.session.read_rows(_SLOTS, given)
            return bool(confirmed), bool(sent), int(slots)

        if not look()[2]:
            self.warn("no logical replication slot of this database is active: nobody shows how far the connector is")
            return False
        if not self._until(lambda: any(look()[:2]), PATIENCE * self.lag):
            self.warn("the connector has not read the log up to the position of now")
        return self._until(lambda: look()[0], self.lag)

    def _mysql_sent(self) -> bool:
        """False: MySQL shows what it sent, and never what the connector produced."""

        def look() -> tuple[bool, int]:
            ((sent, threads),) = self.session.read_rows(_THREADS)
            return bool(sent), int(threads)

        if not look()[1]:
            self.warn("no thread that sends the binary log is in sight (PROCESS privilege): nobody shows the connector")
        elif not self._until(lambda: look()[0], PATIENCE * self.lag):
            self.warn("the connector has not read the binary log up to the position of now")
        return False

    def _has_read(self, ends: Positions) -> bool:
        read = self.read()
        return read is None or all(read.get(place, 0) >= end for place, end in ends.items())

    @staticmethod
    def _until(is_true: Callable[[], bool], seconds: float) -> bool:
        end = monotonic() + seconds
        while not is_true():
            if monotonic() >= end:
                return False
            sleep(min(LOOK_SECONDS, max(0.0, end - monotonic())))
        return True
