"""The doorway to a table in Postgres: the only room of the state that imports psycopg.

store.py       the `Store`: one statement for all reads of an index, for all keys, and for all writes of a turn
load.py        loads the rows of an empty table in bulk
session.py     the one connection of a store: opens it, opens it again, tries requests again, and takes columns as parameters
table.py       makes, checks, alters and describes the table; its fence, and what a crash leaves of the commits
statements.py  the SQL of reads and writes, and items and keys as the table holds them
"""

from statestore.postgres.load import PostgresLoader
from statestore.postgres.session import ATTEMPTS
from statestore.postgres.store import PostgresStore

__all__ = ["ATTEMPTS", "PostgresLoader", "PostgresStore"]
