"""The memory store that also counts what DynamoDB would charge: request units, as AWS documents them for on-demand tables.

    write   1 unit a KB of the larger of the item before and after; the same for every index that shows the item, twice where
            its key there changes; refused: 1 unit a KB of what stands there
    key     1 unit for 4 KB of each item, strongly consistent; 1 for one that is not there
    query   half a unit for 4 KB of all that it returns (an index is eventually consistent); a whole one of the table itself

`written` and `read` count them.
"""

from collections.abc import Callable, Collection
from decimal import Decimal

from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Delete, Done, Item, Outcome, Page, Query, Refused, Write
from statestore.table import MAX_SLOTS, slot_names
from statestore.values import item_size

WRITE_BYTES, READ_BYTES = 1024, 4096
HALF = Decimal("0.5")


class MeteredStore(MemoryStore):
    """A `MemoryStore` that charges."""

    def __init__(self, slots: int = MAX_SLOTS, *, clock: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__(slots, clock=clock)
        self.written = 0
        self.read = Decimal(0)
        self._names = slot_names(slots)

    def write(self, write: Write) -> Outcome:
        """Sends one conditional update and says what stood there."""
        outcome = super().write(write)
        self._charge(write.key, outcome)
        return outcome

    def delete(self, delete: Delete) -> Done | Refused:
        """Sends one conditional delete and says what stood there."""
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

    def page(self, of: Query | str, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of one index, or of one partition of the table."""
        found = super().page(of, after, limit)
        units = _units(sum(map(_bytes, found.items)), READ_BYTES)
        self.read += units if isinstance(of, str) else units * HALF
        return found

    def partition(self, pk: str) -> list[Item]:
        """Reads all items of one partition of the table."""
        found = super().partition(pk)
        self.read += _units(sum(map(_bytes, found)), READ_BYTES)
        return found

    def _charge(self, key: Key, outcome: Outcome) -> None:
        match outcome:
            case Done(old):
                new = self._items.get(key)
                self.written += _units(max(_bytes(old), _bytes(new)), WRITE_BYTES)
                self.written += sum(self._indexed(name, old or {}, new or {}) for name in self._names)
            case Refused(current):
                self.written += _units(_bytes(current), WRITE_BYTES)

    def _indexed(self, name: str, old: Item, new: Item) -> int:
        """What one index writes."""
        if old.get(name) == new.get(name):
            return _units(max(_bytes(old), _bytes(new)), WRITE_BYTES) if name in new else 0
        return sum(_units(_bytes(item), WRITE_BYTES) for item in (old, new) if name in item)


def _bytes(item: Item | None) -> int:
    return item_size(item) if item else 0


def _units(bytes: int, each: int) -> int:
    return max(1, -(-bytes // each))
