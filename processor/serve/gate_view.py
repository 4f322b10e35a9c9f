"""The roots that wait at gates, as a reader sees them, read at most once in LOOK_SECONDS: the backlog partition, whole."""

from threading import Lock
from time import monotonic, time
from typing import Final

from processor.gates.held_roots import HeldRoots
from processor.gates.stored_roots import stored_roots
from processor.gates.wait import Wait, wait_of
from processor.plan.plan import Plan
from processor.plan.touch import Root
from statestore.store import Store

LOOK_SECONDS: Final = 1.0


class GateView:
    """The waiting roots of the last look. Threads may share a view, and take turns."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._looked = float("-inf")
        self._held = HeldRoots(run=1)

    def wait(self, plan: Plan, store: Store, root: Root) -> Wait | None:
        """Why the root waits, without the ends of transactions, which no table has; None where it does not wait."""
        with self._lock:
            if (now := monotonic()) - self._looked >= LOOK_SECONDS:
                self._held, self._looked = stored_roots(plan, store, time()), now
            return wait_of(self._held, root)
