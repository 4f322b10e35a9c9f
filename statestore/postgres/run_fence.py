"""The fence of a table: the right of the newest run to write. A crash of the server takes the fence of an unlogged table with its
items, so no run goes on over the emptied table."""

from typing import Any

import psycopg

from statestore.errors import FencedWrite, Terminal
from statestore.postgres.statements import Statements
from statestore.store import FencingToken


def take_fence(connection: psycopg.Connection[Any], statements: Statements, table: str, fence: FencingToken) -> None:
    """Gives the table to this run: waits for the transactions of all others. Raises FencedWrite where a newer run has it."""
    with connection.transaction():
        connection.execute(statements.drop_others, [fence.name])
        if connection.execute(statements.take, fence).fetchone() is None:
            raise _fenced(table, fence)


def refusal(connection: psycopg.Connection[Any], statements: Statements, table: str, fence: FencingToken) -> Terminal:
    """Why this run, which holds the table no more, may not write."""
    if connection.execute(statements.fences).fetchone() is not None:
        return _fenced(table, fence)
    return Terminal(
        f"table {table}: it has lost its rows, and the fence of this run: its server crashed, and the table is unlogged. This "
        "run writes nothing more. Build the state again from the topics: `statestore run --adopt` with a new --checkpoint"
    )


def _fenced(table: str, fence: FencingToken) -> FencedWrite:
    return FencedWrite(
        f"table {table}: a newer run than {fence.generation} took over: this run must stop and writes nothing"
    )
