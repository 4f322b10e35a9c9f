"""A start after a crash asks the table the same requests, and reads as many items, whatever number of rows it holds."""

from collections import Counter
from collections.abc import Collection
from typing import Any

from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.values.record import Record
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Item, Page, Query
from tests.unit.engine.rounds.logged_job import PLAN


class CountingStore(MemoryStore):
    """Counts the items that it hands out."""

    def __init__(self) -> None:
        super().__init__()
        self.handed = 0

    def get(self, keys: Collection[Key]) -> dict[Key, Item]:
        found = super().get(keys)
        self.handed += len(found)
        return found

    def get_weak(self, keys: Collection[Key]) -> dict[Key, Item]:
        found = super().get_weak(keys)
        self.handed += len(found)
        return found

    def page(self, source: Query | str, after: Key | None, limit: int) -> Page:
        found = super().page(source, after, limit)
        self.handed += len(found.items)
        return found

    def partition(self, pk: str) -> list[Item]:
        found = super().partition(pk)
        self.handed += len(found)
        return found

    def query(self, query: Query) -> list[Item]:
        found = super().query(query)
        self.handed += len(found)
        return found


def recovery(rows: int) -> tuple[Counter[str], int]:
    """The requests of a start and of the first batch after it, and the items that they read. The run before left an open
    change."""
    store = CountingStore()
    before = Trial(plan=PLAN, settings=Settings(), other_store=store)
    before.driver.start()
    before.driver.adopt(PLAN)
    before.batch(_record("user", n, {"id": n, "name": f"name{n}"}) for n in range(rows))
    before.batch(_record("star", n, {"id": n, "who": f"name{n}"}) for n in range(rows))
    before.finish()
    before.batch([_record("star", rows, {"id": 0, "who": "name1"})])
    asked, handed = store.requests.copy(), store.handed

    after = Trial(plan=PLAN, settings=Settings(), other_store=store, run=2)
    after.driver.start()
    after.driver.adopt(PLAN)
    after.batch([_record("star", rows + 1, {"id": 1, "who": "name2"})])
    assert after.tally["published"] == 2
    return store.requests - asked, store.handed - handed


def _record(entity: str, offset: int, row: dict[str, Any]) -> Record:
    key = f'{{"id": {row["id"]}}}'.encode()
    value = str(row).replace("'", '"').encode()
    return Record(topic=entity, partition=0, offset=offset, epoch=1, key=key, value=value)


def test_recovery_does_not_depend_on_the_number_of_rows() -> None:
    few, many = recovery(10), recovery(1_000)
    assert few == many
    assert few[0].total() < 40  # 16 of them for the partitions of open changes
