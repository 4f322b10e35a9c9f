"""Keeps the edges of a row around its write (rule 12).

    1. Before each write of the row, the step puts every edge that the new version names, where the stored edge is
       older. New edges alone are not enough, since a task that removes edges of an earlier version may still be under
       way.
    2. The write step writes the row.
    3. The step removes the edges that this version of the row dropped, and those that it put and the row does not name
       in the end. It removes them in the name of the row's version, where the edge is older than that.

A crash leaves too many edges, never too few. The replay of the batch finds the dropped keys again, because the row
keeps them until then. A needless edge costs a read: assemble checks rows against the join.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from processor.engine.plan.step import Step
from statestore.items import Edge, JoinKey, Row
from statestore.store import Write
from statestore.writes import drop_edge, edges_in, put_edge, version_in

T = TypeVar("T")
RowKeys = tuple[Row, frozenset[JoinKey]]
"""A row as the table has it now, and its former keys."""


def keep_edges(writing: Step[T], row_keys: Callable[[T], RowKeys | None]) -> Step[T]:
    """Runs the step that writes a row, and keeps the row's edges. `row_keys`: the row and former keys by the step's
    result, None where the result names no row."""
    put: set[Edge] = set()
    answers: Any = None
    while True:
        try:
            requests = writing.send(answers)
        except StopIteration as end:
            result: T = end.value
            break
        for write in [r for r in requests if isinstance(r, Write)]:
            if named := edges_in(write):
                put |= named
                yield tuple(put_edge(write.key, edge, version_in(write)) for edge in sorted(named))
        answers = yield requests
    if found := row_keys(result):
        row, former_keys = found
        dropped = put.union((fields, key) for fields, key in former_keys if isinstance(fields, str)) - row.edges
        if dropped:
            yield tuple(drop_edge(row.key, edge, row.version) for edge in sorted(dropped))
    return result
