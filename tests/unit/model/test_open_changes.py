"""Open changes: one entry a row, durable, taken over, settled with evidence, closed in the end."""

import pytest

from processor.batch import tidy
from processor.model.open_changes import (
    PARTITION,
    ROWS_AN_ITEM,
    SPARE_ITEMS,
    Entry,
    OpenChanges,
    Settled,
    durable,
    item_key,
    read_durable,
)
from statestore.keys import Key
from statestore.memory import MemoryStore

ROW = Key("TABLE#star", "7")


def entry(version: int, key: str = "a", *, row: Key = ROW, former: frozenset[tuple[int, str]] = frozenset()) -> Entry:
    return Entry(entity="star", key=row, version=f"{version:03d}", slots=((1, key),), former=former)


def item(n: int) -> Key:
    return item_key(1, n, "star.0", 0)


@pytest.fixture
def changes() -> OpenChanges:
    return OpenChanges(wait=5, settle=5)


def found(changes: OpenChanges, *, shown: bool) -> list[Settled]:
    return [Settled(entry=e, version=e.version, slots=e.slots, shown=shown) for e in changes.entries.values()]


def test_a_newer_change_of_a_row_takes_over_every_key_of_the_one_before(changes: OpenChanges) -> None:
    changes.opened(item(1), [entry(1, "a", former=frozenset({(1, "z")}))], now=0)
    changes.opened(item(2), [entry(2, "b")], now=1)
    assert len(changes.entries) == 1
    assert all(ROW in changes.places.get(("GSI_1", key), ()) for key in ("z", "a", "b"))


def test_an_older_change_that_comes_late_does_not_take_over(changes: OpenChanges) -> None:
    changes.opened(item(1), [entry(2, "b")], now=0)
    changes.opened(item(2), [entry(1, "a")], now=1)
    assert changes.entries[ROW].version == "002"
    assert ROW in changes.places.get(("GSI_1", "a"), ())


def test_a_row_that_changes_all_the_time_is_settled_all_the_same(changes: OpenChanges) -> None:
    for second in range(8):
        changes.opened(item(second), [entry(second)], now=second)
    assert [e.version for e in changes.due(now=8)] == ["007"]


def test_without_evidence_an_entry_is_due_again_and_with_it_closes_w_later(changes: OpenChanges) -> None:
    changes.opened(item(1), [entry(1)], now=0)
    changes.settled(found(changes, shown=False), now=5)
    assert changes.due(now=9) == []
    changes.settled(found(changes, shown=True), now=10)
    assert changes.close(now=14) == []
    assert changes.close(now=15) == [item(1)]
    assert changes.entries == {}
    assert not any(changes.places.buckets)


def test_an_entry_that_changed_while_it_was_settled_stays_open(changes: OpenChanges) -> None:
    changes.opened(item(1), [entry(1)], now=0)
    outcomes = found(changes, shown=True)
    changes.opened(item(2), [entry(2, "b")], now=5)
    changes.settled(outcomes, now=5)
    assert changes.close(now=100) == []


def test_a_durable_item_goes_only_when_none_of_its_rows_is_open(changes: OpenChanges) -> None:
    other = Key("TABLE#star", "8")
    changes.opened(item(1), [entry(1), entry(1, row=other)], now=0)
    changes.settled([o for o in found(changes, shown=True) if o.entry.key == ROW], now=5)
    assert changes.close(now=10) == []
    changes.settled(found(changes, shown=True), now=11)
    assert changes.close(now=16) == [item(1)]


def test_durable_items_are_read_back_as_they_were() -> None:
    store = MemoryStore()
    entries = [entry(1, "a#b", former=frozenset({(1, "é"), (2, "!x")})), entry(2, row=Key("TABLE#star#03", "9"))]
    store.write(durable(item(1), entries))
    (stored,) = store.partition(PARTITION)
    assert read_durable(stored) == entries


def test_a_hot_row_does_not_pile_up_items(changes: OpenChanges) -> None:
    store = MemoryStore()
    most = 0
    for second in range(5 * SPARE_ITEMS):
        entries = [entry(second), entry(1, row=Key("TABLE#star", f"once {second}"))]
        store.write(durable(item(second), entries))
        changes.opened(item(second), entries, now=second)
        changes.settled([o for o in found(changes, shown=True) if o.entry.key != ROW], now=second)
        tidy(changes, store, 1, second, second)
        most = max(most, len(store.partition(PARTITION)))
    assert most <= SPARE_ITEMS + 8
    held = [e for stored in store.partition(PARTITION) for e in read_durable(stored)]
    assert ROW in changes.entries
    assert max(e.version for e in held if e.key == ROW) == changes.entries[ROW].version


def test_gathering_keeps_all_that_is_open(changes: OpenChanges) -> None:
    rows = [Key("TABLE#star", str(n)) for n in range(ROWS_AN_ITEM + 3)]
    for n, row in enumerate(rows):
        changes.opened(item(n), [entry(1, row=row)], now=0)
    gathered, replaced = changes.gathered(1, 2)
    assert [len(held) for held in gathered.values()] == [ROWS_AN_ITEM, 3]
    assert len(replaced) == len(rows)
    changes.settled(found(changes, shown=True), now=5)
    assert set(changes.close(now=10)) == set(gathered)


def test_a_start_takes_over_what_stands_in_the_row(changes: OpenChanges) -> None:
    stands = {"PK": ROW.pk, "SK": ROW.sk, "_f": 1, "_v": "005", "GSI_1": "c", "prev_1": "b", "id": 7}
    write = durable(item(1), [entry(1, "a")])
    changes.reloaded([{"PK": PARTITION, "SK": write.key.sk, **write.set}], {ROW: stands}, now=0)
    taken = changes.entries[ROW]
    assert (taken.version, taken.slots) == ("005", ((1, "c"),))
    assert taken.former >= {(1, "a")}
