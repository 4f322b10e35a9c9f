"""What a crash of the server, or a failover to its standby, leaves of the commits.

The sessions of store and registry wait for each commit themselves, whatever `synchronous_commit` the database has. They cannot
make up for the other settings, and not for a standby that takes commits later.
"""

from typing import Any, NamedTuple

import psycopg

_ASK = """
    SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
      (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
      (SELECT count(*) FROM pg_stat_replication), (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL),
      (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
      (SELECT max(CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn) END)::bigint
       FROM pg_stat_replication)
"""


class Durability(NamedTuple):
    """The settings of a server, and its standbys. `waits`: the database's own `synchronous_commit`; `hidden`: the standbys of
    which this user may not see more; `synchronous`: those for which each commit waits; `behind`: the bytes that the farthest
    standby lacks, None where nobody says."""

    fsync: bool
    full_page_writes: bool
    waits: str
    standbys: int = 0
    hidden: int = 0
    synchronous: int = 0
    behind: int | None = None


def read_durability(connection: psycopg.Connection[Any]) -> Durability:
    """Asks the server. Raises the errors of psycopg."""
    (found,) = connection.execute(_ASK).fetchall()
    return Durability(*found)
