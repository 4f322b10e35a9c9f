"""A kind of store as one value: all that the verbs must know of the place of a table, and the settings of every kind."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import SplitResult

from processor.environment.programs.program import EmbeddedPart
from processor.finding import DoctorCheck, Finding, NothingToCheck
from statestore.store import FencingToken, Item, Store
from statestore.table import TableState

LARGEST = 2**31 - 1
"""The largest number of a setting, unless the setting has another limit: Spark and Kafka's clients take no larger ones."""


def setting(default: Any, help: str, low: float = 0, high: float = LARGEST, *, former: str = "") -> Any:
    """The field of a setting. `help`: of its flag; `low`, `high`: the limits of a number; `former`: its name in earlier releases,
    which this release takes, too."""
    return field(default=default, metadata={"help": help, "low": low, "high": high, "former": former})


Asked = TypeVar("Asked", covariant=True)
"""The probe of a kind, as its own checks know it."""
Own = TypeVar("Own", bound="TableSettings")
"""The settings that a kind reads."""
StartPart = Callable[..., EmbeddedPart]
"""Starts an embedded part in a directory, with `launch` and `port`. Raises PartError."""


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """The settings that every kind of store may read. A kind adds its own in a subclass."""

    __slots__ = ()

    table: str = setting("statestore", "name of the table; in Postgres it is in the schema state_<table>")
    registry: str = setting(
        "postgresql+psycopg://", "address of the registry's Postgres; PG* variables fill in missing parts"
    )
    registry_schema: str = setting("statestore", "Postgres schema of the registry")
    threads: int = setting(16, "requests that a Python worker sends in parallel", 1, 64)
    log_values: bool = setting(False, "whether log lines and the status show values of rows (true or false)")


class RetryBudget(Enum):
    """How long a store tries a request again: a check does not, a look-up does so for about a second, a verb for seconds, a job
    for minutes."""

    ONCE = "once"
    LOOK_UP = "look-up"
    VERB = "verb"
    JOB = "job"


INDEX_READS = "Query of the indexes"
"""The action of `doctor` that reads each index."""


def no_denial(action: str, error: str) -> None:
    """No special finding for a missing permission."""


class Loader(Protocol):
    """Loads the rows and edges of an empty table in bulk. Does not: load the job's progress, which the table has already."""

    def begin(self) -> None:
        """Makes an empty place for the rows, and drops what an earlier load left there."""

    def add(self, items: Sequence[Item]) -> None:
        """Adds items that no other call has added, all or none. A task calls it."""

    def finish(self) -> None:
        """Makes the added items the table's. Until then nobody sees any of them."""

    def close(self) -> None:
        """Closes the connections."""


class StoreProbe(Protocol):
    """Looks at a table for a person. A kind's own checks know more of the kind's own probe."""

    def state(self) -> TableState | None:
        """The state of the table; None when there is none. Raises StoreError."""


class TableSurroundings(Protocol[Asked]):
    """The surroundings of a set-up, as far as the checks of a kind look at them. `embedded`: the table is on this machine."""

    @property
    def settings(self) -> Any: ...
    @property
    def embedded(self) -> bool: ...
    @property
    def table(self) -> Asked: ...
    @property
    def table_state(self) -> TableState | None: ...
    def now(self) -> float: ...


def existing_table(around: TableSurroundings[Any]) -> TableState:
    """The state of the table. Raises NothingToCheck where there is none."""
    state = around.table_state
    if state is None:
        raise NothingToCheck("there is no table")
    return state


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChecks:
    """The checks of `doctor` that only this kind has."""

    way: Sequence[DoctorCheck] = ()
    """Of the way to the server."""
    before: Sequence[DoctorCheck] = ()
    """Those that the check of the table needs."""
    table: Sequence[DoctorCheck] = ()
    cure: str
    """Of the checks that all kinds have, for an error."""
    denied: Callable[[str, str], Finding | None] = no_denial
    """The finding for a request that the store does not allow, from the action and the error; None where the error says something
    else."""
    untried: str = ""
    """The rights that no check can try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddresses(Generic[Own]):
    """The addresses with which `copy` names a table."""

    schemes: Collection[str]
    form: str
    read: Callable[[SplitResult, dict[str, str], Own], Mapping[str, Any] | None]
    """The settings that an address with one of the schemes gives, from the address, its query, and the settings of the job. None
    for an address of another form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedStore:
    """The store on this machine."""

    title: str
    """For people."""
    part: str
    """The name of its part."""
    start: StartPart | None
    """Starts the part; None where the part is the registry's Postgres, which always runs."""
    settings: Callable[[Any, str, str], Mapping[str, Any]]
    """The settings of a job, from its own, the registry's URL and the endpoint of the part ("" where it does not run)."""
    environment: Mapping[str, str]
    """The variables that its client needs, unless they are set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKind(Generic[Own]):
    """One kind of store."""

    name: str
    """As `--store` takes it, and the registry keeps it."""
    open: Callable[[Own, RetryBudget, FencingToken | None], Store]
    """Makes a store. Imports the client only then, as `probe` does."""
    probe: Callable[[Own], StoreProbe]
    """Looks at a table."""
    where: Callable[[Own], str]
    """The address of the store, for the message of an outage, without user and password."""
    check: Callable[[Own], None]
    """Raises SettingError for settings that do not fit together."""
    needed: tuple[str, ...]
    """The settings that lead to the table, which `--help` shows."""
    passwords: tuple[tuple[str, str], ...] = ()
    """(address, password), both the names of settings: a secret that the address gets before a client uses it."""
    checks: StoreChecks
    addresses: StoreAddresses[Own]
    embedded: EmbeddedStore
    slot: str = "slot "
    """What people call a slot of this store, before its number."""
    expiry: str
    """How an expired row is deleted, and when."""
    load: Callable[[Own, FencingToken], Loader] | None = None
    """Makes a loader of the table; None where there is none yet."""
    remains: tuple[tuple[str, str, str], ...] = ()
    """Where a row remains after an erasure, what, and until when."""
