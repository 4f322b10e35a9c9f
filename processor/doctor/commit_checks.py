"""What a crash of a Postgres server, or a failover to its standby, leaves of the commits of a job."""

from collections.abc import Callable, Iterator

from processor.doctor.finding import Finding, NothingToCheck, ok, warning
from processor.doctor.surroundings import Surroundings
from statestore.postgres.durability import Durability

FAILOVER = "docs/stores.md#a-failover"
_SETTINGS = "set it to on in the server's configuration, and restart or reload the server"


def check_registry_commits(around: Surroundings) -> Iterator[Finding]:
    """The server of the registry."""
    yield from _check(around, lambda: around.registry_durability)


def check_table_commits(around: Surroundings) -> Iterator[Finding]:
    """The server of a table in Postgres."""
    yield from _check(around, lambda: around.table_durability)


def _check(around: Surroundings, ask: Callable[[], Durability]) -> Iterator[Finding]:
    if around.embedded:
        raise NothingToCheck("the server is embedded")
    found = ask()
    risks = list(_risks(found))
    yield from risks
    if not risks:
        own = "" if found.waits in ("on", "remote_apply") else f", though synchronous_commit is {found.waits} elsewhere"
        yield ok(
            f"fsync and full_page_writes are on, the sessions of the job wait for each commit{own}{_standbys(found)}"
        )


def _risks(found: Durability) -> Iterator[Finding]:
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


def _standbys(found: Durability) -> str:
    return f"; {found.synchronous} of {found.standbys} standbys have it too" if found.standbys else ""
