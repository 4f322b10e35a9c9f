"""The roots that wait at gates, as a reader sees them, read at most once in LOOK_SECONDS: the backlog partition, whole."""

from threading import Lock
from time import monotonic, time
from typing import Final

from processor.gates.stored_roots import stored_roots
from processor.plan.plan import Plan
from processor.plan.touch import Root
from statestore.store import Store

LOOK_SECONDS: Final = 1.0


class GateView:
    """The waiting roots of the last look. Threads may share a view, and take turns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._looked = float("-inf")
        self._waiting: frozenset[Root] = frozenset()

    def waiting(self, plan: Plan, store: Store) -> frozenset[Root]:
        """The waiting roots."""
        with self._lock:
            if (now := monotonic()) - self._looked >= LOOK_SECONDS:
                self._waiting, self._looked = frozenset(stored_roots(plan, store, time()).held), now
            return self._waiting
