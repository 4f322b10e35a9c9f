"""Counts the requests of a store, and what they cost: retries, throttles and units. Threads share the counts."""

import os
from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import Any

from statestore.store import HALF_UNITS, RETRIES, THROTTLES

_counting = Lock()
"""Held while a thread counts. A fork waits for it: no thread of the child could release it."""
os.register_at_fork(before=_counting.acquire, after_in_parent=_counting.release, after_in_child=_counting.release)


class RequestCounts:
    """The counts of a store. `requests`: all attempts, by the name of the operation."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self._begun: Counter[str] = Counter()
        self._spent: Counter[str] = Counter()

    @property
    def spent(self) -> Counter[str]:
        """The retries, throttles and half units of capacity so far, by the name of the operation (`retries Query`)."""
        with _counting:
            retries = self.requests - self._begun
            return self._spent + Counter({RETRIES + name: n for name, n in retries.items()})

    def begin(self, operation: str) -> None:
        """Counts a request before its first attempt."""
        with _counting:
            self._begun[operation] += 1

    def attempt(self, operation: str) -> None:
        """Counts an attempt."""
        with _counting:
            self.requests[operation] += 1

    def throttle(self, operation: str) -> None:
        """Counts an answer by which DynamoDB refused work because there was too much."""
        with _counting:
            self._spent[THROTTLES + operation] += 1

    def consume(self, operation: str, answer: Mapping[str, Any]) -> None:
        """Counts the units that an answer names. A refused write consumes units, too, but its answer names none."""
        used = answer.get("ConsumedCapacity") or []
        units = sum(one["CapacityUnits"] for one in (used if isinstance(used, list) else [used]))
        with _counting:
            self._spent[HALF_UNITS + operation] += round(2 * units)
