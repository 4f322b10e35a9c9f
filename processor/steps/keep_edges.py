"""Keeps the edges of a row around its write (rule 12).

    1. Before each write of the row, every edge that its new version names is put, where it is older: not only those that are
       new, for a remover of an earlier version may still be under way.
    2. The row is written, by the step that is handed in.
    3. What that version of the row dropped, and what was put without the row naming it in the end, is removed in the name of the
       version that stands, where the edge is older than that.

A crash leaves edges too many, never too few; the replay of the batch finds the dropped keys again, because the row keeps them
until then. An edge too many costs a read: rows are checked against the join.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from processor.model.step import Step
from statestore.edges import drop_edge, put_edge
from statestore.items import Edge, Held, Row, read_edges
from statestore.store import Write

T = TypeVar("T")
Stands = tuple[Row, frozenset[Held]]
"""A row as it stands, and the join keys that it left."""


def keep_edges(writing: Step[T], stands: Callable[[T], Stands | None]) -> Step[T]:
    """Runs the step that writes a row, with its edges. `stands`: what its result says of the row; None where it says nothing."""
    put: set[Edge] = set()
    answers: Any = None
    while True:
        try:
            requests = writing.send(answers)
        except StopIteration as end:
            result: T = end.value
            break
        for row in [r for r in requests if isinstance(r, Write) and "_edges" in r.set]:
            named = read_edges(row.set["_edges"])
            put |= named
            if named:
                yield tuple(put_edge(row.key, edge, row.set["_v"]) for edge in sorted(named))
        answers = yield requests
    if found := stands(result):
        stood, left = found
        gone = put.union((fields, key) for fields, key in left if isinstance(fields, str)) - stood.edges
        if gone:
            yield tuple(drop_edge(stood.key, edge, stood.version) for edge in sorted(gone))
    return result
