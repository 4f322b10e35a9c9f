"""The releases of the Postgres servers, compared with those that the tests use."""

from collections.abc import Iterator

from processor.doctor.finding import Finding, NothingToCheck, failure, ok, warning
from processor.doctor.surroundings import Surroundings

OLDEST_POSTGRES = 14
TESTED_POSTGRES = (15, 18)
"""The tests use both. A release between them is taken for tested."""


def check_registry_release(around: Surroundings) -> Iterator[Finding]:
    """The release of the registry's server."""
    yield _finding(around.registry.state().release)


def check_store_release(around: Surroundings) -> Iterator[Finding]:
    """The release of the server that holds the table."""
    state = around.table_state
    if state is None or state.release is None:
        raise NothingToCheck(f"there is no table {around.settings.table} yet")
    yield _finding(state.release)


def _finding(release: int) -> Finding:
    oldest, newest = TESTED_POSTGRES
    if release < OLDEST_POSTGRES:
        return failure(f"PostgreSQL {release} is too old", f"use PostgreSQL {OLDEST_POSTGRES} or newer")
    if not oldest <= release <= newest:
        cure = f"use PostgreSQL {oldest} to {newest}, or run the tests on yours: docs/deploy.md#postgresql says how"
        return warning(f"no test of statestore has run on PostgreSQL {release}", cure)
    return ok(f"PostgreSQL {release}")
