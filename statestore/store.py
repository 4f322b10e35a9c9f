"""The contract of a store: the table itself, four requests over its items, their answers as plain values, and its errors.

An item is a flat map from attribute name to value (str, int, Decimal, bool, bytes, None, or a list or map). `PK` and `SK` are
among its attributes. `GSI_1 .. GSI_n` put it into the indexes, and the store adds `GSI_SK`, the item's name there. An index shows
only a part of an item: its keys, the slot, its name, and the attributes of `table.SHOWN`. Three
implementations keep one contract (tests/contract): `statestore.memory`, the plainest, which defines the meaning,
`statestore.dynamodb` and `statestore.postgres`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from statestore.keys import Key, entity_of
from statestore.values import canonical, encode, fits


class StoreError(Exception):
    """Any failure of a store. The message names the table and the request, and says what to do."""


class Transient(StoreError):
    """A later try may succeed: throttled, timed out, unreachable."""


class Throttled(Transient):
    """The store answers, and refuses work because there is too much. A later try succeeds, if less work comes, or capacity."""


class Terminal(StoreError):
    """A later try fails too: no such table, no permission, a malformed request."""


class NoTable(Terminal):
    """There is no such table, or it is not ready yet."""


class FencedWrite(Terminal):
    """A newer run took over the table: this run must stop."""


class NewerFormat(Terminal):
    """A newer release wrote the item."""


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_NO_NUMBERS: Final[Mapping[str, int | Decimal]] = MappingProxyType({})

ReportIndex = Callable[[str], object]
"""Gets a line of progress about an index."""

Item = Mapping[str, Any]
"""An item of the table. Stores return integral numbers as int, others as Decimal."""

PAGE = 1_000
"""Rows of a page, unless a reader asks for another number."""

HALF_UNITS = "half units "
THROTTLES = "throttles "
RETRIES = "retries "
"""What `Store.spent` counts; the name of a request follows."""

_EXACT: Final = Context(prec=400)

MAX_ITEM_BYTES = 400 * 1024
"""DynamoDB's limit for an item, attribute names included."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Holds when no item has the key."""


@dataclass(frozen=True, slots=True)
class AbsentOrBelow:
    """Holds when no item has the key, or its `attribute` sorts below `value`."""

    attribute: str
    value: Any


@dataclass(frozen=True, slots=True)
class AbsentOrWithin:
    """Holds when no item has the key, or its `attribute` sorts from `start` on, and below `end`. `lacks`: an attribute which the
    item must not have, empty for none."""

    attribute: str
    start: Any
    end: Any
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class Equals:
    """Holds when an item has the key and its `attribute` equals `value`."""

    attribute: str
    value: Any


Condition = Absent | AbsentOrBelow | AbsentOrWithin | Equals


class Write(NamedTuple):
    """One conditional UpdateItem. All parts read the item before the write.

    set: attributes to set. copy: target attribute -> source attribute; where the source is missing, the write removes the target.
    remove: attributes to remove. when: the store refuses the write unless it holds (None: the store always writes).
    add: attribute -> the number that the write adds to it; an attribute that is missing counts as 0.
    also: writes of other items, without conditions, in one transaction with this one: the store does all of them or none. The
    answer then leaves out the former item.
    """

    key: Key
    set: Mapping[str, Any]
    copy: Mapping[str, str] = _NOTHING
    remove: tuple[str, ...] = ()
    when: Condition | None = None
    add: Mapping[str, int | Decimal] = _NO_NUMBERS
    also: "tuple[Write, ...]" = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """One conditional DeleteItem. Without an item the delete is done, unless the condition does not hold."""

    key: Key
    when: Condition | None = None


class Query(NamedTuple):
    """The shown parts of all items whose `slot` (`GSI_2`) holds `value`, eventually consistent, in the order of entities, then of
    sort keys. Where given: only the rows of `entity`, or only the one `row`.

    In an index with an order the rows of an entity come in it. There `name` is the one of the `row`, empty for `keys.index_row`,
    and `start` the name of the first row of `entity`, empty for all rows; a page has no other beginning there."""

    slot: str
    value: str
    entity: str | None = None
    row: Key | None = None
    name: str = ""
    start: str = ""

    def covers(self, key: Key) -> bool:
        """Whether the query reads the row of this key, if the slot of the row holds the value."""
        if self.entity is not None:
            return entity_of(key.pk) == self.entity
        return self.row is None or key == self.row


class Read(NamedTuple):
    """A read of an index, or, strongly consistent, of the partition of the table with this key: at most `limit` items behind
    `after`, the end of an earlier page. `limit` None, without `after`: all items."""

    source: Query | str
    after: Key | None = None
    limit: int | None = None


class Page(NamedTuple):
    """A page of the items of a query. `after`: the key after which the next page starts, None at the end. An empty page need not
    be the last."""

    items: list[Item]
    after: Key | None


class FencingToken(NamedTuple):
    """The right of a run to write. `name`: whose runs; `generation`: the run's number, which rises from run to run."""

    name: str
    generation: int


class Done(NamedTuple):
    """The store did the write; `old` is the former item, None after a write with `also`."""

    old: Item | None


class Refused(NamedTuple):
    """The condition did not hold; `current` is the stored item."""

    current: Item | None


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The item would exceed 400 KB; the store wrote nothing."""


WriteOutcome = Done | Refused | TooLarge


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDescription:
    """A table as it exists: its name, its number of slots, and the names of its key attributes, partition key first. `expires`:
    whether the store deletes an item some time after the item's `ttl`. `items`: about how many there are, as the server last
    counted them: DynamoDB every six hours, Postgres in each ANALYZE. None before the first count."""

    name: str
    slots: int
    keys: tuple[str, ...]
    expires: bool
    items: int | None = field(default=None, compare=False)


class Store(Protocol):
    """A table with its indexes.

    `requests` counts the requests by their names in DynamoDB's API (UpdateItem, TransactWriteItems, DeleteItem, BatchGetItem,
    Query, Scan); each page and each retry counts. `spent` counts, by the same names, retries, throttles and half units of
    capacity (`retries Query`); empty for a store that does not know them. All methods raise `statestore.store.Transient` after
    their own retries, else `Terminal`.

    `read`, `get` and `write_all` take the requests of a turn as a whole. The store decides how to send them.
    """

    requests: Counter[str]
    consistent: bool
    """Whether an index shows every acknowledged write."""
    created: int | None
    """When the table was made, in milliseconds since 1970, once `create` has looked; None where the store does not say. A table
    that was restored from another one has its own time."""

    @property
    def spent(self) -> Counter[str]: ...

    def create(self, slots: int) -> str | None:
        """Creates the table with 1 to 20 slots, and waits until requests can use it. A table that exists keeps its items; the
        store checks it and raises Terminal with what does not fit. Without a table, every request but `describe` is Terminal.
        Returns a line for the operator where the store altered an existing table."""

    def add_slots(self, slots: int, progress: ReportIndex) -> None:
        """Gives the table the indexes that it lacks of `GSI_1 .. GSI_n`, one after another. Waits for each until it shows the
        stored items. A later call continues a call that broke off."""

    def take_over(self, fence: FencingToken) -> None:
        """From now on writes under this fencing token. A store with fencing refuses every later write under another token: such
        a write raises `statestore.store.FencedWrite`, and so does this call for an older run. DynamoDB has no fencing: there
        the conditions of the writes refuse what an older run sends."""

    def describe(self) -> TableDescription | None:
        """Describes the table; None when there is none."""

    def close(self) -> None:
        """Closes the connections. The caller does not use the store afterwards."""

    def read(self, reads: Sequence[Read]) -> list[Page]:
        """The pages of these reads, in their order."""

    def write_all(self, requests: Sequence[Write | Delete]) -> list[WriteOutcome]:
        """Does writes and deletes of different keys; the outcomes are in their order. Each succeeds or fails alone."""

    def write(self, write: Write) -> WriteOutcome:
        """Does one conditional update and returns the former item."""

    def delete(self, delete: Delete) -> Done | Refused:
        """Does one conditional delete and returns the former item."""

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, strongly consistent, in few requests for few units. Leaves out keys without an item."""

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        """The same, but each item may be as it was at an earlier moment, or not be there yet. DynamoDB takes half the price for
        such a read, and sets no bound on how old the answer is."""

    def query(self, query: Query) -> list[Item]:
        """Reads one index to the last page. The answer is a hint: the index may be late."""

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of one index, or, strongly consistent, of the partition of the table with this key. Starts
        behind `after`, the end of an earlier page."""

    def partition(self, pk: str) -> list[Item]:
        """Reads all items of one partition of the table, strongly consistent, by sort key: progress and edges."""

    def items(self, pk: str) -> Iterator[Item]:
        """The same items, a page at a time: for the rows of an entity, which may be many. Live work never uses this."""

    def walk(self, source: Query | str, without: str) -> Iterator[Key]:
        """The keys of the items of a query, or of the partition of the table with this key, page by page, eventually consistent.
        Leaves out items with the attribute `without`, which indexes show (`table.SHOWN`). For counts and samples of any number of
        items."""

    def scan(self, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of the whole table, strongly consistent, in the store's own order. Starts behind `after`,
        the end of an earlier page. Live work never uses this."""


def read_alone(store: Store, read: Read) -> Page:
    """The answer to one read. Raises the errors of the store."""
    source, after, limit = read
    if limit is not None:
        return store.page(source, after, limit)
    return Page(store.partition(source) if isinstance(source, str) else store.query(source), None)


def write_alone(store: Store, request: Write | Delete) -> WriteOutcome:
    """The outcome of one write or delete. Raises the errors of the store."""
    return store.delete(request) if isinstance(request, Delete) else store.write(request)


def evaluate_write(old: Item | None, write: Write, values: dict[str, Any]) -> tuple[WriteOutcome, Item | None]:
    """The outcome of a write over the stored item, and the item that the store keeps afterwards. `values`: the attributes that
    the write sets, as `limits.storable` returns them."""
    if not holds(write.when, old):
        return (Refused(old) if fits(values, MAX_ITEM_BYTES) else TooLarge()), old
    new = updated(old, write, values)
    if not fits(new, MAX_ITEM_BYTES):
        return TooLarge(), old
    return Done(None if write.also else old), new


def evaluate_delete(old: Item | None, delete: Delete) -> tuple[Done | Refused, Item | None]:
    """The outcome of a delete over the stored item, and the item that the store keeps afterwards."""
    return (Done(old), None) if holds(delete.when, old) else (Refused(old), old)


def updated(old: Item | None, write: Write, values: dict[str, Any]) -> Item:
    """The item after the write. Copies read the item before the write. Raises Terminal for a sum that no store holds exactly."""
    if write.add:
        values = {**values, **_sums(old or {}, write)}
    if not old:
        return {"PK": write.key.pk, "SK": write.key.sk, **values}
    new = {**old, **values}
    for target, source in write.copy.items():
        if source in old:
            new[target] = old[source]
        else:
            new.pop(target, None)
    for name in write.remove:
        new.pop(name, None)
    return new


def _sums(old: Item, write: Write) -> dict[str, Any]:
    try:
        return {name: canonical(_EXACT.add(old.get(name, 0), number)) for name, number in write.add.items()}
    except ValueError as error:
        raise Terminal(f"{write.key.pk} / {write.key.sk}: adding: {error}") from None


def holds(when: Condition | None, item: Item | None) -> bool:
    """Whether the condition of a request holds over the stored item."""
    if when is None:
        return True
    if item is None:
        return not isinstance(when, Equals)
    if isinstance(when, Equals):
        return when.attribute in item and encode(item[when.attribute]) == encode(canonical(when.value))
    if isinstance(when, AbsentOrWithin):
        stored = item.get(when.attribute)
        return _below(stored, when.end) and not _below(stored, when.start) and when.lacks not in item
    return isinstance(when, AbsentOrBelow) and _below(item.get(when.attribute), when.value)


def _below(stored: Any, value: Any) -> bool:
    """Whether `stored < value`, as in DynamoDB: a missing attribute, or one of another type, is below nothing."""
    if isinstance(stored, str) and isinstance(value, str):
        return stored < value  # as most are
    if stored is None or isinstance(stored, (str, bool, list, dict)) or isinstance(value, str):
        return False
    return bool(stored < value)
