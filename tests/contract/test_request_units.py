"""The metered store and DynamoDB Local charge the request units that AWS publishes.

The rules are those of the Amazon DynamoDB Developer Guide, read in November 2026, in our words. Its pages are at
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ under these names:

    CapacityUnitCalculations.html   "DynamoDB item sizes and formats": the bytes of names and values
    read-write-operations.html      "DynamoDB read and write operations": the units of items, answers and refused writes
    GSI.html                        "Using Global Secondary Indexes", section "Write capacity units": the writes of an index

DynamoDB Local stays out where it differs from these pages: it charges nothing for an empty answer or a missing key, and names no
units for a refused write. moto charges half a unit or a unit for any size, so it stays out of all tests here.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Protocol

import pytest

from statestore.keys import Key
from statestore.memory import MeteredStore
from statestore.store import Absent, Delete, Equals, Query, Refused, Store, Write
from tests.contract.conftest import SLOTS, Doorway

KEY = Key("TABLE#star", "a")
KB_3: dict[str, Any] = {"_indexed": "x" * 3_000}
"""Makes an item of three write units, which its indexes show whole."""
UNSHOWN: dict[str, Any] = {"body": "x" * 3_000}
"""The same of an item of which indexes show only the keys."""


class Meter(Protocol):
    """A store that charges. `units`: the write units of the table and of its indexes, and the read units, so far."""

    store: Store

    def units(self) -> tuple[float, float, float]: ...


class OwnMeter:
    def __init__(self) -> None:
        self.store: Store = MeteredStore(SLOTS)

    def units(self) -> tuple[float, float, float]:
        store = self.store
        assert isinstance(store, MeteredStore)
        return store.written - store.copied, store.copied, float(store.read_units)


class LocalMeter:
    """DynamoDB Local. Asks for the units of each request between the store and its client."""

    def __init__(self, doorway: Doorway) -> None:
        store = doorway("units")
        store.create(SLOTS)
        self._client, store._client = store._client, self  # type: ignore[assignment]
        self.store: Store = store
        self._units = (0.0, 0.0, 0.0)

    def units(self) -> tuple[float, float, float]:
        counted = sum(n for name, n in self.store.spent.items() if name.startswith("half units "))
        assert counted == 2 * sum(self._units)
        return self._units

    def send(self, operation: str, request: dict[str, Any]) -> Any:
        answer = self._client.send(operation, {**request, "ReturnConsumedCapacity": "INDEXES"})
        found = answer["ConsumedCapacity"]
        used = found[0] if isinstance(found, list) else found
        table, indexes, read = self._units
        if operation in ("UpdateItem", "DeleteItem"):
            own = used["Table"]["CapacityUnits"]
            self._units = (table + own, indexes + used["CapacityUnits"] - own, read)
        else:
            self._units = (table, indexes, read + used["CapacityUnits"])
        return answer

    def close(self) -> None:
        self._client.close()


@pytest.fixture(scope="module")
def local(dynamodb_local: str) -> Iterator[LocalMeter]:
    """DynamoDB Local, with one table for all tests here."""
    doorway = Doorway(dynamodb_local)
    yield LocalMeter(doorway)
    doorway.close()


@pytest.fixture(params=["metered", "dynamodb_local"])
def meter(request: pytest.FixtureRequest) -> Meter:
    """Each meter, over an empty table."""
    if request.param == "metered":
        return OwnMeter()
    made: LocalMeter = request.getfixturevalue("local")
    for item in made.store.partition(KEY.pk):
        made.store.delete(Delete(key=Key(item["PK"], item["SK"])))
    return made


def charged(meter: Meter, ask: Callable[[Store], object]) -> tuple[float, float, float]:
    """The units that a request takes."""
    before = meter.units()
    ask(meter.store)
    table, indexes, read = (now - then for now, then in zip(meter.units(), before, strict=True))
    return table, indexes, read


def put(store: Store, size: int, key: Key = KEY, **attributes: Any) -> None:
    """Writes an item of this many bytes, which its index shows whole. Its values are texts of one byte a character."""
    names = {"PK": key.pk, "SK": key.sk, "_indexed": "", **attributes}
    if "GSI_1" in attributes:
        names["GSI_SK"] = f"star#{key.sk}"  # the store adds it
    pad = "x" * (size - sum(len(name) + len(value) for name, value in names.items()))
    store.write(Write(key=key, set={**attributes, "_indexed": pad}))


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("", 0),
        ("abc", 3),
        ("é", 2),
        ("🐙", 4),
        (b"\x00\xff\x00", 3),
        (True, 1),
        (None, 1),
        (0, 1),
        (7, 2),
        (42, 2),
        (123, 3),
        (1_000_000, 2),
        (int("12" * 19), 20),
        (Decimal("0.05"), 2),
        (Decimal("10.5"), 3),
        (-42, 3),
        ([], 3),
        ([7, "a"], 3 + (1 + 2) + (1 + 1)),
        ({"é": True}, 3 + (1 + 2 + 1)),
    ],
)
def test_an_item_counts_the_bytes_of_its_names_and_values(meter: Meter, value: Any, size: int) -> None:
    room = 1_024 - len("PK" + KEY.pk + "SK" + KEY.sk) - len("näme".encode()) - size - len("pad")
    row = {"näme": value, "pad": "x" * room}
    assert charged(meter, lambda store: store.write(Write(key=KEY, set=row))) == (1, 0, 0)
    assert charged(meter, lambda store: store.write(Write(key=KEY, set={"pad": "x" * (room + 1)}))) == (2, 0, 0)


@pytest.mark.parametrize(
    ("before", "write", "table", "indexes"),
    [
        # The table takes the larger item, before or after the write, rounded up to 1 KB.
        (None, Write(key=KEY, set={"n": 1}), 1, 0),
        (None, Write(key=KEY, set=KB_3), 3, 0),
        ({"n": 1}, Write(key=KEY, set=KB_3), 3, 0),
        (KB_3, Write(key=KEY, set={"_indexed": ""}), 3, 0),
        (KB_3, Write(key=KEY, set={"n": 1}), 3, 0),
        ({"n": 1}, Write(key=KEY, set={"n": 1}), 1, 0),
        (KB_3, Delete(key=KEY), 3, 0),
        (None, Delete(key=KEY), 1, 0),
        # An index that shows the item neither before nor after takes nothing.
        ({"n": 1}, Write(key=KEY, set={"n": 2}), 1, 0),
        # An item that enters an index, or leaves it, takes one write of its entry there.
        (None, Write(key=KEY, set={"GSI_1": "x"}), 1, 1),
        (None, Write(key=KEY, set={"GSI_1": "x", "GSI_2": "y"}), 1, 2),
        ({"n": 1}, Write(key=KEY, set={"GSI_1": "x"}), 1, 1),
        ({"GSI_1": "x"}, Write(key=KEY, set={}, remove=("GSI_1",)), 1, 1),
        ({"GSI_1": "x", **KB_3}, Write(key=KEY, set={}, remove=("GSI_1",)), 3, 3),
        ({"GSI_1": "x", "GSI_2": "y"}, Delete(key=KEY), 1, 2),
        # A change of the index key takes two: one for the former entry, one for the new entry.
        ({"GSI_1": "x"}, Write(key=KEY, set={"GSI_1": "z"}), 1, 2),
        ({"GSI_1": "x", **KB_3}, Write(key=KEY, set={"GSI_1": "z", "_indexed": ""}), 3, 3 + 1),
        # A change of what an index shows takes one in each index; a change of the rest takes none.
        ({"GSI_1": "x", "GSI_2": "y"}, Write(key=KEY, set={"_indexed_v": "1"}), 1, 2),
        ({"GSI_1": "x", "GSI_2": "y"}, Write(key=KEY, set={"n": 1}), 1, 0),
        ({"GSI_1": "x"}, Write(key=KEY, set=UNSHOWN), 3, 0),
        ({"GSI_1": "x", **UNSHOWN}, Write(key=KEY, set={"_indexed": {"n": 1}}), 3, 1),
        ({"GSI_1": "x", **UNSHOWN}, Delete(key=KEY), 3, 1),
        ({"GSI_1": "x", "GSI_2": "y"}, Write(key=KEY, set={"GSI_1": "z"}), 1, 2),
        ({"GSI_1": "x", **KB_3}, Write(key=KEY, set={"_indexed": ""}), 3, 3),
        # A write that changes nothing takes nothing in an index.
        ({"GSI_1": "x"}, Write(key=KEY, set={"GSI_1": "x"}), 1, 0),
        ({"GSI_1": "x"}, Write(key=KEY, set={}, remove=("n",)), 1, 0),
    ],
)
def test_a_write_takes_units_for_its_item_and_for_each_index_that_it_changes(
    meter: Meter, before: dict[str, Any] | None, write: Write | Delete, table: int, indexes: int
) -> None:
    if before is not None:
        meter.store.write(Write(key=KEY, set=before))

    def send(store: Store) -> object:
        return store.delete(write) if isinstance(write, Delete) else store.write(write)

    assert charged(meter, send) == (table, indexes, 0)


@pytest.mark.parametrize(
    ("before", "write", "units"),
    [
        ({"GSI_1": "x"}, Write(key=KEY, set={"GSI_1": "z"}, when=Absent()), 1),
        (KB_3, Write(key=KEY, set={"_indexed": ""}, when=Absent()), 3),
        ({"n": 1}, Write(key=KEY, set=KB_3, when=Absent()), 3),
        (None, Write(key=KEY, set={"n": 2}, when=Equals("n", 1)), 1),
        (KB_3, Delete(key=KEY, when=Equals("n", 1)), 3),
        (None, Delete(key=KEY, when=Equals("n", 1)), 1),
    ],
)
def test_a_refused_write_takes_the_units_of_the_larger_item_and_none_of_an_index(
    before: dict[str, Any] | None, write: Write | Delete, units: int
) -> None:
    meter = OwnMeter()
    if before is not None:
        meter.store.write(Write(key=KEY, set=before))

    def send(store: Store) -> None:
        assert isinstance(store.delete(write) if isinstance(write, Delete) else store.write(write), Refused)

    assert charged(meter, send) == (units, 0, 0)


@pytest.mark.parametrize(
    ("sizes", "units"), [([1_000], 1), ([4_096], 1), ([4_097], 2), ([1_536, 6_656], 1 + 2), ([100] * 5, 5)]
)
def test_a_read_by_keys_rounds_each_item_up_by_itself(meter: Meter, sizes: list[int], units: int) -> None:
    keys = [Key("TABLE#star", str(n)) for n in range(len(sizes))]
    for key, size in zip(keys, sizes, strict=True):
        put(meter.store, size, key)
    assert charged(meter, lambda store: store.get(keys)) == (0, 0, units)
    assert charged(meter, lambda store: store.get_weak(keys)) == (0, 0, units / 2)


@pytest.mark.parametrize(
    ("ask", "units"),
    [
        (lambda store: store.query(Query("GSI_1", "x")), 2),  # 16,000 bytes are four times 4 KB, of half a unit each
        (lambda store: store.query(Query("GSI_1", "x", row=Key("TABLE#star", "3"))), 0.5),
        (lambda store: store.page(Query("GSI_1", "x"), None, 3), 1),
        (lambda store: store.partition("TABLE#star"), 4),  # strongly consistent, so twice as much
        (lambda store: store.page("TABLE#star", None, 3), 2),
        (lambda store: list(store.walk("TABLE#star", "_deleted")), 2),
        (
            lambda store: list(store.walk(Query("GSI_1", "x"), "_indexed")),
            2,
        ),  # items that a filter leaves out count too
    ],
)
def test_a_query_rounds_the_sum_of_its_items_up_once(
    meter: Meter, ask: Callable[[Store], object], units: float
) -> None:
    for n in range(8):
        put(meter.store, 2_000, Key("TABLE#star", str(n)), GSI_1="x")
    assert charged(meter, ask) == (0, 0, units)


@pytest.mark.parametrize(
    ("ask", "units"),
    [
        (lambda store: store.get([KEY]), 1),
        (lambda store: store.get_weak([KEY]), 0.5),
        (lambda store: store.query(Query("GSI_1", "x")), 0.5),
        (lambda store: store.partition("TABLE#star"), 1),
    ],
)
def test_a_read_that_finds_nothing_takes_the_units_of_the_smallest_answer(
    ask: Callable[[Store], object], units: float
) -> None:
    assert charged(OwnMeter(), ask) == (0, 0, units)


def test_a_transaction_takes_two_units_in_place_of_one() -> None:
    """`transaction-apis.html`, "Capacity management". DynamoDB Local doubles that once more, and the units of indexes, too."""
    total = Write(Key(KEY.pk, "total"), {}, add={"n": 1})
    row = Write(KEY, {"GSI_1": "octocat", "body": "x" * 3_000}, when=Absent(), also=(total,))

    assert charged(OwnMeter(), lambda store: store.write(row)) == (2 * 3 + 2 * 1, 1, 0)
