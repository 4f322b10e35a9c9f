"""Named points of a job's work, known from outside by the request that marks each: no switch in the product is needed."""

from collections.abc import Callable
from threading import Event, Lock

from tests.faulty.proxy import WRITES, Answer, Dropped, Relay, Request

POINTS = {
    "after the first write": ("after", "write TABLE", None),
    "between write and assemble": ("before", "read LEDGER", None),
    "while publishing": ("after", "write LEDGER", None),
    "after publish": ("before", "write RUNS", None),
    "before the commit of the batch": ("after", "write RUNS", None),
    "after the commit of the batch": ("before", "write TABLE", "write RUNS"),
    "during settle": ("before", "read TABLE", "write RUNS"),
    "while open changes are closed": ("before", "delete OPEN", None),
}
"""By name: before or after which request is applied, and what was last written: rows, or the end of a round."""


class At:
    """A layer that calls `strike` once, with the request that is first at the point while `ready`; then `struck` is set. `strike`
    says whether that request goes on; else it is lost, and its answer."""

    def __init__(self, point: str, strike: Callable[[Request], bool], ready: Callable[[], bool] = lambda: True) -> None:
        self.struck = Event()
        self._point, self._strike, self._ready = POINTS[point], strike, ready
        self._last: str | None = None
        self._there = False
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
            strikes = here and not self._there and self._ready()
            self._there |= strikes
            if moment == "after" and what in ("write TABLE", "write RUNS"):
                self._last = what
        if strikes:
            goes_on = self._strike(request)
            self.struck.set()
            if not goes_on:
                raise Dropped


def _what(request: Request) -> str:
    """What a request does to which kind of item."""
    if request.operation == "BatchGetItem":
        (asked,) = request.body["RequestItems"].values()
        return f"read {_kind(asked['Keys'][0])}"
    if request.operation in WRITES:
        return f"{'delete' if request.operation == 'DeleteItem' else 'write'} {_kind(request.body['Key'])}"
    return request.operation


def _kind(key: dict[str, dict[str, str]]) -> str:
    return key["PK"]["S"].partition("#")[0]
