"""Reads many keys of one partition by ranges of the table, as long as a range shows more of them than it costs.

DynamoDB charges a read by key at least one unit (a weak one half of it), and a Query by the bytes of all its items together: 4 KB
a unit. So where the wanted rows are close together, a range costs a tenth of their reads by key, or less. Such a Query of the
table is as consistent as a read by key.

    1. A first page of few rows, from the first wanted key on. It costs about as much as this key alone.
    2. The next page begins at the next wanted key. Its rows may cost as much as the pages before have saved. It is as small as
       the first one where a unit showed fewer than `WORTH` wanted keys.
    3. After `TRIES` such pages, or where the pages cost more than they saved, the caller reads the rest by key. If they saved
       next to nothing, the next `CALLS` calls ask the partition by key alone.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from statestore.keys import Key
from statestore.store import Item

MANY = 100
"""Wanted keys of a partition: a request reads as many by key, so fewer never ask for a range."""
FIRST = 16
"""Rows of the first page: they fit into one unit where a row has 256 bytes."""
WORTH = 3
"""Wanted keys a unit. With fewer, the pages grow slowly: many requests one after the other save little."""
TRIES = 3
"""Pages with fewer, one after the other, that end a range: the wanted keys of a partition come in clusters."""
CALLS = 20


class RangePage(NamedTuple):
    """A page of a range. `items`: the wanted ones; `rows`: how many it has; `price`: in reads of a key; `end`: the last sort key,
    None where the range ends."""

    items: Iterable[tuple[Key, Item]]
    rows: int
    price: float
    end: str | None


AskRange = Callable[[str, str, str, int, Collection[str]], RangePage]
"""Asks for some rows of a partition, from one sort key to another. The last arguments: how many at most, and the wanted keys."""


class KeyRanges:
    """What a store knows of the partitions that it reads. Threads may share it: each may ask one page too many."""

    def __init__(self) -> None:
        self._sparse: dict[str, int] = {}

    def read(self, keys: Collection[Key], ask: AskRange) -> tuple[dict[Key, Item], Collection[Key]]:
        """The items that ranges show, and the keys that are still to be read."""
        if len(keys) < MANY:
            return {}, keys
        partitions: dict[str, set[str]] = {}
        for pk, sk in keys:
            partitions.setdefault(pk, set()).add(sk)
        found: dict[Key, Item] = {}
        rest: list[Key] = []
        for pk, wanted in partitions.items():
            order = sorted(wanted)
            done = self._read(pk, order, wanted, ask, found) if len(order) >= MANY and self._is_due(pk) else 0
            rest += (Key(pk, sk) for sk in order[done:])
        return found, rest

    def _is_due(self, pk: str) -> bool:
        """Whether to ask for a range of this partition."""
        if (calls := self._sparse.get(pk, 0)) > 0:
            self._sparse[pk] = calls - 1
        return calls <= 0

    def _read(self, pk: str, order: list[str], wanted: Collection[str], ask: AskRange, found: dict[Key, Item]) -> int:
        """Reads from the first wanted key on; returns how many keys it has answered."""
        done, saved, limit, poor = 0, 0.0, FIRST, 0
        while done < len(order) and poor < TRIES and saved >= 0:
            page = ask(pk, order[done], order[-1], limit, wanted)
            found.update(page.items)
            answered = (len(order) if page.end is None else bisect_right(order, page.end)) - done
            done, saved = done + answered, saved + answered - page.price
            poor = poor + 1 if answered < WORTH * page.price else 0
            limit = FIRST if poor else max(FIRST, int((saved + 1) * page.rows / page.price))
        if done < len(order) and saved < TRIES:
            self._sparse[pk] = CALLS
        return done
