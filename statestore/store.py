"""What a store must do: four requests over items, and their answers, as plain values.

An item is a flat map from attribute name to value (str, int, Decimal, bool, None, or a list or map of these); `PK` and `SK` are
among its attributes, and `GSI_1 .. GSI_n` put it into the indexes. Two implementations keep one contract
(tests/contract): `statestore.memory`, the plainest, which defines the meaning, and `statestore.dynamodb`.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from statestore.keys import Key

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

Item = Mapping[str, Any]
"""An item of the table. Integral numbers come back as int, others as Decimal."""

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
class Equals:
    """Holds when an item has the key and its `attribute` equals `value`."""

    attribute: str
    value: Any


Condition = Absent | AbsentOrBelow | Equals


class Write(NamedTuple):
    """One conditional UpdateItem. All parts see the item as it was before the write.

    set: attributes to set. copy: target attribute -> source attribute, copied as it stood before; where the source is missing
    the target is removed. remove: attributes to remove. when: refused unless it holds (None: always done).
    """

    key: Key
    set: Mapping[str, Any]
    copy: Mapping[str, str] = _NOTHING
    remove: tuple[str, ...] = ()
    when: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """One conditional DeleteItem; deleting what is not there is done, unless the condition says otherwise."""

    key: Key
    when: Condition | None = None


class Query(NamedTuple):
    """All items whose `slot` (`GSI_2`) holds `value`, eventually consistent; of one partition `pk`, or of all partitions whose
    key begins with `pk_prefix`, when given."""

    slot: str
    value: str
    pk: str | None = None
    pk_prefix: str | None = None


class Page(NamedTuple):
    """A part of what a query finds. `after`: where the next one goes on, None at the end. An empty page need not be the last."""

    items: list[Item]
    after: Key | None


class Done(NamedTuple):
    """The write was done; `old` is the item that stood there before."""

    old: Item | None


class Refused(NamedTuple):
    """The condition did not hold; `current` is the item that stands there."""

    current: Item | None


@dataclass(frozen=True, slots=True)
class TooLarge:
    """The item would pass 400 KB; nothing was written."""


Outcome = Done | Refused | TooLarge


class Store(Protocol):
    """A table with its indexes.

    `requests` counts what was asked of DynamoDB, by the API's names (UpdateItem, DeleteItem, BatchGetItem, Query): pages and
    repeats count each. All methods raise `statestore.errors.Transient` after their own retries, else `Terminal`.
    """

    requests: Counter[str]

    def write(self, write: Write) -> Outcome:
        """Sends one conditional update and says what stood there."""

    def delete(self, delete: Delete) -> Done | Refused:
        """Sends one conditional delete and says what stood there."""

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, strongly consistent, in as few requests as there can be; keys without an item are left out."""

    def query(self, query: Query) -> list[Item]:
        """Reads one index to the last page. A hint: it may be late."""

    def page(self, of: Query | str, after: Key | None, limit: int) -> Page:
        """Reads at most `limit` items of one index, or of the partition of the table with this key, strongly consistent, from
        where an earlier page ended."""

    def partition(self, pk: str) -> list[Item]:
        """Reads all items of one partition of the table, strongly consistent, by sort key: bookkeeping and edges."""

    def items(self, pk: str) -> Iterator[Item]:
        """The same, a page at a time: the rows of an entity, which may be many. Never on the live path."""

    def walk(self, of: Query | str, without: str) -> Iterator[Key]:
        """The keys of what a query finds, or of the partition of the table with this key, page by page, eventually consistent;
        items that have the attribute `without` are left out. For counting and sampling, however many there are."""
