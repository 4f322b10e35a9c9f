"""Findings about a Postgres server: its release, and what a crash or a failover leaves of the commits of a job."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from processor.finding import Finding, failure, ok, warning

if TYPE_CHECKING:
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
