"""The doorway to a table in Postgres: the only room of the state that imports psycopg.

postgres_store.py    the `Store`: one statement for all reads of an index, for all keys, and for all writes of a turn
postgres_session.py  the one connection of a store: opens it, opens it again, and tries requests again
postgres_table.py    makes, checks, alters and describes the table
durability.py        what a crash or a failover leaves of the commits
run_fence.py         the right of the newest run to write
statements.py        the SQL of reads and writes
parameters.py        the parameters of a statement: one array a column
stored_text.py       items and keys as the table holds them
server_failures.py   the errors of psycopg -> `Transient` or `Terminal`
"""

from statestore.postgres.postgres_session import ATTEMPTS
from statestore.postgres.postgres_store import PostgresStore

__all__ = ["ATTEMPTS", "PostgresStore"]
