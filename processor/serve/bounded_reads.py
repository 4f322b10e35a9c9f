"""Reads of one look-up, with a limit: no look-up reads more rows than that, and none writes."""

from collections.abc import Collection, Sequence
from typing import Any

from processor.serve.problem import LookUpProblem
from statestore.keys import Key
from statestore.store import Item, Page, Read, Store


class BoundedReads:
    """A store as the step runner uses it. Raises LookUpProblem beyond `most` items, before the store reads the rest."""

    def __init__(self, store: Store, most: int) -> None:
        self._store, self._most, self._left = store, most, most

    def read(self, reads: Sequence[Read]) -> list[Page]:
        """The pages of these reads, which go to the store together. Each stops at the limit."""
        found = [Page([], read.after) for read in reads]
        waiting = list(range(len(reads)))
        while waiting:
            limit = self._left + 1
            asked = [reads[n]._replace(after=found[n].after, limit=reads[n].limit or limit) for n in waiting]
            for n, page in zip(waiting, self._store.read(asked), strict=True):
                self._take(len(page.items))
                found[n] = Page(found[n].items + page.items, page.after)
            waiting = [n for n in waiting if found[n].after is not None and reads[n].limit is None]
        return found

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """The items with these keys."""
        self._take(len(keys))
        return self._store.get(keys)

    def write_all(self, requests: Sequence[Any]) -> list[Any]:
        """Writes nothing. Raises TypeError for a write."""
        if requests:
            raise TypeError("a look-up never writes")
        return []

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise LookUpProblem(
                413, f"the answer needs more than {self._most:,} rows: read the product's topic, or raise --most-rows"
            )
