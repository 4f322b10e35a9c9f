"""Switches for the protections of edges (rule 12 of docs/architecture.md)."""

from typing import Any

import processor.engine.protocol.write_state as write_state
import processor.engine.rounds.write_stage as write_stage
from statestore.items import read_edges
from statestore.keys import Key
from statestore.store import Write
from statestore.writes import put_edge
from tests.simulator.without.switch import replacing


def _unconditional(make: Any) -> Any:
    def request(*edge: Any) -> Any:
        made = make(*edge)
        return made._replace(when=None) if isinstance(made, Write) else type(made)(key=made.key)

    return request


def _only_new_edges(keep: Any) -> Any:
    """keep_edges, but it puts only the edges that the stored row does not name."""

    def changed(writing: Any, stored: Any) -> Any:
        running, answers = keep(writing, stored), None
        while True:
            try:
                requests = running.send(answers)
            except StopIteration as end:
                return end.value
            if not all(isinstance(request, Write) and "row" in request.set for request in requests):
                answers = yield requests
                continue
            row = Key(requests[0].set["row"], requests[0].key.sk)
            (item,) = yield (row,)
            named = {put_edge(row, edge, "").key for edge in read_edges((item or {}).get("_edges"))}
            if new := tuple(request for request in requests if request.key not in named):
                yield new
            answers = ()

    return changed


unversioned = replacing((write_state, "put_edge", _unconditional), (write_state, "drop_edge", _unconditional))
only_new_edges = replacing((write_stage, "keep_edges", _only_new_edges))
