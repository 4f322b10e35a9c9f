"""What is to happen later: actions put off by a number of events, run in the order in which they fall due."""

import heapq
from collections.abc import Callable

Action = Callable[[], object]


class Agenda:
    """Time is counted in events; actions due at the same event run in the order in which they were put off."""

    def __init__(self) -> None:
        self._event = 0
        self._put_off = 0
        self._due: list[tuple[int, int, Action]] = []

    def later(self, events: int, action: Action) -> None:
        """Runs `action` before the event that follows `events` more ones."""
        self._put_off += 1
        heapq.heappush(self._due, (self._event + events, self._put_off, action))

    def next_event(self) -> int:
        """Counts one event and runs what is due by then; the event's number, from 1."""
        self._event += 1
        while self._due and self._due[0][0] <= self._event:
            heapq.heappop(self._due)[2]()
        return self._event

    def finish(self) -> None:
        """Runs all that is left, and what that puts off."""
        while self._due:
            self.next_event()
