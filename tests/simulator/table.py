"""The table whose indexes lie: the memory store, with replicas of each index that show each write in their own time.

One replica of one index shows the writes of one row in their order, and drops a row's old key and shows its new one together (as
rule 5d assumes); different rows, indexes and replicas owe each other nothing.
"""

from collections.abc import Callable
from heapq import heappop, heappush

from statestore.keys import Key
from statestore.memory import MemoryStore, _Index
from statestore.store import Item, Query
from statestore.table import slot_names


class LateTable(MemoryStore):
    """`lags`: how late each replica shows a write, drawn anew for each row, write and index. `pick`: the replica that answers."""

    def __init__(
        self, slots: int, *, clock: Callable[[], float], lags: Callable[[], list[float]], pick: Callable[[], int]
    ) -> None:
        super().__init__(slots, clock=clock)
        self._lags, self._pick = lags, pick
        self._replicas = [{name: _Index() for name in slot_names(slots)} for _ in lags()]
        self._heap: list[tuple[float, int, int, str, Key, Item]] = []
        self._last: dict[tuple[int, str, Key], float] = {}
        self._count = 0

    def _shown(self, query: Query) -> dict[Key, Item]:
        while self._heap and self._heap[0][0] <= self._clock():
            _, _, replica, name, key, item = heappop(self._heap)
            self._replicas[replica][name].show(key, item, item.get(name))
        self._indexes = self._replicas[self._pick()]
        return super()._shown(query)

    def expire(self, takes: Callable[[], bool]) -> int:
        """DynamoDB's sweep: of what has outlived its TTL it `takes` some, and the rest days later; returns how many."""
        old = [(key, item) for key, item in self._items.items() if item.get("ttl", float("inf")) <= self._clock()]
        gone = [each for each in old if takes()]
        for key, item in gone:
            self._replace(key, item, None)
        return len(gone)

    def _replace(self, key: Key, old: Item | None, new: Item | None) -> None:
        self._put(key, new)
        for name in self._indexes:
            if name in (new or {}) or name in (old or {}):
                for replica, lag in enumerate(self._lags()):
                    at = max(self._clock() + lag, self._last.get((replica, name, key), 0.0))
                    self._last[replica, name, key] = at
                    self._count += 1
                    heappush(self._heap, (at, self._count, replica, name, key, new or {}))
