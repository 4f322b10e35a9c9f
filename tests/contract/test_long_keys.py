"""Every store keeps the keys and the slots of the longest kind, whatever their characters are."""

from collections.abc import Callable
from random import Random

import pytest

from statestore import keys
from statestore.copy_items import copy_items
from statestore.keys import LIMIT, Key
from statestore.memory import MemoryStore
from statestore.store import Delete, Done, Query, Read, Store
from tests.contract.conftest import SLOTS
from tests.contract.stored_items import item, put, read

pytestmark = pytest.mark.long_on("faulty_dynamodb_local")


def _mixed(seed: int, alphabet: str) -> Callable[[int], str]:
    """Texts without repetition: Postgres compresses a repeated one, and then stores more than its limit."""
    return lambda length: "".join(Random(seed).choices(alphabet, k=length))


PRINTED = "".join(map(chr, range(0x24, 0x7F)))
WIDE = "".join(map(chr, range(0x10000, 0x10800)))
TEXTS = {
    "plain text": _mixed(1, PRINTED),
    "U+0001 alone": lambda length: "\x01" * length,
    "U+0000 alone": lambda length: "\x00" * length,
    "U+0000 and U+0001 in any order": _mixed(2, "\x00\x01"),
    "a third of U+0001": lambda length: _mixed(3, PRINTED)(length - length // 3) + "\x01" * (length // 3),
    "text of four bytes with U+0000": _mixed(4, WIDE + "\x00" * 2000),
    "text of two bytes": _mixed(5, "".join(map(chr, range(0xA1, 0x600)))),
}
OFTEN = ("plain text", "U+0000 and U+0001 in any order", "a third of U+0001")
"""Texts of `make test`; `make test-rest` has the others."""
every_text = pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=name, marks=() if name in OFTEN else pytest.mark.rest) for name, text in TEXTS.items()],
)
LENGTHS = (255, 256, 257, 342, 511, 512, 513, 682, 683, 958, 1022, 1023, 1024, 1025, 3000)


def parts_of(length: int, text: Callable[[int], str]) -> list[list[object]]:
    """One value of this length, and a composite key of as many characters."""
    value = text(length)
    return [[value], [value[: length // 2], 7, value[length // 2 :]]]


@every_text
def test_a_row_with_keys_of_any_length_is_kept_and_found(store: Store, text: Callable[[int], str]) -> None:
    encoded = [str(keys.encode(parts)) for length in LENGTHS for parts in parts_of(length, text)]
    for sk in encoded:
        row, edge = keys.row_key("user" * 16, 12, sk), Key(keys.edge_partition("star", "username", sk), sk)
        slots = {"GSI_1": sk, "GSI_2": keys.no_key(row), "GSI_3": encoded[0]}
        put(store, row, **slots)
        put(store, edge, v="1")
        assert read(store, row) == item(row, **slots)
        assert read(store, edge) == item(edge, v="1")
        assert item(row, GSI_1=sk) in store.query(Query("GSI_1", sk))
        assert store.query(Query("GSI_2", keys.no_key(row), row=row)) == [item(row, GSI_2=keys.no_key(row))]
        assert store.delete(Delete(key=edge)) == Done(item(edge, v="1"))
    found: list[str] = []
    after = None
    while after or not found:
        items, after = store.read([Read(Query("GSI_3", encoded[0]), after, 7)])[0]
        found += [one["SK"] for one in items]
    assert sorted(found) == sorted(set(encoded))


@every_text
def test_a_copy_takes_keys_of_any_length_there_and_back(store: Store, text: Callable[[int], str]) -> None:
    first, last = MemoryStore(SLOTS), MemoryStore(SLOTS)
    encoded = {str(keys.encode(parts)) for length in LENGTHS for parts in parts_of(length, text)}
    for sk in encoded:
        put(first, keys.row_key("user", 1, sk), GSI_1=sk, _v="1")
    for source, target in ((first, store), (store, last)):
        counts = copy_items(source, target, without=Key("IDENTITY", "table"), report=lambda _: None)
        assert (counts.written, counts.equal) == (len(encoded), len(encoded))
    assert {one["SK"] for one in last.scan(None, 1_000).items} == encoded


def test_a_partition_and_a_slot_of_exactly_the_limit_are_kept(store: Store) -> None:
    longest = TEXTS["plain text"](LIMIT)
    key = Key(longest, longest[::-1])
    put(store, key, v="1")
    row = Key("TABLE#user", longest)
    put(store, row, GSI_1=longest)

    assert read(store, key) == item(key, v="1")
    assert store.query(Query("GSI_1", longest)) == [item(row, GSI_1=longest)]
