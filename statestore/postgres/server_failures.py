"""Turns the errors of psycopg into `Transient` or `Terminal`. No message shows a password, or the values of a row."""

import re
from typing import Final

import psycopg

from statestore.errors import NoTable, StoreError, Terminal, Transient

_PASSING: Final = ("08", "40", "53", "57P", "57014", "55P03", "25006", "25P03", "23505", "58")
"""The beginnings of the codes after which another attempt may succeed: a lost connection, a deadlock, a server that starts or
stops, a standby, a lack of memory or connections, a lock that another writer holds, a row that another writer made, an
error of the machine."""
_STARTING: Final = re.compile(
    r"starting up|shutting down|recovery|too many|connection slots|not (yet |currently )?accepting|terminating connection"
)
"""In such a failure: the server starts or stops, or has too much to do."""
_REFUSED: Final = re.compile(r"FATAL:|connection option")
"""In a failure to connect, which has no code: the server refuses the user or the database, or libpq a part of the address."""
_NO_TABLE: Final = ("42P01", "3F000")
_CURES: Final = {
    **dict.fromkeys(_NO_TABLE, "create it, or set the table's name and the store's address"),
    "42501": "grant this user the schema and its tables",
}


def failure(where: str, error: psycopg.Error) -> StoreError:
    """The error that a caller of the store gets. `where`: the table, the request and its key."""
    code = error.sqlstate or ""
    message = error.diag.message_primary or " ".join(str(error).split())
    if code.startswith(_PASSING) or "recovery" in message:
        return Transient(f"{where}: {message}: try again")
    if code:
        cure = _CURES.get(code, "trying again does not help: see the cause")
        kind = NoTable if code in _NO_TABLE else Terminal
        return kind(f"{where}: {message}: {cure}")
    if isinstance(error, psycopg.OperationalError):
        if _REFUSED.search(message) and not _STARTING.search(message):
            return Terminal(f"{where}: {message}: correct the store's address or its user")
        return Transient(f"{where}: {message}: try again; is the store's address right and reachable?")
    return Terminal(f"{where}: {message}: correct the store's address")
