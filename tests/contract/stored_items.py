"""Items, for the tests of every store."""

from typing import Any

from statestore.keys import Key
from statestore.store import Done, Item, Store, Write

KEY = Key("TABLE#user", "octocat")


def item(key: Key = KEY, **attributes: Any) -> dict[str, Any]:
    return {"PK": key.pk, "SK": key.sk, **attributes}


def put(store: Store, key: Key = KEY, **attributes: Any) -> None:
    assert isinstance(store.write(Write(key=key, set=attributes)), Done)


def read(store: Store, key: Key = KEY) -> Item | None:
    return store.get([key]).get(key)
