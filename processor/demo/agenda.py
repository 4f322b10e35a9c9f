"""The agenda of the demo: actions that run a number of events later, in the order of their due events."""

import heapq
from collections.abc import Callable

Action = Callable[[], object]


class Agenda:
    """Time is a count of events. Actions that are due at the same event run in the order in which they were added."""

    def __init__(self) -> None:
        self._event = 0
        self._added = 0
        self._due: list[tuple[int, int, Action]] = []

    def run_later(self, events: int, action: Action) -> None:
        """Runs `action` at the start of the event that comes `events` events later."""
        self._added += 1
        heapq.heappush(self._due, (self._event + events, self._added, action))

    def start_event(self) -> int:
        """Counts one event and runs the actions that are due. Returns the number of the event, from 1."""
        self._event += 1
        while self._due and self._due[0][0] <= self._event:
            heapq.heappop(self._due)[2]()
        return self._event

    def run_all(self) -> None:
        """Runs all remaining actions, and the actions that these add."""
        while self._due:
            self.start_event()
