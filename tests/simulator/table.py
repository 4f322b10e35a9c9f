"""A table whose indexes are late, and its weak reads too: the memory store, with replicas of each index that show each write at a
time of their own.

One replica of one index shows the writes of one row in their order. The replica drops the old key of a row and shows the new key
at the same time, as docs/architecture.md assumes. There is no order between different rows, indexes or replicas.

A weak read answers with any state that the item had in the last seconds, so a later read may answer with an earlier state.
"""

from collections.abc import Callable, Collection, Iterator
from heapq import heappop, heappush

from statestore.keys import Key
from statestore.memory import MemoryStore, _Index
from statestore.store import Item, Query
from statestore.table import slot_names


class LateTable(MemoryStore):
    """`draw_lags` draws how late each replica shows a write of a row in an index, in seconds. `pick_replica` returns the
    replica that answers a query. `weak_seconds`: how old the answer of a weak read may be; `pick_state` draws one of this many
    states."""

    def __init__(
        self,
        slots: int,
        *,
        clock: Callable[[], float],
        draw_lags: Callable[[Key, str], list[float]],
        pick_replica: Callable[[], int],
        weak_seconds: float = 0.0,
        pick_state: Callable[[int], int] = lambda states: 0,
    ) -> None:
        super().__init__(slots, clock=clock)
        self._draw_lags, self._pick_replica = draw_lags, pick_replica
        self._replicas = [{name: _Index(name) for name in slot_names(slots)} for _ in draw_lags(Key("", ""), "")]
        self._pending: list[tuple[float, int, int, str, Key, Item]] = []
        self._shown_at: dict[tuple[int, str, Key], float] = {}
        self._count = 0
        self._weak_seconds, self._pick_state = weak_seconds, pick_state
        self._former: dict[Key, list[tuple[float, Item | None]]] = {}

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        found = self.get(keys)
        earliest = self._clock() - self._weak_seconds
        states = {
            key: [found.get(key), *(item for until, item in self._former.get(key, ()) if until > earliest)]
            for key in keys
        }
        picked = {key: some[self._pick_state(len(some))] for key, some in states.items()}
        return {key: item for key, item in picked.items() if item is not None}

    def _shown(self, query: Query) -> dict[Key, Item]:
        self._show_due()
        self._indexes = self._replicas[self._pick_replica()]
        return super()._shown(query)

    def _show_due(self) -> None:
        while self._pending and self._pending[0][0] <= self._clock():
            _, _, replica, name, key, item = heappop(self._pending)
            self._replicas[replica][name].show(key, item)

    def next_shown(self) -> float | None:
        """When a replica of an index shows a write next; None where all show all writes."""
        self._show_due()
        return self._pending[0][0] if self._pending else None

    def wrong_keys(self, name: str, pk: str) -> Iterator[tuple[Key, str]]:
        """The rows of a partition that a replica of an index shows under another key than they have, with either key."""
        self._show_due()
        for replica in self._replicas:
            for key in self._partitions.get(pk, ()):
                shown, has = replica[name].shown.get(key), self._items[key].get(name)
                if shown != has:
                    yield from ((key, one) for one in (shown, has) if one is not None)

    def expire(self, removes: Callable[[], bool]) -> int:
        """Removes items whose TTL has passed; returns how many. `removes` decides for each item, because DynamoDB removes some
        items only days later."""
        old = [(key, item) for key, item in self._items.items() if item.get("ttl", float("inf")) <= self._clock()]
        gone = [entry for entry in old if removes()]
        for key, item in gone:
            self._replace(key, item, None)
        return len(gone)

    def _replace(self, key: Key, old: Item | None, new: Item | None) -> None:
        self._put(key, new)
        self._former.setdefault(key, []).append((self._clock(), old))
        for name in self._indexes:
            if name in (new or {}) or name in (old or {}):
                for replica, lag in enumerate(self._draw_lags(key, name)):
                    at = max(self._clock() + lag, self._shown_at.get((replica, name, key), 0.0))
                    self._shown_at[replica, name, key] = at
                    self._count += 1
                    heappush(self._pending, (at, self._count, replica, name, key, new or {}))
