"""The doorway to a source database: PostgreSQL by psycopg, MySQL and MariaDB by PyMySQL (the extra `mysql`).

Promises: a session changes nothing, and `read_rows` counts the bytes of the values that it gets. Errors name the flag and hide
the password.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
    """A session that only reads. `mysql`: MySQL or MariaDB, else PostgreSQL. `bytes_read`: of the values so far."""

    connection: Connection
    mysql: bool
    bytes_read: int = 0

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
