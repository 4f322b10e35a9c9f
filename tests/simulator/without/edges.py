"""Takes the protections of edges away (rule 12), one at a time, for tests."""

from typing import Any

import processor.batch as batch
import processor.steps.keep_edges as keep_edges
from statestore.edges import put_edge
from statestore.items import read_edges
from statestore.keys import Key
from statestore.store import Write
from tests.simulator.without.switch import replacing


def _anyway(make: Any) -> Any:
    def request(*edge: Any) -> Any:
        made = make(*edge)
        return made._replace(when=None) if isinstance(made, Write) else type(made)(key=made.key)

    return request


def _new_ones(keep: Any) -> Any:
    """Puts the edges that the row as it stands does not name, and no others."""

    def kept(writing: Any, stands: Any) -> Any:
        running, answers = keep(writing, stands), None
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

    return kept


unversioned = replacing((keep_edges, "put_edge", _anyway), (keep_edges, "drop_edge", _anyway))
only_the_difference = replacing((batch, "keep_edges", _new_ones))
