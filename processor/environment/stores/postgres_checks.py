"""The checks of a table in Postgres."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from processor.environment.stores.server_findings import commit_findings, release_finding
from processor.environment.stores.store_kind import StoreChecks, TableSurroundings, existing_table
from processor.finding import DoctorCheck, Finding, NothingToCheck, ok, warning

if TYPE_CHECKING:
    from statestore.postgres.table import Durability

STORE = "correct --store-url, --table, or the role in Postgres"


class PostgresQuestions(Protocol):
    """The table's server, as far as the checks look at it."""

    def durability(self) -> "Durability": ...


def check_release(around: TableSurroundings[PostgresQuestions]) -> Iterator[Finding]:
    """The release of the server that holds the table."""
    state = around.table_state
    if state is None or state.release is None:
        raise NothingToCheck(f"there is no table {around.settings.table} yet")
    yield release_finding(state.release)


def check_commits(around: TableSurroundings[PostgresQuestions]) -> Iterator[Finding]:
    """The server of a table in Postgres."""
    if around.embedded:
        raise NothingToCheck("the server is embedded")
    yield from commit_findings(around.table.durability())


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


CHECKS = StoreChecks(
    table=(
        DoctorCheck(
            name="store server", looks_at="the server's release", look=check_release, cure=STORE, needs=("table",)
        ),
        DoctorCheck(
            name="table commits",
            looks_at="what a crash or a failover leaves",
            look=check_commits,
            cure=STORE,
            needs=("table",),
        ),
        DoctorCheck(name="log", looks_at="what a crash leaves", look=check_log, cure=STORE, needs=("table",)),
    ),
    cure=STORE,
)
