"""The writes of a turn over the stored items: their outcomes, and the rows that change. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from statestore.conditional_write import evaluate_delete, evaluate_write
from statestore.keys import Key
from statestore.limits import check_condition, check_key, storable
from statestore.postgres.parameters import NumberColumn, TextColumn, byte_column, number_column, text_column
from statestore.postgres.stored_text import item_text, shown_text, stored_key
from statestore.store import Delete, Item, Write, WriteOutcome
from statestore.table import MAX_SLOTS, ROW, TTL, slot_names

Changes = dict[Key, Item | None]
"""The items after a turn by their keys; None for an item that is gone."""
_INT64: Final = 1 << 63
_SLOTS: Final = slot_names(MAX_SLOTS)


def settable(request: Write | Delete) -> dict[str, Any]:
    """The attributes that a request sets. Raises Terminal for a request that no store takes."""
    if isinstance(request, Write):
        return storable(request)
    check_key(request.key)
    check_condition(request.key, request.when)
    return {}


def evaluate(
    requests: Sequence[Write | Delete], values: Sequence[dict[str, Any]], stored: Mapping[Key, Item]
) -> tuple[list[WriteOutcome], Changes]:
    """The outcomes of the requests, one after the other, and the items that change. `values`: as `settable` returns them."""
    outcomes: list[WriteOutcome] = []
    changes: Changes = {}
    for request, sets in zip(requests, values, strict=True):
        key = request.key
        old = changes[key] if key in changes else stored.get(key)
        outcome: WriteOutcome
        if isinstance(request, Delete):
            outcome, new = evaluate_delete(old, request)
        else:
            outcome, new = evaluate_write(old, request, sets)
        outcomes.append(outcome)
        if new is not old:
            changes[key] = new
    return outcomes, changes


def key_columns(keys: Sequence[Key]) -> tuple[TextColumn, TextColumn]:
    """The columns pk and sk."""
    return text_column([stored_key(pk) for pk, _ in keys]), text_column([stored_key(sk) for _, sk in keys])


def item_columns(items: Sequence[tuple[Key, Item]]) -> list[TextColumn | NumberColumn]:
    """All columns of these rows. A column without any value is empty."""
    columns: list[TextColumn | NumberColumn] = [*key_columns([key for key, _ in items])]
    for name in (*_SLOTS, ROW):
        values = [item.get(name) for _, item in items]
        columns.append(text_column([value and stored_key(value) for value in values] if any(values) else []))
    columns.append(number_column([_expiry(item) for _, item in items]))
    columns.append(byte_column([shown_text(item) for _, item in items]))
    columns.append(byte_column([item_text(item) for _, item in items]))
    return columns


def _expiry(item: Item) -> int | None:
    """The time after which the store may delete an item, where that is a whole number, as DynamoDB wants it."""
    ttl = item.get(TTL)
    return ttl if type(ttl) is int and -_INT64 <= ttl < _INT64 else None
