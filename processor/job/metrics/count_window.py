"""What a run counted in its last hour or day, from marks that the monitor sets as time passes. A new run begins with none."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from processor.counts import IN_TOPIC, MESSAGES_OF, Count
from statestore.store import HALF_UNITS

KEPT: Final = (MESSAGES_OF, HALF_UNITS, f"{Count.APPLIED}{IN_TOPIC}")
"""The counters of a window begin so."""
MARKS: Final = 60
"""Marks in the length of a window: so it may be longer by a sixtieth."""


class CountWindow:
    """The window of the last `seconds`, of a run that began at `began`, in seconds since 1970."""

    def __init__(self, seconds: float, began: float) -> None:
        self._seconds = seconds
        self._marks = deque[tuple[float, dict[str, int]]]([(began, {})])

    def add(self, at: float, counts: Mapping[str, int]) -> dict[str, Any]:
        """Takes the counts of the run so far. Returns those of the window, and its length: of a shorter run the whole run."""
        now = {name: count for name, count in counts.items() if name.startswith(KEPT)}
        while len(self._marks) > 1 and self._marks[1][0] <= at - self._seconds:
            self._marks.popleft()
        begin, before = self._marks[0]
        if at - self._marks[-1][0] >= self._seconds / MARKS:
            self._marks.append((at, now))
        new = {name: count - before.get(name, 0) for name, count in now.items()}
        return {"seconds": round(at - begin, 1), "counts": {name: count for name, count in new.items() if count}}
