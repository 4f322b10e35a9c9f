"""Open changes: one per row, durable and merged; the driver settles them with evidence, then closes them."""

import pytest

from processor.progress.open_changes import (
    CHANGES_PER_ITEM,
    PARTITION,
    SAMPLE,
    SPARE_ITEMS,
    OpenChange,
    OpenChanges,
    SettleOutcome,
    Sight,
    changes_key,
    read_changes,
    write_changes,
)
from processor.rounds.keep_changes import close_open_changes
from statestore.keys import Key
from statestore.memory import MemoryStore

ROW = Key("TABLE#star", "7")


def change(
    version: int, key: str = "a", *, row: Key = ROW, former: frozenset[tuple[int, str]] = frozenset()
) -> OpenChange:
    return OpenChange(entity="star", key=row, version=f"{version:03d}", slots=((1, key),), former=former)


def item(n: int) -> Key:
    return changes_key(1, n, "star.0", 0)


@pytest.fixture
def changes() -> OpenChanges:
    return OpenChanges(wait=5, settle=5)


def found(changes: OpenChanges, *, shown: bool) -> list[SettleOutcome]:
    return [SettleOutcome(change=e, version=e.version, slots=e.slots, shown=shown) for e in changes.by_row.values()]


def test_a_newer_change_of_a_row_takes_over_every_key_of_the_earlier_change(changes: OpenChanges) -> None:
    changes.add(item(1), [change(1, "a", former=frozenset({(1, "z")}))], now=0)
    changes.add(item(2), [change(2, "b")], now=1)
    assert len(changes.by_row) == 1
    assert all(ROW in changes.overlay.get(("GSI_1", key), {}) for key in ("z", "a", "b"))


def test_an_older_change_that_comes_late_does_not_take_over(changes: OpenChanges) -> None:
    changes.add(item(1), [change(2, "b")], now=0)
    changes.add(item(2), [change(1, "a")], now=1)
    assert changes.by_row[ROW].version == "002"
    assert ROW in changes.overlay.get(("GSI_1", "a"), {})


def test_the_driver_also_settles_a_row_that_changes_all_the_time(changes: OpenChanges) -> None:
    for second in range(8):
        changes.add(item(second), [change(second)], now=second)
    assert [e.version for e in changes.due(now=8)] == ["007"]


def test_without_evidence_a_change_is_due_again_and_with_evidence_it_closes_w_later(changes: OpenChanges) -> None:
    changes.add(item(1), [change(1)], now=0)
    changes.record(found(changes, shown=False), now=5)
    assert changes.due(now=9) == []
    changes.record(found(changes, shown=True), now=10)
    assert changes.close(now=14) == []
    assert changes.close(now=15) == [item(1)]
    assert changes.by_row == {}
    assert not any(changes.overlay.buckets)


def test_a_change_that_live_work_saw_in_every_slot_closes_w_after_s(changes: OpenChanges) -> None:
    two = change(2)._replace(slots=((1, "a"), (2, "b")))
    changes.add(item(1), [two], now=0)
    changes.see([Sight(ROW, "GSI_1", "002"), Sight(Key("TABLE#star", "8"), "GSI_1", "009")])
    changes.confirm(now=5)
    assert [e.seen for e in changes.due(now=5)] == [{1}]
    changes.see([Sight(ROW, "GSI_2", "003")])
    changes.confirm(now=4)
    assert changes.close(now=100) == []
    changes.confirm(now=5)
    assert changes.due(now=100) == []
    assert changes.close(now=9) == []
    assert changes.close(now=10) == [item(1)]


def test_an_answer_that_lacks_a_change_or_shows_it_too_old_lags_by_the_age_of_the_change(changes: OpenChanges) -> None:
    changes.add(item(1), [change(1)], now=0)
    changes.add(item(2), [change(2)], now=3)
    late = [Sight(ROW, "GSI_1", ""), Sight(ROW, "GSI_2", "001")]
    other = [Sight(ROW, "GSI_1", "002"), Sight(Key("TABLE#star", "8"), "GSI_1", "")]
    assert changes.lags(late + other, [], now=10) == [7, 7]
    outcomes = found(changes, shown=False)
    assert changes.lags([], outcomes, now=8) == [5]
    assert changes.lags([], [outcomes[0]._replace(shown=True)], now=8) == []


def test_an_older_version_in_an_answer_is_no_evidence(changes: OpenChanges) -> None:
    changes.add(item(1), [change(2)], now=0)
    changes.see([Sight(ROW, "GSI_1", "001")])
    changes.confirm(now=5)
    assert len(changes.due(now=5)) == 1


def test_a_newer_change_of_a_row_must_be_seen_itself(changes: OpenChanges) -> None:
    changes.add(item(1), [change(1)], now=0)
    changes.see([Sight(ROW, "GSI_1", "001")])
    changes.add(item(2), [change(2)], now=1)
    changes.confirm(now=5)
    assert len(changes.due(now=5)) == 1


def test_a_change_out_of_sight_of_this_run_is_settled_although_live_work_saw_it(changes: OpenChanges) -> None:
    changes.add(item(1), [change(1)], now=0, again=True)
    changes.add(item(2), [change(2)], now=1)
    changes.see([Sight(ROW, "GSI_1", "002")])
    changes.confirm(now=5)
    assert [(e.version, e.again) for e in changes.due(now=5)] == [("002", True)]


def test_a_change_without_evidence_at_s_finds_its_roots_again_until_it_is_shown(changes: OpenChanges) -> None:
    changes.add(item(1), [change(1)], now=0)
    changes.record(found(changes, shown=False), now=5)
    assert [e.again for e in changes.by_row.values()] == [True]
    changes.record(found(changes, shown=True), now=10)
    assert [e.again for e in changes.by_row.values()] == [False]


def test_a_row_that_changed_while_it_was_settled_stays_open(changes: OpenChanges) -> None:
    changes.add(item(1), [change(1)], now=0)
    outcomes = found(changes, shown=True)
    changes.add(item(2), [change(2, "b")], now=5)
    changes.record(outcomes, now=5)
    assert changes.close(now=100) == []


def test_a_durable_item_goes_only_when_none_of_its_rows_is_open(changes: OpenChanges) -> None:
    other = Key("TABLE#star", "8")
    changes.add(item(1), [change(1), change(1, row=other)], now=0)
    changes.record([o for o in found(changes, shown=True) if o.change.key == ROW], now=5)
    assert changes.close(now=10) == []
    changes.record(found(changes, shown=True), now=11)
    assert changes.close(now=16) == [item(1)]


def test_reading_a_durable_item_gives_the_same_changes() -> None:
    store = MemoryStore()
    opened = [change(1, "a#b", former=frozenset({(1, "é"), (2, "!x")})), change(2, row=Key("TABLE#star#03", "9"))]
    store.write(write_changes(item(1), opened))
    (stored,) = store.partition(PARTITION)
    assert read_changes(stored) == opened


def test_a_row_that_changes_all_the_time_leaves_few_items(changes: OpenChanges) -> None:
    store = MemoryStore()
    most = 0
    for second in range(2 * SPARE_ITEMS):
        opened = [change(second), change(1, row=Key("TABLE#star", f"once {second}"))]
        store.write(write_changes(item(second), opened))
        changes.add(item(second), opened, now=second)
        changes.record([o for o in found(changes, shown=True) if o.change.key != ROW], now=second)
        close_open_changes(changes, store, 1, second, second)
        most = max(most, len(store.partition(PARTITION)))
    assert most <= SPARE_ITEMS + 8
    durable = [e for stored in store.partition(PARTITION) for e in read_changes(stored)]
    assert ROW in changes.by_row
    assert max(e.version for e in durable if e.key == ROW) == changes.by_row[ROW].version


def test_compaction_keeps_every_open_change(changes: OpenChanges) -> None:
    rows = [Key("TABLE#star", str(n)) for n in range(CHANGES_PER_ITEM + 3)]
    for n, row in enumerate(rows):
        changes.add(item(n), [change(1, row=row)], now=0)
    compacted, replaced = changes.compact(1, 2)
    assert [len(portion) for portion in compacted.values()] == [CHANGES_PER_ITEM, 3]
    assert len(replaced) == len(rows)
    changes.record(found(changes, shown=True), now=5)
    assert set(changes.close(now=10)) == set(compacted)


def test_a_start_takes_over_the_version_and_keys_of_the_stored_row(changes: OpenChanges) -> None:
    stored_row = {"PK": ROW.pk, "SK": ROW.sk, "_f": 1, "_v": "005", "GSI_1": "c", "prev_1": "b", "id": 7}
    write = write_changes(item(1), [change(1, "a")])
    changes.reload([{"PK": PARTITION, "SK": write.key.sk, **write.set}], {ROW: stored_row}, now=0)
    taken = changes.by_row[ROW]
    assert (taken.version, taken.slots) == ("005", ((1, "c"),))
    assert taken.former >= {(1, "a")}
    assert taken.again


def test_settling_finds_the_roots_of_one_change_in_a_hundred_again_to_watch_the_overlay(changes: OpenChanges) -> None:
    rows = [change(1, row=Key("TABLE#star", str(n))) for n in range(50 * SAMPLE)]
    changes.add(item(0), rows, 0)
    assert 25 < sum(one.again for one in changes.by_row.values()) < 100
    none = OpenChanges(wait=5, settle=5, sample=0)
    none.add(item(0), rows, 0)
    assert not any(one.again for one in none.by_row.values())
