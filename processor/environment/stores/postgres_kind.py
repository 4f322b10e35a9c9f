"""A table in Postgres."""

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlencode, urlsplit, urlunsplit

from processor.environment.programs.postgres import NAME
from processor.environment.stores.postgres_checks import CHECKS
from processor.environment.stores.setting_field import setting
from processor.environment.stores.store_kind import Effort, EmbeddedStore, StoreAddresses, StoreKind, TableSettings
from processor.errors import SettingError
from statestore.store import FencingToken
from statestore.table import TableState

if TYPE_CHECKING:
    from statestore.postgres import PostgresStore
    from statestore.postgres.table import Durability


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
        with closing(_open(self._settings, Effort.ONCE, None)) as store:
            return store.state()

    def durability(self) -> "Durability":
        """What a crash, or a failover, leaves of the commits of the server. Raises StoreError."""
        with closing(_open(self._settings, Effort.ONCE, None)) as store:
            return store.durability()


def _open(settings: PostgresSettings, effort: Effort, fence: FencingToken | None) -> "PostgresStore":
    from statestore.postgres import ATTEMPTS, PostgresStore

    return PostgresStore(
        url=settings.store_url or settings.registry,
        table=settings.table,
        fence=fence,
        unlogged=settings.store_unlogged,
        attempts={Effort.ONCE: 1, Effort.LOOK_UP: 5}.get(effort, ATTEMPTS),
        show_keys=settings.log_values,
    )


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
        title=NAME,
        part="postgres",
        start=None,
        settings=lambda settings, registry, endpoint: {"store_url": registry, "store_password": ""},
        environment={},
    ),
    remover="a running job removes it",
    remains=(
        (
            "server of the table",
            "the former row in pages and in the write-ahead log, which no query shows",
            "VACUUM, and the server recycles the log; you remove archived logs",
        ),
    ),
)
