"""Takes the protections of edges away (rule 12), one at a time, for tests."""

from typing import Any

import processor.batch as batch
import processor.steps.keep_edges as keep_edges
from statestore import keys
from statestore.edges import row_of
from statestore.items import read_row
from statestore.store import Done, Write
from tests.simulator.without.switch import replacing


def _anyway(make: Any) -> Any:
    def request(*edge: Any) -> Any:
        made = make(*edge)
        return made._replace(when=None) if isinstance(made, Write) else type(made)(key=made.key)

    return request


unversioned = replacing((keep_edges, "put_edge", _anyway), (keep_edges, "drop_edge", _anyway))


def _putting(request: Any) -> bool:
    return isinstance(request, Write) and request.key.pk.startswith("EDGE#")


def _difference_only(keep: Any) -> Any:
    """Before the row is written it is read, and only the edges that it does not name yet are put."""

    def changed(*args: Any) -> Any:
        running, answers = keep(*args), None
        while True:
            try:
                requests = running.send(answers)
            except StopIteration as end:
                return end.value
            if not requests or not _putting(requests[0]):
                answers = yield requests
                continue
            (item,) = yield (row_of({"SK": requests[0].key.sk, **requests[0].set}),)
            named = read_row(item).edges if item else ()
            there = {keys.edge_partition(keys.entity_of(item["PK"]), *edge) for edge in named}
            if new := tuple(request for request in requests if request.key.pk not in there):
                yield new
            answers = tuple(Done(None) for _ in requests)

    return changed


difference_only = replacing((batch, "keep_edges", _difference_only))
