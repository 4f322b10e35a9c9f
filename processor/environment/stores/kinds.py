"""All kinds of store, and the names of their tables in the registry. No other room tells the kinds apart."""

from typing import Any

from processor.environment.stores.dynamodb import DYNAMODB, DynamoSettings
from processor.environment.stores.kind import Loader, RetryBudget, StoreKind
from processor.environment.stores.postgres import POSTGRES, PostgresSettings
from processor.errors import SettingError
from statestore.store import FencingToken, Store

FIRST = "dynamodb"
"""The kind whose tables have no prefix: the registry knew only this kind when it got the column."""


def place_of(kind: str, table: str) -> str:
    """The name of a table in the registry."""
    return table if kind == FIRST else f"{kind}:{table}"


def kind_and_table(place: str) -> tuple[str, str]:
    """The kind and the table that the registry names."""
    kind, _, table = place.rpartition(":")
    return kind or FIRST, table


KINDS: dict[str, StoreKind[Any]] = {kind.name: kind for kind in (POSTGRES, DYNAMODB)}
"""By name. The first is the default with embedded parts."""


class StoreSettings(PostgresSettings, DynamoSettings):
    """The settings of all kinds of store."""

    __slots__ = ()


def kind_of(name: str) -> StoreKind[Any]:
    """The kind with this name. Raises SettingError where there is none."""
    if name not in KINDS:
        raise SettingError(f"store: there is no {name!r}; use {names()}")
    return KINDS[name]


def names() -> str:
    """The names of all kinds, for a message."""
    return " or ".join(sorted(KINDS))


def embedded_kind() -> StoreKind[Any]:
    """The kind of a job on embedded parts that names none."""
    return next(iter(KINDS.values()))


def open_store(settings: Any, budget: RetryBudget = RetryBudget.VERB, fence: FencingToken | None = None) -> Store:
    """The table's store, which writes under this fencing token."""
    return kind_of(settings.store).open(settings, budget, fence)


def open_loader(settings: Any, fence: FencingToken) -> Loader:
    """The loader of the table, for the run with this fencing token. Raises SettingError for a kind without one; the errors of the
    kind for wrong settings."""
    load = kind_of(settings.store).load
    if load is None:
        raise SettingError(
            f"store: `load` cannot fill a table in {settings.store}: `statestore run` writes the same rows"
        )
    return load(settings, fence)
