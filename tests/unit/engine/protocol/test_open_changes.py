"""The driver's open changes: it settles each segment with evidence, and then closes it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from processor.engine.protocol.open_changes import (
    SMALL_GROUP,
    SPARE_SEGMENTS,
    OpenChanges,
    SettledSegment,
    keep_segment,
    stored_overlay,
)
from processor.engine.protocol.segments import (
    CHANGES_PER_ITEM,
    SAMPLE,
    IndexObservation,
    OpenChange,
    Segment,
    changes_key,
    item_key,
    make_segment,
    open_items,
    read_changes,
    write_changes,
)
from statestore import keys
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Item, Write

ROW = Key("TABLE#star", "7")
FIRST = changes_key(1, 0, "star.0", 0)


def change(
    version: int, key: str = "a", *, row: Key = ROW, former: frozenset[tuple[int, str]] = frozenset()
) -> OpenChange:
    return OpenChange(entity="star", key=row, version=f"{version:03d}", slots=((1, key),), former=former)


def segment(*changes: OpenChange, n: int = 0) -> Segment:
    return make_segment(changes_key(1, n, "star.0", 0).sk, changes)


def left(one: Segment, *changes: OpenChange) -> SettledSegment:
    """The outcome of a segment of which these changes stay open."""
    return SettledSegment(one.name, make_segment(f"{one.name}@9", changes), len(changes))


def laid(changes: OpenChanges, key: str) -> set[Key]:
    """The rows that the overlay lays over answers for a key."""
    return {row for group in changes.overlay().values() for row, _ in group.rows(("GSI_1", key))}


@pytest.fixture
def changes() -> OpenChanges:
    return OpenChanges(wait=5, settle=5, samples=False)


def test_a_row_is_open_once_for_each_change_and_each_change_closes_by_itself(changes: OpenChanges) -> None:
    first, second = segment(change(1, "a", former=frozenset({(1, "z")}))), segment(change(2, "b"), n=1)
    changes.add([first], now=0)
    changes.add([second], now=1)
    assert [laid(changes, key) for key in ("z", "a", "b")] == [{ROW}, {ROW}, {ROW}]
    changes.record([SettledSegment(first.name, None)], now=5)
    assert changes.close(now=10) == [FIRST]
    assert [one.version for one in changes.changes()] == ["002"]


def test_with_evidence_a_segment_closes_w_later(changes: OpenChanges) -> None:
    changes.add([segment(change(1))], now=0)
    assert changes.due(now=4) == []
    assert [one.segment.name for one in changes.due(now=5)] == [FIRST.sk]
    changes.record([SettledSegment(FIRST.sk, None)], now=5)
    assert (changes.due(now=9), changes.close(now=9)) == ([], [])
    assert changes.close(now=10) == [FIRST]
    assert (changes.count, changes.next_due(), laid(changes, "a")) == (0, None, set())


def test_without_evidence_a_change_is_left_and_due_again_and_its_durable_item_stays(changes: OpenChanges) -> None:
    other = Key("TABLE#star", "8")
    one = segment(change(1), change(1, "b", row=other))
    changes.add([one], now=0)
    again = left(one, change(3, "c", former=frozenset({(1, "a")})))
    changes.record([again], now=5)
    assert [laid(changes, key) for key in "abc"] == [{ROW}, {other}, {ROW}]
    assert (changes.close(now=10), changes.count) == ([], 1)
    assert laid(changes, "a") == laid(changes, "c") == {ROW}
    (due,) = changes.due(now=10)
    assert (due.again, [c.version for c in due.changes()]) == (True, ["003"])
    changes.record([SettledSegment(due.segment.name, None)], now=10)
    assert changes.close(now=15) == [FIRST]


def test_a_segment_that_live_work_saw_in_every_slot_closes_w_after_s(changes: OpenChanges) -> None:
    two = change(2)._replace(slots=((1, "a"), (2, "b")))
    changes.add([segment(change(1, row=Key("TABLE#star", "6")), two)], now=0)
    changes.see([IndexObservation(FIRST.sk, seen=0b0101), IndexObservation("closed", seen=1)], now=1)
    changes.confirm(now=5)
    (due,) = changes.due(now=5)
    assert [(one.key, [*one.seen]) for one in due.changes()] == [(ROW, [(1, "a")])]
    changes.see([IndexObservation(FIRST.sk, seen=0b1000)], now=5)
    changes.confirm(now=4)
    assert changes.close(now=100) == []
    changes.confirm(now=5)
    assert changes.due(now=100) == []
    assert changes.close(now=9) == []
    assert changes.close(now=10) == [FIRST]


def test_an_index_that_still_shows_a_row_that_left_it_cancels_the_evidence_of_other_answers(
    changes: OpenChanges,
) -> None:
    gone = OpenChange("star", ROW, "003", (), frozenset({(1, "a"), (1, "c")}))
    changes.add([segment(gone)], now=0)
    changes.see([IndexObservation(FIRST.sk, seen=0b01), IndexObservation(FIRST.sk, seen=0b10, lost=0b01)], now=1)
    changes.confirm(now=5)
    (due,) = changes.due(now=5)
    assert [one.seen for one in due.changes()] == [{(1, "c")}]


def test_a_row_that_an_index_shows_again_after_its_evidence_is_open_again(changes: OpenChanges) -> None:
    gone = OpenChange("star", ROW, "003", (), frozenset({(1, "a"), (1, "c")}))
    other = change(1, row=Key("TABLE#star", "6"))
    changes.add([segment(other, gone)], now=0)
    changes.record([SettledSegment(FIRST.sk, None)], now=5)
    changes.see([IndexObservation(FIRST.sk, seen=0, lost=0b1000)], now=6)
    changes.see([IndexObservation(FIRST.sk, seen=0, lost=0b0100)], now=7)
    assert changes.close(now=10) == []  # the durable item still has an open change
    assert changes.due(now=10) == []
    (due,) = changes.due(now=11)
    assert [(one.key, one.again) for one in due.changes()] == [(ROW, True)]
    changes.record([SettledSegment(due.segment.name, None)], now=11)
    assert changes.close(now=16) == [FIRST]


def test_a_row_that_left_the_indexes_before_they_showed_an_open_change_waits_for_its_marker(
    changes: OpenChanges,
) -> None:
    """Absence proves nothing of a change that no index has shown."""
    emptied = {"PK": ROW.pk, "SK": ROW.sk, "_v": "003", "_deleted": True, "ttl": 9, "_indexed_v": "003"}
    stored = {"PK": FIRST.pk, "SK": FIRST.sk, **write_changes(FIRST, [change(1)]).set}
    changes.reload([stored], lambda keys_: dict.fromkeys(keys_, emptied), now=0)
    (reloaded,) = changes.changes()
    assert (reloaded.version, reloaded.slots) == ("003", ((1, keys.no_key(ROW)),))
    assert reloaded.gone == ()


def test_an_answer_that_lacks_a_change_or_shows_it_too_old_lags_by_the_age_of_the_change(changes: OpenChanges) -> None:
    changes.add([segment(change(1))], now=0)
    changes.add([segment(change(2), n=1)], now=3)
    late = [IndexObservation(FIRST.sk, seen=0, late=2), IndexObservation("closed", seen=0, late=1)]
    assert changes.lags(late, [], now=10) == [10, 10]
    assert changes.lags([], [left(segment(change(2), n=1), change(2))], now=8) == [5]
    assert changes.lags([], [SettledSegment(FIRST.sk, None)], now=8) == []


def test_a_change_out_of_sight_of_this_run_is_settled_although_live_work_saw_it(changes: OpenChanges) -> None:
    changes.add([segment(change(1))], now=0, again=True)
    changes.see([IndexObservation(FIRST.sk, seen=1)], now=1)
    changes.confirm(now=5)
    (due,) = changes.due(now=5)
    assert [(one.version, one.again) for one in due.changes()] == [("001", True)]


def test_settling_finds_the_roots_of_one_change_in_a_hundred_again_to_watch_the_overlay() -> None:
    rows = [change(1, row=Key("TABLE#star", str(n))) for n in range(50 * SAMPLE)]
    full = sum(1 << n for n in range(len(rows)))
    for samples in (True, False):
        changes = OpenChanges(wait=5, settle=5, samples=samples)
        changes.add([segment(*rows)], 0)
        changes.see([IndexObservation(FIRST.sk, full)], 1)
        changes.confirm(5)
        again = [one.again for due in changes.due(5) for one in due.changes()]
        assert 25 < len(again) < 100 if samples else not again
        assert all(again)


def test_a_row_that_moves_all_the_time_leaves_few_segments_and_items(changes: OpenChanges) -> None:
    store = MemoryStore()
    most = 0
    for second in range(5 * SPARE_SEGMENTS):
        one = segment(change(second, f"k{second}"), change(1, row=Key("TABLE#star", f"once {second}")), n=second)
        keep_segment(one, store)
        changes.add([one], second)
        for due in changes.due(second):
            moved = [one for one in due.segment.changes() if one.key == ROW]
            changes.record([left(due.segment, moved[0]._replace(version=f"{second:03d}"))], second)
        for request in changes.clean_up(second, second):
            store.write(request) if isinstance(request, Write) else store.delete(request)
        most = max(most, len(changes.held))
    assert most <= 2 * SPARE_SEGMENTS + 16
    assert len(list(open_items(store))) <= SPARE_SEGMENTS + 16
    assert {item.sk for held in changes.held.values() for item in held.items} == {
        item["SK"] for item in open_items(store)
    }


def test_gathered_changes_are_one_for_each_row_under_all_its_keys(changes: OpenChanges) -> None:
    rows = [Key("TABLE#star", str(n)) for n in range(CHANGES_PER_ITEM + 3)]
    for n, row in enumerate([ROW, *rows]):
        one = segment(change(n, f"k{n}", row=row), n=n)
        changes.add([one], now=n)
        changes.record([left(one, change(n, f"k{n}", row=row))], now=n)
    gathered = changes.gather(1, 2)
    assert [one.size for one in gathered] == [CHANGES_PER_ITEM, 3]
    (moved,) = [one for part in gathered for one in part.changes() if one.key == ROW]
    assert moved.slots == ((1, "k8"),)
    assert moved.former == {(1, "k0")}
    assert changes.replace_left(gathered) == []
    assert laid(changes, "k0") == {ROW}
    assert [
        (one.due, one.opened_at, one.again) for one in map(changes.held.__getitem__, (g.name for g in gathered))
    ] == [(5, 0, True)] * 2
    assert len(changes.close(now=1_000)) == len(rows) + 1
    changes.record([SettledSegment(due.segment.name, None) for due in changes.due(1_000)], now=1_000)
    assert changes.close(now=2_000) == [item_key(one.name) for one in gathered]


def test_a_start_takes_over_the_version_and_keys_of_the_stored_row(changes: OpenChanges) -> None:
    stored_row = {"PK": ROW.pk, "SK": ROW.sk, "_f": 1, "_v": "005", "GSI_1": "c", "prev_1": "b", "id": 7}

    def read(keys: Iterable[Key]) -> Mapping[Key, Item]:
        return {key: stored_row for key in keys if key == ROW}

    store, gone = MemoryStore(), change(2, row=Key("TABLE#star", "8"))
    keep_segment(segment(change(1, "a"), gone), store)
    changes.reload(open_items(store), read, now=0)
    taken, same = changes.changes()
    assert (taken.version, taken.slots, taken.again) == ("005", ((1, "c"),), True)
    assert taken.former >= {(1, "a")}
    assert same == gone._replace(again=True)
    assert [read_changes(item)[0].version for item in open_items(store)] == ["001"]


def test_only_new_segments_travel_and_small_ones_travel_again_with_the_next(changes: OpenChanges) -> None:
    many = [change(1, row=Key("TABLE#star", f"many {n}")) for n in range(SMALL_GROUP)]
    travelled = []
    for n, one in enumerate(
        (segment(change(1)), segment(*many, n=1), segment(change(2), n=2), segment(change(3), n=3))
    ):
        changes.add([one], now=n)
        travelled.append({number: [s.name for s in group.segments] for number, group in changes.overlay().items()})
    names = [changes_key(1, n, "star.0", 0).sk for n in range(4)]
    assert travelled == [{1: names[:1]}, {2: names[:2]}, {2: names[:2], 3: names[2:3]}, {2: names[:2], 4: names[2:]}]
    assert changes.overlay() == changes.groups
    changes.record([SettledSegment(name, None) for name in names], now=5)
    changes.close(now=10)
    assert changes.overlay() == {}


def test_changes_that_wait_for_settling_are_counted_from_s_after_their_round(changes: OpenChanges) -> None:
    changes.add([segment(change(1), change(2, row=Key("TABLE#star", "8")))], now=100)
    changes.add([segment(change(3), n=1)], now=103)
    assert [changes.count_due(now) for now in (104, 105, 107, 108)] == [0, 2, 2, 3]
    assert changes.next_due() == 105
    changes.record([SettledSegment(FIRST.sk, None)], now=105)
    assert (changes.count_due(110), changes.count) == (1, 3)


def test_a_start_settles_what_it_reloads_s_later(changes: OpenChanges) -> None:
    stored = {"PK": FIRST.pk, "SK": FIRST.sk, **write_changes(FIRST, [change(1)]).set}
    changes.reload([stored], lambda _: {}, now=100)
    assert changes.next_due() == 105
    assert changes.lags([IndexObservation(FIRST.sk, seen=0, late=1)] * 2, [], now=107) == [7, 7]


def test_a_closed_segment_does_not_travel_again_with_the_next_ones(changes: OpenChanges) -> None:
    first, second, third = (segment(change(n), n=n) for n in range(3))
    changes.add([first, second], now=0)
    changes.overlay()
    changes.record([SettledSegment(first.name, None)], now=5)
    changes.close(now=10)
    changes.add([third], now=11)
    assert [[one.name for one in group.segments] for group in changes.overlay().values()] == [[second.name, third.name]]


def test_two_rows_of_a_segment_that_an_index_shows_again_at_two_times_are_both_open(changes: OpenChanges) -> None:
    gone = [OpenChange("star", Key("TABLE#star", row), "003", (), frozenset({(1, "a")})) for row in "678"]
    changes.add([segment(*gone)], now=0)
    changes.record([SettledSegment(FIRST.sk, None)], now=5)
    for now, lost in ((6, 0b001), (7, 0b010), (8, 0b100)):
        changes.see([IndexObservation(FIRST.sk, seen=0, lost=lost)], now)
    changes.close(now=10)
    assert [one.key.sk for one in changes.changes()] == ["6", "7", "8"]


def test_a_job_without_a_sample_settles_nothing_that_live_work_saw(changes: OpenChanges) -> None:
    rows = [change(1, row=Key("TABLE#star", str(n))) for n in range(5 * SAMPLE)]
    one = segment(*rows)
    assert one.sampled
    changes.add([one], 0)
    changes.see([IndexObservation(FIRST.sk, (1 << len(rows)) - 1)], 1)
    changes.confirm(5)
    assert changes.due(5) == []


def test_only_left_changes_that_still_wait_are_gathered(changes: OpenChanges) -> None:
    waits, ends, new = (segment(change(n, row=Key("TABLE#star", str(n))), n=n) for n in range(3))
    for one in (waits, ends):
        changes.add([one], now=0)
        changes.record([left(one, *one.changes())], now=5)
    changes.add([new], now=6)
    changes.record([SettledSegment(f"{ends.name}@9", None)], now=6)
    (gathered,) = changes.gather(1, 9)
    assert [one.key.sk for one in gathered.changes()] == ["0"]
    assert changes.replace_left([gathered]) == []
    assert {one.key.sk for one in changes.changes()} == {"0", "1", "2"}


def test_as_many_left_changes_as_fill_their_segments_are_not_fragmented(changes: OpenChanges) -> None:
    """Else each round would gather them again."""
    one = segment(*(change(n, row=Key("TABLE#star", str(n))) for n in range(CHANGES_PER_ITEM)))
    for n in range(SPARE_SEGMENTS + 1):
        copied = segment(change(n), n=n)
        changes.add([copied], now=0)
        full = replace(one, name=f"{copied.name}@9")
        changes.record([SettledSegment(copied.name, full)], now=5)
    assert not changes.fragmented()


@pytest.mark.parametrize("newer_first", [True, False])
def test_a_row_that_is_left_twice_is_gathered_at_its_newer_version_under_all_keys(
    changes: OpenChanges, newer_first: bool
) -> None:
    old, new = change(1, "a", former=frozenset({(1, "x")})), change(2, "b", former=frozenset({(1, "y")}))
    for n, one in enumerate((new, old) if newer_first else (old, new)):
        copied = segment(one, n=n)
        changes.add([copied], now=0)
        changes.record([left(copied, one)], now=5)
    ((gathered,),) = [part.changes() for part in changes.gather(1, 9)]
    assert gathered == change(2, "b", former=frozenset({(1, "a"), (1, "x"), (1, "y")}))


def test_a_reader_lays_all_open_changes_of_the_table_over_its_answers() -> None:
    store = MemoryStore()
    keep_segment(segment(change(1, "a")), store)
    keep_segment(segment(change(2, "b", row=Key("TABLE#star", "8")), n=1), store)
    assert [[row for group in stored_overlay(store) for row, _ in group.rows(("GSI_1", key))] for key in "abc"] == [
        [ROW],
        [Key("TABLE#star", "8")],
        [],
    ]
