"""The memory store that also counts what DynamoDB would charge: request units, as AWS documents them for on-demand tables.

    write   1 unit per KB of the larger item, the one before or after the write; the same for each index that shows the item, by
            what it shows: twice where the key there changes, and nothing where that stays the same; a refused write: 1 unit per
            KB of the larger item, the stored one or the one that it would make
    key     1 unit per 4 KB of each item (strongly consistent); 1 unit for a key without an item; half of it for a weak read
    query   half a unit per 4 KB of the whole answer of an index (eventually consistent); 1 unit where the table itself answers,
            strongly consistent; half a unit where a walk reads the table

`written` and `read_units` count these units; `copied` counts those of `written` that the indexes take. Does not: cut an answer
into pages of 1 MB, each of which DynamoDB rounds up by itself.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal

from statestore.attribute_values import item_size
from statestore.conditional_write import updated
from statestore.keys import Key
from statestore.limits import storable
from statestore.memory import MemoryStore
from statestore.store import Delete, Done, Item, Page, Query, Refused, Write, WriteOutcome
from statestore.table import MAX_SLOTS, shown

WRITE_BYTES, READ_BYTES = 1024, 4096
HALF = Decimal("0.5")


class MeteredStore(MemoryStore):
    """A `MemoryStore` that counts request units."""

    def __init__(
        self, slots: int | None = MAX_SLOTS, *, lag: float = 0.0, clock: Callable[[], float] = lambda: 0.0
    ) -> None:
        super().__init__(slots, lag=lag, clock=clock)
        self.written = self.copied = 0
        self.read_units = Decimal(0)

    def copy(self) -> "MeteredStore":
        """A store with the same items, whose indexes show all of them, and that has charged nothing."""
        made = MeteredStore(len(self._indexes))
        for key, item in self._items.items():
            made._replace(key, None, item)
        return made

    def write(self, write: Write) -> WriteOutcome:
        """Does one conditional update and returns the former item."""
        outcome = super().write(write)
        attempted = updated(outcome.current, write, storable(write)) if isinstance(outcome, Refused) else None
        self._charge(write.key, outcome, attempted)
        return outcome

    def delete(self, delete: Delete) -> Done | Refused:
        """Does one conditional delete and returns the former item."""
        outcome = super().delete(delete)
        self._charge(delete.key, outcome)
        return outcome

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, strongly consistent."""
        found = super().get(keys)
        self.read_units += _read_units(keys, found)
        return found

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, eventually consistent."""
        found = super().get_weak(keys)
        self.read_units += _read_units(keys, found) * HALF
        return found

    def query(self, query: Query) -> list[Item]:
        """Reads one index."""
        found = super().query(query)
        self.read_units += _units(sum(map(_bytes, found)), READ_BYTES) * HALF
        return found

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of one index, or of one partition of the table."""
        found = super().page(source, after, limit)
        units = _units(sum(map(_bytes, found.items)), READ_BYTES)
        self.read_units += units if isinstance(source, str) else units * HALF
        return found

    def partition(self, pk: str) -> list[Item]:
        """Reads all items of one partition of the table."""
        found = super().partition(pk)
        self.read_units += _units(sum(map(_bytes, found)), READ_BYTES)
        return found

    def walk(self, source: Query | str, without: str) -> Iterator[Key]:
        """The keys of the items of a query, or of one partition of the table; not those with the attribute `without`."""
        before = self.read_units
        found = super().walk(source, without)
        if isinstance(source, str):
            self.read_units -= (self.read_units - before) * HALF
        return found

    def _charge(self, key: Key, outcome: WriteOutcome, attempted: Item | None = None) -> None:
        """Charges a write. `attempted`: the item that a refused write would make."""
        match outcome:
            case Done(old):
                before, new = old or {}, self._items.get(key, {})
                slots = [name for name in self._indexes if name in before or name in new]
                copied = sum(_copies(name, shown(before, name), shown(new, name)) for name in slots)
                self.written += _units(max(_bytes(before), _bytes(new)), WRITE_BYTES) + copied
                self.copied += copied
            case Refused(current):
                self.written += _units(max(_bytes(current), _bytes(attempted)), WRITE_BYTES)


def _copies(name: str, old: Item, new: Item) -> int:
    """The units that one index takes. `old`, `new`: what it shows of the item."""
    if old == new:
        return 0
    if old.get(name) == new.get(name):
        return _units(max(_bytes(old), _bytes(new)), WRITE_BYTES) if name in new else 0
    return sum(_units(_bytes(item), WRITE_BYTES) for item in (old, new) if name in item)


def _read_units(keys: Collection[Key], found: Mapping[Key, Item]) -> int:
    """The units of strongly consistent reads of these keys."""
    return sum(_units(_bytes(found.get(key)), READ_BYTES) for key in dict.fromkeys(keys))


def _bytes(item: Item | None) -> int:
    return item_size(item) if item else 0


def _units(bytes: int, each: int) -> int:
    return max(1, -(-bytes // each))
