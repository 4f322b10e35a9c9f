"""The memory store that also counts what DynamoDB would charge: request units, as AWS documents them for on-demand tables.

    write   1 unit per KB of the larger item, the one before or after the write; the same for each index that shows the item,
            twice where its key there changes; a refused write: 1 unit per KB of the stored item
    key     1 unit per 4 KB of each item (strongly consistent); 1 unit for a key without an item
    query   half a unit per 4 KB of the whole answer of an index (eventually consistent); 1 unit where the table itself answers

`written` and `read` count these units; `copied` counts those of `written` that the indexes take.
"""

from collections.abc import Callable, Collection
from decimal import Decimal

from statestore.attribute_values import item_size
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Delete, Done, Item, Page, Query, Refused, Write, WriteOutcome
from statestore.table import MAX_SLOTS

WRITE_BYTES, READ_BYTES = 1024, 4096
HALF = Decimal("0.5")


class MeteredStore(MemoryStore):
    """A `MemoryStore` that counts request units."""

    def __init__(
        self, slots: int | None = MAX_SLOTS, *, lag: float = 0.0, clock: Callable[[], float] = lambda: 0.0
    ) -> None:
        super().__init__(slots, lag=lag, clock=clock)
        self.written = self.copied = 0
        self.read = Decimal(0)

    def _apply(self, write: Write) -> WriteOutcome:
        outcome = super()._apply(write)
        self._charge(write.key, outcome)
        return outcome

    def delete(self, delete: Delete) -> Done | Refused:
        """Does one conditional delete and returns the former item."""
        outcome = super().delete(delete)
        self._charge(delete.key, outcome)
        return outcome

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, strongly consistent."""
        found = super().get(keys)
        self.read += sum(_units(_bytes(found.get(key)), READ_BYTES) for key in dict.fromkeys(keys))
        return found

    def query(self, query: Query) -> list[Item]:
        """Reads one index."""
        found = super().query(query)
        self.read += _units(sum(map(_bytes, found)), READ_BYTES) * HALF
        return found

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of one index, or of one partition of the table."""
        found = super().page(source, after, limit)
        units = _units(sum(map(_bytes, found.items)), READ_BYTES)
        self.read += units if isinstance(source, str) else units * HALF
        return found

    def partition(self, pk: str) -> list[Item]:
        """Reads all items of one partition of the table."""
        found = super().partition(pk)
        self.read += _units(sum(map(_bytes, found)), READ_BYTES)
        return found

    def _charge(self, key: Key, outcome: WriteOutcome) -> None:
        match outcome:
            case Done(old):
                new = self._items.get(key)
                copied = sum(self._indexed(name, old or {}, new or {}) for name in self._indexes)
                self.written += _units(max(_bytes(old), _bytes(new)), WRITE_BYTES) + copied
                self.copied += copied
            case Refused(current):
                self.written += _units(_bytes(current), WRITE_BYTES)

    def _indexed(self, name: str, old: Item, new: Item) -> int:
        """The units that one index takes."""
        if old.get(name) == new.get(name):
            return _units(max(_bytes(old), _bytes(new)), WRITE_BYTES) if name in new else 0
        return sum(_units(_bytes(item), WRITE_BYTES) for item in (old, new) if name in item)


def _bytes(item: Item | None) -> int:
    return item_size(item) if item else 0


def _units(bytes: int, each: int) -> int:
    return max(1, -(-bytes // each))
