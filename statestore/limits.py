"""Refuses requests that DynamoDB or Postgres does not take, before they are sent: so every store and every emulator refuses the
same.

Each error is a `Terminal` that names the key, the attribute and the cause, and says what to do. Does not: read the table; the
store itself finds an item that grows past its limit.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from statestore.keys import LIMIT, Key, index_row, stored_bytes
from statestore.store import Absent, AbsentOrWithin, Condition, Equals, Query, Terminal, Write
from statestore.table import ROW, range_name
from statestore.values import canonical

MAX_CHANGES = 355
"""The most attributes in one write. An update expression has 4 KB: a set takes at most 10 bytes of it, a copy 30. A row has no
more copies than slots and one more, so 355 always fit."""

MAX_KEYS = 100
"""Keys that one BatchGetItem takes."""

_ORDERED = (str, int, Decimal)
_SLOT = re.compile(r"GSI_\d+")
_COPIED = re.compile(r"prev_\d+|_edges_before")
_SOURCE = re.compile(r"GSI_\d+|_edges")


def check_key(key: Key) -> None:
    """Raises Terminal for a key that no item can have."""
    pk, sk = key
    if not (type(pk) is str and pk.isascii() and pk and len(pk) * 2 <= LIMIT):
        _check_text(key, "PK", pk)
    if not (type(sk) is str and sk.isascii() and sk and len(sk) * 2 <= LIMIT):
        _check_text(key, "SK", sk)


def check_condition(key: Key, when: Condition | None) -> None:
    """Raises Terminal for a condition with a value that cannot be compared."""
    if when is None or isinstance(when, Absent):
        return
    for value in (when.start, when.end) if isinstance(when, AbsentOrWithin) else (when.value,):
        kind = type(value)
        if kind is str and value.isascii():
            continue
        if not isinstance(when, Equals) and kind not in _ORDERED:
            raise Terminal(
                f"{key_text(key)}: {when.attribute} has no order against a {kind.__name__}: give a text or a number"
            )
        try:
            canonical(value)
        except ValueError as error:
            raise _unstorable(key, when.attribute, error) from None


def check_query(query: Query) -> None:
    """Raises Terminal for a query that DynamoDB refuses."""
    if query.row is not None:
        check_key(query.row)
        if query.entity is not None:
            raise Terminal(f"a query of {query.slot} with both entity and row: give one of them")
    if query.start and query.entity is None:
        raise Terminal(f"a query of {query.slot} with a start, but without an entity: give both")
    if query.value == "" or query.entity == "":
        name = "entity" if query.value else "value"
        raise Terminal(f"a query of {query.slot} with an empty {name}: no index holds an empty key, so do not ask")


def storable(write: Write) -> dict[str, Any]:
    """The attributes that a write sets, as a reader will get them. A write of a slot also sets the item's name in the indexes,
    unless it gives the name in an index with an order.

    Raises Terminal where DynamoDB would refuse."""
    check_key(write.key)
    check_condition(write.key, write.when)
    if write.also and any(one.when or one.also for one in write.also):
        raise Terminal(
            f"{key_text(write.key)}: a write of a transaction has a condition: only the first one may have it"
        )
    names = (*write.set, *write.add) if write.add else tuple(write.set)
    slots, ranges, complaint = _names(names, tuple(write.copy.items()), write.remove)
    if complaint:
        raise Terminal(f"{key_text(write.key)}: {complaint}")
    values = dict(write.set)
    name = ""
    try:
        for name, value in write.set.items():
            if (
                type(value) is str
                and value.isascii()
                and value
                and (len(value) * 2 <= LIMIT or not (name in slots or name in ranges))
            ):
                continue  # as most are
            if name in slots or name in ranges:
                values[name] = _check_text(write.key, name, value)
            elif type(value) is str and not value and is_copied(name):
                raise ValueError("an empty text means missing there; remove it instead")
            else:
                values[name] = canonical(value)
    except ValueError as error:
        raise _unstorable(write.key, name, error) from None
    if slots:
        values[ROW] = index_row(write.key)
        for name in ranges:
            values.setdefault(name, values[ROW])
    return values


def is_slot(attribute: str) -> bool:
    """Whether an attribute puts its item into an index: `GSI_1`, but not `GSI_code`."""
    return _SLOT.fullmatch(attribute) is not None


@lru_cache(maxsize=65536)
def is_copied(attribute: str) -> bool:
    """Whether an attribute may be the target of a copy: `prev_1` or `_edges_before`, but not `prev_name`. In a target, an empty
    text means that the source was missing (see `requests`)."""
    return _COPIED.fullmatch(attribute) is not None


def key_text(key: Key) -> str:
    """The key as messages show it, at most 200 characters."""
    return f"{key.pk} / {key.sk}"[:200]


@lru_cache(maxsize=4096)
def _names(
    sets: tuple[str, ...], copies: tuple[tuple[str, str], ...], removes: tuple[str, ...]
) -> tuple[frozenset[str], frozenset[str], str]:
    """The slots among the attributes that a write sets, the range keys that only these slots have, and the error in its names, or
    "". The writes of an entity have few different sets of names, so the cache serves most calls."""
    changes = len(sets) + len(copies) + len(removes)
    complaint = ""
    if changes > MAX_CHANGES:
        complaint = f"{changes} attributes in a write, {MAX_CHANGES} at most: nest them in a map"
    elif len({"", "PK", "SK", ROW, *sets, *dict(copies), *removes}) != changes + 4:
        complaint = f"the write names an attribute twice, PK, SK, {ROW}, or none: name each attribute once"
    for target, source in copies:
        if not is_copied(target) or not _SOURCE.fullmatch(source):
            complaint = complaint or f"{source} cannot be copied to {target}: copy a GSI_k to a prev_k"
    slots = frozenset(filter(is_slot, sets))
    ranges = frozenset(map(range_name, slots)) - {ROW}
    if stray := sorted(name for name in sets if name.startswith(f"{ROW}_") and name not in ranges):
        complaint = complaint or f"the write sets {stray[0]} without its slot: set both"
    return slots, ranges, complaint


def _check_text(key: Key, name: str, value: Any) -> str:
    if type(value) is not str or not value:
        raise Terminal(f"{key_text(key)}: {name} is {value!r}: a key is a non-empty text; a row without one omits it")
    try:
        size = stored_bytes(canonical(value))
    except ValueError as error:
        raise _unstorable(key, name, error) from None
    if size > LIMIT:
        raise Terminal(
            f"{key_text(key)}: {name} has {size} bytes, at most {LIMIT} are possible (U+0000 and U+0001 have two): encode it "
            "with statestore.keys"
        )
    return value


def _unstorable(key: Key, name: str, error: ValueError) -> Terminal:
    return Terminal(f"{key_text(key)}: attribute {name}: {error}")


@dataclass(frozen=True, slots=True)
class RequestNames:
    """Names requests. `show_keys`: whether by the keys of rows, or only by their partitions."""

    show_keys: bool

    def row(self, key: Key) -> str:
        """The row with this key."""
        return key_text(key) if self.show_keys else _without_values(key.pk)

    def reading(self, source: Query | str) -> str:
        """A read of an index, or of a partition."""
        if isinstance(source, str):
            return f"reading partition {source if self.show_keys else _without_values(source)}"
        return f"querying {source.slot}" + (f" for {source.value!r}" if self.show_keys else "")


def _without_values(pk: str) -> str:
    """A partition key. The partition of edges ends with a value of the rows."""
    return pk.partition("=")[0]
