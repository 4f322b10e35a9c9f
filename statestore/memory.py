"""The plainest store, which defines the meaning of all stores: a map of items, and a map per index, in this process.

Promises: the outcomes, errors, order and request counts of DynamoDB, one write at a time. The store returns the stored items
themselves and never changes them; the caller must not change them. Does not: keep anything when the process ends, or expire
items by their TTL. Does not: read many keys by ranges (`statestore.key_ranges`).

`MeteredStore` does, and also counts what DynamoDB would charge: request units, as AWS documents them for on-demand tables.

    write   1 unit per KB of the larger item, the one before or after the write; the same for each index that shows the item, by
            what it shows: twice where the key there changes, and nothing where that stays the same; a refused write: 1 unit per
            KB of the larger item, the stored one or the one that it would make
    key     1 unit per 4 KB of each item (strongly consistent); 1 unit for a key without an item; half of it for a weak read
    both    a write with others in one transaction: 2 units in place of 1 for each item, but not for indexes
    query   half a unit per 4 KB of the whole answer of an index (eventually consistent); 1 unit where the table itself answers,
            strongly consistent; half a unit where a walk reads the table

`written` and `read_units` count these units; `copied` counts those of `written` that the indexes take. Does not: cut an answer
into pages of 1 MB, each of which DynamoDB rounds up by itself.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from heapq import nsmallest
from itertools import accumulate
from operator import itemgetter
from threading import Lock

from statestore.items import key_of_item
from statestore.key_ranges import KeyRanges, RangePage
from statestore.keys import Key, index_row, is_progress
from statestore.limits import MAX_KEYS, check_condition, check_key, check_query, is_slot, storable
from statestore.store import (
    Delete,
    Done,
    FencingToken,
    Item,
    NoTable,
    Page,
    Query,
    Read,
    Refused,
    ReportIndex,
    Store,
    TableDescription,
    Terminal,
    Write,
    WriteOutcome,
    evaluate_delete,
    evaluate_write,
    read_alone,
    updated,
    write_alone,
)
from statestore.table import MAX_SLOTS, range_name, shown, slot_names, too_few
from statestore.values import item_size

_NAME = "memory"


class _Index:
    """The index of `slot`: slot value -> key -> what it shows of the item, and for each row the value under which it does."""

    def __init__(self, slot: str) -> None:
        self._slot = slot
        self.values: dict[str, dict[Key, Item]] = {}
        self.shown: dict[Key, str] = {}

    def show(self, key: Key, item: Item) -> None:
        """Shows a row as `item`, under the value of its slot instead of the former one; removes an item without the slot."""
        before, value = self.shown.get(key), item.get(self._slot)
        if before is not None and before != value:
            rows = self.values[before]
            del self.shown[key], rows[key]
            if not rows:
                del self.values[before]
        if value is not None:
            self.shown[key] = value
            self.values.setdefault(value, {})[key] = shown(item, self._slot)


class MemoryStore:
    """A `Store` of `slots` indexes. All of them show a write `lag` seconds after it on `clock`. `slots` None: there is no table
    before `create`. `consistent`: whether the store says that they are never late."""

    def __init__(
        self,
        slots: int | None = MAX_SLOTS,
        *,
        lag: float = 0.0,
        clock: Callable[[], float] = lambda: 0.0,
        consistent: bool = False,
    ) -> None:
        self.consistent = consistent
        self.created: int | None = None
        self.requests: Counter[str] = Counter()
        self.spent: Counter[str] = Counter()
        self._items: dict[Key, Item] = {}
        self._partitions: dict[str, dict[Key, None]] = {}
        self._indexes: dict[str, _Index] = {} if slots is None else _indexes(slot_names(slots))
        self._lag, self._clock = lag, clock
        self._late: deque[tuple[float, Key, Item, Collection[str]]] = deque()
        self._lock = Lock()

    def create(self, slots: int) -> None:
        """Creates the table, or checks the one that exists."""
        names = slot_names(slots)
        with self._lock:
            if self._indexes and len(self._indexes) < slots:
                raise Terminal(f"table {_NAME} exists, but does not fit: {too_few(len(self._indexes), slots)}")
            self._indexes = self._indexes or _indexes(names)

    def add_slots(self, slots: int, progress: ReportIndex) -> None:
        """Adds the missing indexes, which show the stored items at once."""
        with self._lock:
            self._check_created()
            missing = [name for name in slot_names(slots) if name not in self._indexes]
            self._indexes |= _indexes(missing)
            for key, item in self._items.items():
                self._show(key, item, missing)
            for name in missing:
                progress(f"index {name}: ACTIVE")

    def take_over(self, fence: FencingToken) -> None:
        """Does nothing: this store has no fencing."""

    def describe(self) -> TableDescription | None:
        """Describes the table; None when there is none."""
        if not self._indexes:
            return None
        slots, items = len(self._indexes), len(self._items)
        return TableDescription(name=_NAME, slots=slots, keys=("PK", "SK"), expires=False, items=items)

    def close(self) -> None:
        """Does nothing: there is no connection."""

    def read(self, reads: Sequence[Read]) -> list[Page]:
        """The pages of these reads."""
        return [read_alone(self, read) for read in reads]

    def write_all(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        """Does writes and deletes, one after the other."""
        return [write_alone(self, request) for request in requests]

    def write(self, write: Write) -> WriteOutcome:
        """Does one conditional update and returns the former item."""
        values = storable(write)
        others = [(one, storable(one)) for one in write.also] if write.also else ()
        with self._lock:
            self._check_created()
            old = self._items.get(write.key)
            outcome, new = evaluate_write(old, write, values)
            if isinstance(outcome, Done):
                made = (
                    [(one.key, updated(self._items.get(one.key), one, sets)) for one, sets in others] if others else ()
                )
                self._replace(write.key, old, new)
                for key, item in made:
                    self._replace(key, self._items.get(key), item)
            self.requests["TransactWriteItems" if write.also else "UpdateItem"] += 1
            return outcome

    def delete(self, delete: Delete) -> Done | Refused:
        """Does one conditional delete and returns the former item."""
        check_key(delete.key)
        check_condition(delete.key, delete.when)
        with self._lock:
            self._check_created()
            self.requests["DeleteItem"] += 1
            old = self._items.get(delete.key)
            outcome, new = evaluate_delete(old, delete)
            if isinstance(outcome, Done):
                self._replace(delete.key, old, new)
            return outcome

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, in the fewest possible requests. Leaves out keys without an item."""
        return self._get(keys)

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        """The same: no read is late here."""
        return self._get(keys)

    def _get(self, keys: Collection[Key]) -> dict[Key, Item]:
        unique = dict.fromkeys(keys)
        for key in unique:
            check_key(key)
        with self._lock:
            self._check_created()
            self.requests["BatchGetItem"] += -(-len(unique) // MAX_KEYS)
            return {key: item for key in unique if (item := self._items.get(key)) is not None}

    def query(self, query: Query) -> list[Item]:
        """Reads one index."""
        with self._lock:
            self._check_created()
            return sorted(self._shown(query).values(), key=itemgetter(range_name(query.slot)))

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of one index, or of one partition of the table."""
        with self._lock:
            self._check_created()
            if isinstance(source, str):
                self.requests["Query"] += 1
                found = {key: self._items[key] for key in self._partitions.get(source, ())}
                name, last = "SK", after and after.sk
            else:
                found, name, last = self._shown(source), range_name(source.slot), after and index_row(after)
            items = [item for item in found.values() if last is None or item[name] > last]
            order = itemgetter(name)
            items = sorted(items, key=order) if len(items) <= limit else nsmallest(limit, items, key=order)
            return Page(items, key_of_item(items[-1]) if len(items) == limit else None)

    def partition(self, pk: str) -> list[Item]:
        """Reads all items of one partition of the table, by sort key."""
        with self._lock:
            self._check_created()
            self.requests["Query"] += 1
            return [self._items[key] for key in sorted(self._partitions.get(pk, ()))]

    def items(self, pk: str) -> Iterator[Item]:
        """The same items, as they are now."""
        return iter(self.partition(pk))

    def walk(self, source: Query | str, without: str) -> Iterator[Key]:
        """The keys of the items of a query, or of one partition of the table; not those with the attribute `without`."""
        found = self.partition(source) if isinstance(source, str) else self.query(source)
        return (key_of_item(item) for item in found if without not in item)

    def scan(self, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of the whole table, in the order of keys."""
        with self._lock:
            self._check_created()
            self.requests["Scan"] += 1
            keys = nsmallest(limit, (key for key in self._items if after is None or key > after))
            return Page([self._items[key] for key in keys], keys[-1] if len(keys) == limit else None)

    def _check_created(self) -> None:
        if not self._indexes:
            raise NoTable(f"there is no table {_NAME}: create it")

    def _put(self, key: Key, new: Item | None) -> None:
        """Replaces the item of a key; None removes it."""
        if new is not None:
            if key not in self._items:
                self._partitions.setdefault(key.pk, {})[key] = None
            self._items[key] = new
        elif self._items.pop(key, None) is not None:
            del self._partitions[key.pk][key]
            if not self._partitions[key.pk]:
                del self._partitions[key.pk]

    def _shown(self, query: Query) -> dict[Key, Item]:
        """The items that an index shows for a query."""
        check_query(query)
        index = self._indexes.get(query.slot)
        if index is None:
            raise Terminal(
                f"no index {query.slot}: the table has {len(self._indexes)} slots; create it with more of them"
            )
        self.requests["Query"] += 1
        self._catch_up()
        found, name = index.values.get(query.value, {}), range_name(query.slot)
        if query.row is not None:
            row = found.get(query.row)
            return {query.row: row} if row and row[name] == (query.name or index_row(query.row)) else {}
        if query.entity is None:
            return found
        return {key: item for key, item in found.items() if query.covers(key) and item[name] >= query.start}

    def _replace(self, key: Key, old: Item | None, new: Item | None) -> None:
        self._put(key, new)
        new = new or {}
        names = _slots(tuple(new)) | _slots(tuple(old or ()))
        if self._lag:
            self._late.append((self._clock() + self._lag, key, new, names))
        else:
            self._show(key, new, names)

    def _catch_up(self) -> None:
        while self._late and self._late[0][0] <= self._clock():
            _, key, item, names = self._late.popleft()
            self._show(key, item, names)

    def _show(self, key: Key, item: Item, names: Collection[str]) -> None:
        """Shows a row in the indexes of these slots: all in which it has, or had, a key."""
        for name in names:
            if name in self._indexes:
                self._indexes[name].show(key, item)


class LoadStore(MemoryStore):
    """What one task of a load writes: the rows and edges of an empty table, until a loader takes them. All other items are those
    of `notes`, the table's own store. Its indexes show nothing: a load asks for no row."""

    def __init__(self, notes: Store) -> None:
        super().__init__(consistent=True)
        self._notes = notes

    def write(self, write: Write) -> WriteOutcome:
        """Does one conditional update and returns the former item."""
        if is_progress(write.key.pk):
            return self._notes.write(write)
        values, old = storable(write), self._items.get(write.key)
        outcome, new = evaluate_write(old, write, values)
        if new is not None:
            self._items[write.key] = new
        return outcome

    def loaded(self) -> list[Item]:
        """The rows and edges so far."""
        return list(self._items.values())

    def _get(self, keys: Collection[Key]) -> dict[Key, Item]:
        notes = [key for key in keys if is_progress(key.pk)]
        return super()._get(keys) | (self._notes.get(notes) if notes else {})

    def _replace(self, key: Key, old: Item | None, new: Item | None) -> None:
        if new is None:
            self._items.pop(key, None)


def _indexes(names: Iterable[str]) -> dict[str, _Index]:
    return {name: _Index(name) for name in names}


@lru_cache(maxsize=4096)
def _slots(names: tuple[str, ...]) -> frozenset[str]:
    """The slots among the attributes of an item. The items of an entity have few different sets of names."""
    return frozenset(filter(is_slot, names))


WRITE_BYTES, READ_BYTES, PAGE_BYTES = 1024, 4096, 1 << 20
HALF = Decimal("0.5")


class MeteredStore(MemoryStore):
    """A `MemoryStore` that counts request units."""

    def __init__(
        self, slots: int | None = MAX_SLOTS, *, lag: float = 0.0, clock: Callable[[], float] = lambda: 0.0
    ) -> None:
        super().__init__(slots, lag=lag, clock=clock)
        self.written = self.copied = 0
        self._ranges = KeyRanges()
        self.read_units = Decimal(0)

    def copy(self) -> "MeteredStore":
        """A store with the same items, whose indexes show all of them, and that has charged nothing."""
        made = MeteredStore(len(self._indexes))
        for key, item in self._items.items():
            made._replace(key, None, item)
        return made

    def write(self, write: Write) -> WriteOutcome:
        """Does one conditional update and returns the former item."""
        before = {key: self._items.get(key) for key in (write.key, *(one.key for one in write.also))}
        outcome = super().write(write)
        attempted = updated(outcome.current, write, storable(write)) if isinstance(outcome, Refused) else None
        for key, old in before.items():
            self._charge(key, Done(old) if isinstance(outcome, Done) else outcome, attempted, 2 if write.also else 1)
        return outcome

    def delete(self, delete: Delete) -> Done | Refused:
        """Does one conditional delete and returns the former item."""
        outcome = super().delete(delete)
        self._charge(delete.key, outcome)
        return outcome

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, strongly consistent."""
        return self._read_keys(keys, Decimal(1))

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, eventually consistent."""
        return self._read_keys(keys, HALF)

    def _read_keys(self, keys: Collection[Key], price: Decimal) -> dict[Key, Item]:
        """Reads items by key, or by ranges of keys. `price`: units of 4 KB."""
        found, rest = self._ranges.read(keys, partial(self._range, price=price))
        by_key = super()._get(rest)
        self.read_units += _read_units(rest, by_key) * price
        return found | by_key

    def _range(
        self, pk: str, first: str, last: str, limit: int, wanted: Collection[str], *, price: Decimal
    ) -> RangePage:
        """A page of a range of a partition."""
        with self._lock:
            self._check_created()
            self.requests["Query"] += 1
            inside = (key for key in self._partitions.get(pk, ()) if first <= key.sk <= last)
            keys = nsmallest(limit + 1, inside)
            sizes = list(accumulate(_bytes(self._items[key]) for key in keys))
            end = min(limit, bisect_left(sizes, PAGE_BYTES) + 1)  # the item behind 1 MB is the last one
            items = {key: self._items[key] for key in keys[:end]}
        units = _units(sizes[len(items) - 1] if items else 0, READ_BYTES)
        self.read_units += units * price
        shown = [(key, item) for key, item in items.items() if key.sk in wanted]
        return RangePage(shown, len(items), units, keys[end - 1].sk if len(keys) > end else None)

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

    def _charge(self, key: Key, outcome: WriteOutcome, attempted: Item | None = None, each: int = 1) -> None:
        """Charges a write. `attempted`: the item that a refused write would make; `each`: the price of a unit of the item."""
        match outcome:
            case Done(old):
                before, new = old or {}, self._items.get(key, {})
                slots = [name for name in self._indexes if name in before or name in new]
                copied = sum(_copies(name, shown(before, name), shown(new, name)) for name in slots)
                self.written += each * _units(max(_bytes(before), _bytes(new)), WRITE_BYTES) + copied
                self.copied += copied
            case Refused(current):
                self.written += each * _units(max(_bytes(current), _bytes(attempted)), WRITE_BYTES)


def _copies(name: str, old: Item, new: Item) -> int:
    """The units that one index takes. `old`, `new`: what it shows of the item."""
    if old == new:
        return 0
    place = range_name(name)
    if (old.get(name), old.get(place)) == (new.get(name), new.get(place)):
        return _units(max(_bytes(old), _bytes(new)), WRITE_BYTES) if name in new else 0
    return sum(_units(_bytes(item), WRITE_BYTES) for item in (old, new) if name in item)


def _read_units(keys: Collection[Key], found: Mapping[Key, Item]) -> int:
    """The units of strongly consistent reads of these keys."""
    return sum(_units(_bytes(found.get(key)), READ_BYTES) for key in dict.fromkeys(keys))


def _bytes(item: Item | None) -> int:
    return item_size(item) if item else 0


def _units(bytes: int, each: int) -> int:
    return max(1, -(-bytes // each))
