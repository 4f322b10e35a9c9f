"""What every store does with a copy of all items, as a source and as a target."""

from decimal import Decimal
from typing import Any

import pytest

from statestore.copy_items import copy_items
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Item, Query, Store
from tests.contract.conftest import SLOTS
from tests.contract.stored_items import item, put

OWN = Key("IDENTITY", "table")
KEYS = [Key("TABLE#star", f"{n:02d}") for n in range(7)] + [Key("EDGE#star#a=\x00\x01b", "é"), Key("RUNS", "1")]
ITEMS: list[dict[str, Any]] = [
    {"_v": "1", "GSI_1": "ice", "GSI_3": "\x00", ".a": ""},
    {"_v": "1", "GSI_1": "ice", "prev_1": "fire", "_edges_before": "[]"},
    {"_v": "1", ".n": 10**30, ".m": Decimal("1.50"), ".t": True},
    {"_v": "1", ".null": None, ".bytes": b"\x00\xff"},
    {"_v": "1", ".list": [1, "a", {"b": None}], ".map": {"N": "1"}},
    {"_v": "1", ".text": "\U0001f600"},
    {"_v": "1", "GSI_2": "x" * 1024},
    {"_f": 1},
    {"_f": 1, "ttl": 2**40},
]


def fill(store: Store) -> None:
    for key, attributes in zip(KEYS, ITEMS, strict=True):
        put(store, key, **attributes)
    put(store, OWN, id="a registry")


def everything(store: Store) -> list[Item]:
    return sorted(store.scan(None, 1_000).items, key=key_of_item)


@pytest.mark.counted
def test_a_scan_reads_each_item_once_in_pages(store: Store) -> None:
    fill(store)
    found: list[Item] = []
    after, pages = None, 0
    while pages == 0 or after is not None:
        items, after = store.scan(after, 4)
        found += items
        pages += 1
        assert len(items) <= 4
    expected = [*zip(KEYS, ITEMS, strict=True), (OWN, {"id": "a registry"})]
    assert sorted(found, key=key_of_item) == sorted([item(key, **rest) for key, rest in expected], key=key_of_item)
    assert store.requests["Scan"] == pages


def test_an_empty_table_has_no_items(store: Store) -> None:
    assert store.scan(None, 10) == ([], None)


def test_items_come_back_from_another_store_as_they_were(store: Store) -> None:
    first, last = MemoryStore(SLOTS), MemoryStore(SLOTS)
    fill(first)
    for source, target in ((first, store), (store, last)):
        counts = copy_items(source, target, without=OWN, report=lambda _: None)
        assert (counts.written, counts.equal) == (len(KEYS), len(KEYS))
    assert everything(last) == [one for one in everything(first) if one["PK"] != OWN.pk]
    assert [one["SK"] for one in store.query(Query("GSI_1", "ice"))] == ["00", "01"]
