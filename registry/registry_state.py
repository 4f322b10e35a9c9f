"""The registry as a user of Postgres finds it, for people who check a set-up. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryState:
    """The registry's schema, and what a user may do there. Also reads a schema that this release cannot use.

    now: the clock of Postgres, in seconds since 1970. release: the server's major version. user: the role of the connection.
    tls: whether the connection is encrypted. exists: whether there is a registry. known: whether this release knows its revision;
    current: whether it is this release's own. may_create: whether the user may create a schema. missing: rights of a job that the
    user lacks, such as `INSERT on leases`."""

    now: float
    user: str
    tls: bool
    exists: bool
    release: int
    revision: str = ""
    known: bool = True
    current: bool = True
    may_create: bool = True
    missing: tuple[str, ...] = ()
