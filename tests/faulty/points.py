"""Named points of a job's work. A request marks each point, so a proxy recognises it, and the product needs no switch for
tests."""

from collections.abc import Callable
from threading import Event, Lock

from tests.faulty.proxy import WRITES, Answer, Dropped, Relay, Request, row_write

POINTS = {
    "after the first write": ("after", "write TABLE", None),
    "between write and assemble": ("before", "read LEDGER", None),
    "while publishing": ("after", "write LEDGER", None),
    "after publish": ("before", "write RUNS", None),
    "before the commit of the batch": ("after", "write RUNS", None),
    "after the commit of the batch": ("before", "write TABLE", "write RUNS"),
    "during settle": ("before", "probe", "write RUNS"),
    "while open changes are closed": ("before", "delete OPEN", None),
}
"""By name: before or after the API applies which request, and the last write before it: rows, or the end of a round."""


class AtPoint:
    """A layer that calls `act` once: with the first request at the point while `ready` returns True. Then it sets `reached`.

    `act` returns whether the request continues. If not, the request (before) or its answer (after) is lost.
    """

    def __init__(self, point: str, act: Callable[[Request], bool], ready: Callable[[], bool] = lambda: True) -> None:
        self.reached = Event()
        self._point, self._act, self._ready = POINTS[point], act, ready
        self._last: str | None = None
        self._acted = False
        self._lock = Lock()

    def __call__(self, request: Request, relay: Relay) -> Answer:
        self._pass("before", request)
        answer = relay(request)
        self._pass("after", request)
        return answer

    def _pass(self, moment: str, request: Request) -> None:
        what = _what(request)
        with self._lock:
            when, marks, last = self._point
            here = (when, marks) == (moment, what) and last in (None, self._last)
            acts = here and not self._acted and self._ready()
            self._acted |= acts
            if moment == "after" and what in ("write TABLE", "write RUNS"):
                self._last = what
        if acts:
            continues = self._act(request)
            self.reached.set()
            if not continues:
                raise Dropped


def _what(request: Request) -> str:
    """The effect of a request and its kind of item, such as `write TABLE`, or `probe` for the query of one row."""
    if "GSI_SK = :v1" in request.body.get("KeyConditionExpression", ""):
        return "probe"
    if request.operation == "BatchGetItem":
        (asked,) = request.body["RequestItems"].values()
        return f"read {_kind(asked['Keys'][0])}"
    if request.operation in WRITES:
        return f"{'delete' if request.operation == 'DeleteItem' else 'write'} {_kind(row_write(request).body['Key'])}"
    return request.operation


def _kind(key: dict[str, dict[str, str]]) -> str:
    return key["PK"]["S"].partition("#")[0]
