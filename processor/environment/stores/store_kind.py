"""A kind of store as one value: all that the verbs must know of the place of a table."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import SplitResult

from processor.environment.programs.program import EmbeddedPart
from processor.environment.stores.setting_field import setting
from processor.finding import DoctorCheck, Finding, NothingToCheck
from statestore.store import FencingToken, Store
from statestore.table import TableState

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


class Effort(Enum):
    """How long a store tries a request again: a check does not, a look-up does so for about a second, a verb for seconds, a job
    for minutes."""

    ONCE = "once"
    LOOK_UP = "look-up"
    VERB = "verb"
    JOB = "job"


INDEX_READS = "Query of the indexes"
"""The action of `doctor` that reads each index."""


def not_denied(action: str, error: str) -> None:
    """No finding: the store has no words of its own for a right that is missing."""


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
    """The checks of `doctor` that only this kind has. `way`: to the server; `before`: those that the check of the table needs;
    `table`: of the table. `cure`: of the checks that all kinds have, for an error. `denied`: the finding for a request that the
    store does not allow, None where the error says something else. `untried`: the rights that no check can try."""

    way: tuple[DoctorCheck, ...] = ()
    before: tuple[DoctorCheck, ...] = ()
    table: tuple[DoctorCheck, ...] = ()
    cure: str
    denied: Callable[[str, str], Finding | None] = not_denied
    untried: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddresses(Generic[Own]):
    """The addresses by which `copy` names a table. `read`: the settings that an address with one of these schemes gives, from the
    address, its query, and the settings of the job. None for an address of another form."""

    schemes: Collection[str]
    form: str
    read: Callable[[SplitResult, dict[str, str], Own], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedStore:
    """The store on this machine. `title`: for people; `part`: the name of its part. `start`: starts the part; None where the part
    is the registry's Postgres, which always runs. `settings`: those that a job gets, from its own, the registry's URL and the
    endpoint of the part ("" where it does not run). `environment`: the variables that its client needs, unless they are set."""

    title: str
    part: str
    start: StartPart | None
    settings: Callable[[Any, str, str], Mapping[str, Any]]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKind(Generic[Own]):
    """One kind of store.

    name: as `--store` takes it, and the registry keeps it.
    open: makes a store; `probe` looks at its table. Both import the client only when somebody calls them.
    where: the address of the store, for the message of an outage, without user and password.
    check: raises SettingError for settings that do not fit together.
    needed: the settings that lead to the table, which `--help` shows.
    passwords: (address, password), both the names of settings: a secret that the address gets before somebody uses it.
    remover: who removes an expired row, and when. remains: where a row remains after an erasure, what, and until when.
    """

    name: str
    open: Callable[[Own, Effort, FencingToken | None], Store]
    probe: Callable[[Own], StoreProbe]
    where: Callable[[Own], str]
    check: Callable[[Own], None]
    needed: tuple[str, ...]
    passwords: tuple[tuple[str, str], ...] = ()
    checks: StoreChecks
    addresses: StoreAddresses[Own]
    embedded: EmbeddedStore
    remover: str
    remains: tuple[tuple[str, str, str], ...] = ()
