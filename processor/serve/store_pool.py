"""A few connections to the table, of which each look-up has one for itself."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue

from statestore.store import Store


class StorePool:
    """Lends stores. The look-up beyond the last one waits until another look-up ends."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self._free: SimpleQueue[Store] = SimpleQueue()
        for store in stores:
            self._free.put(store)

    @contextmanager
    def lent(self) -> Iterator[Store]:
        """A store for this block alone."""
        store = self._free.get()
        try:
            yield store
        finally:
            self._free.put(store)
