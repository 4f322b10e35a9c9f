"""What a conditional write does to an item: its outcome, and the item afterwards. For each store that evaluates writes itself."""

from typing import Any

from statestore.attribute_values import canonical, encode, fits
from statestore.store import (
    MAX_ITEM_BYTES,
    AbsentOrBelow,
    AbsentOrWithin,
    Condition,
    Delete,
    Done,
    Equals,
    Item,
    Refused,
    TooLarge,
    Write,
    WriteOutcome,
)


def evaluate_write(old: Item | None, write: Write, values: dict[str, Any]) -> tuple[WriteOutcome, Item | None]:
    """The outcome of a write over the stored item, and the item that the store keeps afterwards. `values`: the attributes that
    the write sets, as `limits.storable` returns them."""
    if not holds(write.when, old):
        return (Refused(old) if fits(values, MAX_ITEM_BYTES) else TooLarge()), old
    new = updated(old, write, values)
    return (Done(old), new) if fits(new, MAX_ITEM_BYTES) else (TooLarge(), old)


def evaluate_delete(old: Item | None, delete: Delete) -> tuple[Done | Refused, Item | None]:
    """The outcome of a delete over the stored item, and the item that the store keeps afterwards."""
    return (Done(old), None) if holds(delete.when, old) else (Refused(old), old)


def updated(old: Item | None, write: Write, values: dict[str, Any]) -> Item:
    """The item after the write. Copies read the item before the write."""
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
        return _below(stored, when.end) and not _below(stored, when.start)
    return isinstance(when, AbsentOrBelow) and _below(item.get(when.attribute), when.value)


def _below(stored: Any, value: Any) -> bool:
    """Whether `stored < value`, as in DynamoDB: a missing attribute, or one of another type, is below nothing."""
    if isinstance(stored, str) and isinstance(value, str):
        return stored < value  # as most are
    if stored is None or isinstance(stored, (str, bool, list, dict)) or isinstance(value, str):
        return False
    return bool(stored < value)
