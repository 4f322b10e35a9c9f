"""A store that logs its requests, and rows for it."""

from collections.abc import Collection
from typing import Any

from processor.engine.plan.step import Request, Step
from statestore.items import encode_version
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Delete, Done, Item, Page, Query, Refused, Write, WriteOutcome

V = [encode_version(0, 0, n) for n in range(10)]
ADA, BOB, CYD = (Key("TABLE#user", name) for name in ("ada", "bob", "cyd"))
STARS = Query("GSI_1", "ice", "star")


class LoggingStore(MemoryStore):
    """A store that logs its requests. Its indexes show a write 10 seconds later."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.seconds = 0.0
        super().__init__(lag=10, clock=lambda: self.seconds)

    def write(self, write: Write) -> WriteOutcome:
        self.log.append(write)
        return super().write(write)

    def delete(self, delete: Delete) -> Done | Refused:
        self.log.append(delete)
        return super().delete(delete)

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        self.log.append(("get", *keys))
        return super().get(keys)

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        self.log.append(("get weak", *keys))
        return super().get_weak(keys)

    def query(self, query: Query) -> list[Item]:
        self.log.append(query)
        return super().query(query)

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        self.log.append(("page", source, after, limit))
        return super().page(source, after, limit)

    def partition(self, pk: str) -> list[Item]:
        self.log.append(("partition", pk))
        return super().partition(pk)


def star(name: str) -> Key:
    return Key("TABLE#star", name)


def put(store: LoggingStore, key: Key, version: str = V[1], **values: Any) -> Item:
    """Stores an item, which the indexes show at once; returns it."""
    MemoryStore.write(store, Write(key, {"_f": 1, "_v": version, "_indexed_v": version, **values}))
    store.seconds += 10
    return MemoryStore.get(store, [key])[key]


def asks(*turns: tuple[Request, ...]) -> Step[list[Any]]:
    """A step that asks these requests, turn by turn; its result: all answers."""
    answers: list[Any] = []
    for requests in turns:
        answers += yield requests
    return answers
