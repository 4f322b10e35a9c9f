"""A table in Postgres: its settings, its checks by `doctor`, and its kind of store.

The findings about a server serve the registry, too."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, urlencode, urlsplit, urlunsplit

from processor.environment.programs.servers import POSTGRES_NAME
from processor.environment.stores.kind import (
    EmbeddedStore,
    Loader,
    RetryBudget,
    StoreAddresses,
    StoreChecks,
    StoreKind,
    TableSettings,
    TableSurroundings,
    existing_table,
    setting,
)
from processor.errors import SettingError
from processor.finding import Checks, Finding, NothingToCheck, failure, ok, warning
from statestore.store import FencingToken
from statestore.table import TableState

if TYPE_CHECKING:
    from statestore.postgres import PostgresStore
    from statestore.postgres.table import Durability

OLDEST_POSTGRES = 14
TESTED_POSTGRES = (15, 18)
"""The tests use both. A release between them is taken for tested."""
FAILOVER = "docs/stores.md#a-failover"
_SETTINGS = "set it to on in the server's configuration, and restart or reload the server"


def release_finding(release: int) -> Finding:
    """The finding about the release of a server."""
    oldest, newest = TESTED_POSTGRES
    if release < OLDEST_POSTGRES:
        return failure(f"PostgreSQL {release} is too old", f"use PostgreSQL {OLDEST_POSTGRES} or newer")
    if not oldest <= release <= newest:
        cure = f"use PostgreSQL {oldest} to {newest}, or run the tests on yours: docs/deploy.md#postgresql says how"
        return warning(f"no test of statestore has run on PostgreSQL {release}", cure)
    return ok(f"PostgreSQL {release}")


def commit_findings(found: "Durability") -> Iterator[Finding]:
    """The findings about the commits of a server."""
    risks = list(_risks(found))
    yield from risks
    if not risks:
        own = "" if found.waits in ("on", "remote_apply") else f", though synchronous_commit is {found.waits} elsewhere"
        yield ok(
            f"fsync and full_page_writes are on, the sessions of the job wait for each commit{own}{_standbys(found)}"
        )


def _risks(found: "Durability") -> Iterator[Finding]:
    if not found.fsync:
        yield warning("fsync is off: a crash of the server's machine loses commits, or breaks its files", _SETTINGS)
    if not found.full_page_writes:
        yield warning("full_page_writes is off: a crash of the server's machine breaks pages", _SETTINGS)
    if found.standbys > found.hidden and not found.synchronous:
        behind = "" if found.behind is None else f", and the farthest lacks {found.behind:,} bytes"
        cure = f"name a standby in synchronous_standby_names, or treat a failover as a restore ({FAILOVER})"
        yield warning(f"no commit waits for a standby{behind}: a failover loses the last commits", cure)
    if found.hidden:
        text = f"Postgres hides from this user how far its standbys are: {found.hidden}"
        yield warning(text, "GRANT pg_read_all_stats to the user, then look again")


def _standbys(found: "Durability") -> str:
    return f"; {found.synchronous} of {found.standbys} standbys have it too" if found.standbys else ""


STORE = "correct --store-url, --table, or the role in Postgres"
TABLE = Checks()


class PostgresQuestions(Protocol):
    """The table's server, as far as the checks look at it."""

    def durability(self) -> "Durability": ...


@TABLE.check("store server", "the server's release", cure=STORE, needs=("table",))
def check_release(around: TableSurroundings[PostgresQuestions]) -> Iterator[Finding]:
    """The release of the server that holds the table."""
    state = around.table_state
    if state is None or state.release is None:
        raise NothingToCheck(f"there is no table {around.settings.table} yet")
    yield release_finding(state.release)


@TABLE.check("table commits", "what a crash or a failover leaves", cure=STORE, needs=("table",))
def check_commits(around: TableSurroundings[PostgresQuestions]) -> Iterator[Finding]:
    """The server of a table in Postgres."""
    if around.embedded:
        raise NothingToCheck("the server is embedded")
    yield from commit_findings(around.table.durability())


@TABLE.check("log", "what a crash leaves", cure=STORE, needs=("table",))
def check_log(around: TableSurroundings[PostgresQuestions]) -> Iterator[Finding]:
    """Whether the rows of a table in Postgres outlast a crash of its server, and whether the setting says the same."""
    logged, set_unlogged = existing_table(around).logged, around.settings.store_unlogged
    form = "logged: its rows outlast a crash of the server" if logged else "unlogged: a crash of the server empties it"
    if logged == set_unlogged:
        cure = "the next start of the job alters it, if its user owns the table; or correct --store-unlogged"
        yield warning(f"the table is {form}; the setting store_unlogged is {str(set_unlogged).lower()}", cure)
    elif logged:
        yield ok(f"the table is {form}")
    else:
        yield warning(f"the table is {form}", "--store-unlogged false, unless the topics can build the state again")


CHECKS = StoreChecks(table=TABLE, cure=STORE)


@dataclass(frozen=True, kw_only=True)
class PostgresSettings(TableSettings):
    """The settings of a table in Postgres."""

    __slots__ = ()

    store_url: str = setting("", "address of the table's Postgres (else the registry's)")
    store_password: str = setting("", "reference to the password of the store's user: env:, file: or secret:")
    store_unlogged: bool = setting(
        False, "in Postgres: write no log for the table, which is faster; a crash of the server then empties it"
    )


class PostgresProbe:
    """Looks at the table's server. Each question has a connection of its own, and tries only once."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings

    def state(self) -> TableState | None:
        """The state of the table; None when there is none. Raises StoreError."""
        with closing(_open(self._settings, RetryBudget.ONCE, None)) as store:
            return store.state()

    def durability(self) -> "Durability":
        """What a crash, or a failover, leaves of the commits of the server. Raises StoreError."""
        with closing(_open(self._settings, RetryBudget.ONCE, None)) as store:
            return store.durability()


def _open(settings: PostgresSettings, budget: RetryBudget, fence: FencingToken | None) -> "PostgresStore":
    from statestore.postgres import ATTEMPTS, PostgresStore

    return PostgresStore(
        url=settings.store_url or settings.registry,
        table=settings.table,
        fence=fence,
        unlogged=settings.store_unlogged,
        attempts={RetryBudget.ONCE: 1, RetryBudget.LOOK_UP: 5}.get(budget, ATTEMPTS),
        show_keys=settings.log_values,
    )


def _load(settings: PostgresSettings, fence: FencingToken) -> Loader:
    from statestore.postgres import PostgresLoader

    return PostgresLoader(url=settings.store_url or settings.registry, table=settings.table, fence=fence)


def _where(settings: PostgresSettings) -> str:
    host, database = urlsplit(str.__str__(settings.store_url or settings.registry)), os.environ.get("PGDATABASE", "")
    address = host.netloc.rpartition("@")[2] or os.environ.get("PGHOST") or "localhost"
    return f"{address}{host.path if host.path.strip('/') else f'/{database}'}"


def _check(settings: PostgresSettings) -> None:
    if settings.registry_schema == f"state_{settings.table}":
        raise SettingError(f"registry_schema: {settings.registry_schema} is the schema of the table; give another one")


def _read_address(url: SplitResult, query: dict[str, str], settings: PostgresSettings) -> Mapping[str, Any]:
    table = query.pop("table", settings.table)
    return {"table": table, "store_url": urlunsplit(url._replace(query=urlencode(query)))}


POSTGRES: StoreKind[PostgresSettings] = StoreKind(
    name="postgres",
    open=_open,
    probe=PostgresProbe,
    where=_where,
    check=_check,
    needed=("store_url",),
    passwords=(("store_url", "store_password"),),
    checks=CHECKS,
    addresses=StoreAddresses(
        schemes=("postgresql", "postgres", "postgresql+psycopg"),
        form="postgresql://USER@HOST:PORT/DATABASE?table=TABLE",
        read=_read_address,
    ),
    embedded=EmbeddedStore(
        title=POSTGRES_NAME,
        part="postgres",
        start=None,
        settings=lambda settings, registry, endpoint: {"store_url": registry, "store_password": ""},
        environment={},
    ),
    expiry="a running job removes it",
    load=_load,
    remains=(
        (
            "server of the table",
            "the former row in pages and in the write-ahead log, which no query shows",
            "VACUUM, and the server recycles the log; you remove archived logs",
        ),
    ),
)
