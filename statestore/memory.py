"""The plainest store, which defines what a store means: a map of items, and a map per index, in this process.

Promises: the outcomes, errors, order and request counts of DynamoDB, one write at a time. Returned items are the stored
ones: they are never changed afterwards, and the caller must not change them. Does not: keep anything when the process
ends, expire items by their TTL, or show an index late.
"""

from collections import Counter
from collections.abc import Collection
from operator import attrgetter
from threading import Lock
from typing import Any

from statestore.errors import Terminal
from statestore.keys import Key
from statestore.limits import check_condition, check_key, check_query, storable
from statestore.requests import MAX_KEYS
from statestore.store import (
    MAX_ITEM_BYTES,
    Absent,
    AbsentOrBelow,
    Condition,
    Delete,
    Done,
    Equals,
    Item,
    Outcome,
    Query,
    Refused,
    TooLarge,
    Write,
)
from statestore.table import MAX_SLOTS, slot_names
from statestore.values import canonical, encode, fits

_Index = dict[str, dict[Key, Item]]
"""Slot value -> key -> item."""


class MemoryStore:
    """A `Store` of `slots` indexes."""

    def __init__(self, slots: int = MAX_SLOTS) -> None:
        self.requests: Counter[str] = Counter()
        self._items: dict[Key, Item] = {}
        self._indexes: dict[str, _Index] = {name: {} for name in slot_names(slots)}
        self._lock = Lock()

    def write(self, write: Write) -> Outcome:
        """Sends one conditional update and says what stood there."""
        values = storable(write)
        with self._lock:
            self.requests["UpdateItem"] += 1
            old = self._items.get(write.key)
            if not _holds(write.when, old):
                return Refused(old) if fits(values, MAX_ITEM_BYTES) else TooLarge()
            new = _updated(old, write, values)
            if not fits(new, MAX_ITEM_BYTES):
                return TooLarge()
            self._replace(write.key, old, new)
            return Done(old)

    def delete(self, delete: Delete) -> Done | Refused:
        """Sends one conditional delete and says what stood there."""
        check_key(delete.key)
        check_condition(delete.key, delete.when)
        with self._lock:
            self.requests["DeleteItem"] += 1
            old = self._items.get(delete.key)
            if not _holds(delete.when, old):
                return Refused(old)
            self._replace(delete.key, old, None)
            return Done(old)

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        """Reads items by key, strongly consistent, in as few requests as there can be; absent ones are left out."""
        unique = dict.fromkeys(keys)
        for key in unique:
            check_key(key)
        with self._lock:
            self.requests["BatchGetItem"] += -(-len(unique) // MAX_KEYS)
            return {key: self._items[key] for key in unique if key in self._items}

    def query(self, query: Query) -> list[Item]:
        """Reads one index: by partition key, within one by the order of arrival (DynamoDB promises none)."""
        check_query(query)
        index = self._indexes.get(query.slot)
        if index is None:
            raise Terminal(
                f"no index {query.slot}: the table has {len(self._indexes)} slots; create it with more of them"
            )
        with self._lock:
            self.requests["Query"] += 1
            found = index.get(query.value, {})
            if query.pk is not None:
                return [item for key, item in found.items() if key.pk == query.pk]
            prefix = query.pk_prefix or ""
            return [found[key] for key in sorted(found, key=attrgetter("pk")) if key.pk.startswith(prefix)]

    def _replace(self, key: Key, old: Item | None, new: Item | None) -> None:
        if new is None:
            self._items.pop(key, None)
        else:
            self._items[key] = new
        self._index(key, old or {}, new or {})

    def _index(self, key: Key, old: Item, new: Item) -> None:
        """Shows a row in every index: the old keys are dropped and the new ones appear together."""
        for slot in self._indexes.keys() & old.keys():
            if new.get(slot) != old[slot]:
                rows = self._indexes[slot][old[slot]]
                del rows[key]
                if not rows:
                    del self._indexes[slot][old[slot]]
        for slot in self._indexes.keys() & new.keys():
            self._indexes[slot].setdefault(new[slot], {})[key] = new


def _updated(old: Item | None, write: Write, values: dict[str, Any]) -> Item:
    """The item after the write; copies see the item before it."""
    new = {**old, **values} if old else {"PK": write.key.pk, "SK": write.key.sk, **values}
    for target, source in write.copy.items():
        if old and source in old:
            new[target] = old[source]
        else:
            new.pop(target, None)
    for name in write.remove:
        new.pop(name, None)
    return new


def _holds(when: Condition | None, item: Item | None) -> bool:
    match when:
        case None:
            return True
        case Absent():
            return item is None
        case AbsentOrBelow(attribute, value):
            return item is None or _below(item.get(attribute), value)
        case Equals(attribute, value):
            return item is not None and attribute in item and encode(item[attribute]) == encode(canonical(value))


def _below(stands: Any, value: Any) -> bool:
    """Whether `stands < value`, as DynamoDB has it: a missing attribute, or one of another type, is below nothing."""
    texts = isinstance(stands, str), isinstance(value, str)
    if None in (stands, value) or isinstance(stands, bool | list | dict) or texts[0] != texts[1]:
        return False
    return bool(stands < value)
