"""Items, for the tests of every store."""

from typing import Any

from statestore.keys import Key, index_row
from statestore.limits import is_slot
from statestore.store import Done, Item, Store, Write

KEY = Key("TABLE#user", "octocat")


def item(key: Key = KEY, **attributes: Any) -> dict[str, Any]:
    """An item as a store returns it. The store names an item with a slot for its indexes."""
    name = {"GSI_SK": index_row(key)} if any(map(is_slot, attributes)) else {}
    return {"PK": key.pk, "SK": key.sk, **name, **attributes}


def put(store: Store, key: Key = KEY, **attributes: Any) -> None:
    assert isinstance(store.write(Write(key=key, set=attributes)), Done)


def read(store: Store, key: Key = KEY) -> Item | None:
    return store.get([key]).get(key)
