"""All kinds of store. No other room tells them apart."""

from typing import Any

from processor.environment.stores.dynamodb_kind import DYNAMODB, DynamoSettings
from processor.environment.stores.postgres_kind import POSTGRES, PostgresSettings
from processor.environment.stores.store_kind import Effort, StoreKind
from processor.errors import SettingError
from statestore.store import FencingToken, Store

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


def open_store(settings: Any, effort: Effort = Effort.VERB, fence: FencingToken | None = None) -> Store:
    """The table's store, which writes in the right of `fence`."""
    return kind_of(settings.store).open(settings, effort, fence)
