"""Segments: open changes as bytes, and the lookups in them."""

import json
import pickle
from hashlib import sha256
from zlib import crc32

from processor.engine.protocol.segments import (
    BYTES_PER_ITEM,
    CHANGES_PER_ITEM,
    DueSegment,
    IndexObservation,
    OpenChange,
    OpenRow,
    SegmentGroup,
    SettleOutcome,
    checksum,
    group_of,
    make_segment,
    make_segments,
    observations_of,
    open_items,
    open_rows,
    read_changes,
)
from statestore.keys import Key
from statestore.memory import MemoryStore

STAR, TEAM = Key("TABLE#star", "7"), Key("TABLE#team#03", "9")
MOVED = OpenChange("star", STAR, "002", ((1, "a#b"), (2, "!")), frozenset({(1, "é"), (2, "!x"), ("team.ids", "5")}))
NAMED = OpenChange("team", TEAM, "001", ((1, "a#b"),), frozenset())
LEFT = OpenChange("team", TEAM, "003", (), frozenset({(2, "é"), (1, "a#b"), ("team.ids", "5")}))


def test_a_segment_and_its_durable_item_have_the_same_changes() -> None:
    segment = make_segment("1", [MOVED, NAMED])
    store = MemoryStore()
    store.write(segment.write())
    (item,) = open_items(store)
    assert read_changes(item) == segment.changes() == [MOVED, NAMED] == [segment.change(n) for n in (0, 1)]
    assert list(segment.records()) == [segment.record(n) for n in (0, 1)]
    assert json.loads(segment.record(1)) == ["team", *TEAM, "001", [[1, "a#b"]], []]


def test_a_lookup_finds_the_rows_that_have_or_had_the_key_in_all_segments_of_a_group() -> None:
    """Also in a worker, which gets the segments and makes the index itself."""
    later = NAMED._replace(key=Key("TABLE#team", "4"))
    group = SegmentGroup((make_segment("1", [MOVED, NAMED]), make_segment("2", [later])))
    for one in (group, pickle.loads(pickle.dumps(group))):
        assert sorted(one.rows(("GSI_1", "a#b"))) == [
            (STAR, OpenRow("002", True, "1", 0)),
            (later.key, OpenRow("001", True, "2", 0)),
            (TEAM, OpenRow("001", True, "1", 2)),
        ]
        assert list(one.rows(("GSI_1", "é"))) == [(STAR, OpenRow("002", False, "1"))]
        assert [list(one.rows(key)) for key in (("GSI_2", "a#b"), ("GSI_2", "!x"), ("GSI_1", "5"))] == [[], [], []]
    assert list(SegmentGroup(()).rows(("GSI_1", "a#b"))) == []


def test_a_row_that_left_the_indexes_is_open_where_it_was() -> None:
    group = SegmentGroup((make_segment("1", [MOVED, LEFT]),))
    assert list(group.rows(("GSI_1", "a#b")))[1:] == [(TEAM, OpenRow("003", False, "1", 2))]
    assert list(group.rows(("GSI_2", "é"))) == [(TEAM, OpenRow("003", False, "1", 3))]


def test_a_group_knows_which_rows_are_open() -> None:
    group = SegmentGroup((make_segment("1", [MOVED]), make_segment("2", [LEFT])))
    assert [group.is_open(key) for key in (STAR, TEAM, Key("TABLE#star", "8"))] == [True, True, False]
    assert not SegmentGroup(()).is_open(STAR)


def test_a_row_that_left_the_indexes_must_be_gone_from_its_keys_in_slots_alone() -> None:
    left = LEFT._replace(former=LEFT.former | {(3, "!TABLE#team#03!9")})
    assert left.places == left.gone == ((1, "a#b"), (2, "é"))
    assert MOVED.places == MOVED.slots
    assert MOVED.gone == ()


def test_a_change_that_no_index_has_shown_waits_for_the_marker_of_a_row_that_left_the_indexes() -> None:
    marker = ((1, "!TABLE#team#03!9"),)
    for shown, slots in ((False, marker), (True, ())):
        left = SettleOutcome(NAMED, "002", (), shown).left
        assert left == OpenChange("team", TEAM, "002", slots, frozenset({(1, "a#b")}))
    assert SettleOutcome(LEFT, LEFT.version, (), True).left is None
    assert SettleOutcome(LEFT, LEFT.version, (), False).left == LEFT


def test_a_lookup_decodes_only_the_changes_under_its_key() -> None:
    group = SegmentGroup((make_segment("1", [NAMED._replace(slots=((1, f"k{n}"),)) for n in range(1_000)]),))
    assert len(list(group.rows(("GSI_1", "k7")))) == 1
    assert sum(len(segment._decoded) for segment in group.segments) == 1


def test_a_lookup_finds_its_rows_in_all_groups() -> None:
    later = NAMED._replace(key=Key("TABLE#team", "4"))
    groups = [
        SegmentGroup((make_segment("1", [NAMED]),)),
        SegmentGroup(()),
        SegmentGroup((make_segment("2", [later]),)),
    ]
    assert [key for key, _ in open_rows(groups, ("GSI_1", "a#b"))] == [TEAM, later.key]
    assert open_rows(groups, ("GSI_2", "a#b")) == []


def test_the_stages_of_a_round_share_the_group_of_its_segments() -> None:
    segments = (make_segment("1", [MOVED]), make_segment("2", [NAMED]))
    assert group_of(segments) is group_of(segments)
    assert group_of(segments) is not group_of(segments[:1])


def test_the_task_that_opened_changes_decodes_none_and_a_segment_that_travels_takes_only_their_text_along() -> None:
    (made,) = make_segments([MOVED, NAMED], 1, 2, "p")
    sent = pickle.loads(pickle.dumps(made))
    assert (len(made._decoded), len(sent._decoded)) == (2, 0)
    assert made == sent
    assert made.changes() == sent.changes() == [made.change(n) for n in (0, 1)] == [MOVED, NAMED]


def test_changes_fill_as_few_items_as_possible_and_none_beyond_its_size() -> None:
    small = [NAMED._replace(version=f"{n:04d}") for n in range(CHANGES_PER_ITEM + 1)]
    assert [(one.name, one.size) for one in make_segments(small, 1, 2, "p")] == [
        ("0000000001.0000000002.p.000000", CHANGES_PER_ITEM),
        ("0000000001.0000000002.p.000001", 1),
    ]
    large = [NAMED._replace(former=frozenset({(1, "x" * (BYTES_PER_ITEM // 2 - 60))}))] * 5
    segments = list(make_segments(large, 1, 2, "p"))
    assert [one.size for one in segments] == [2, 2, 1]
    assert [one.name[-6:] for one in segments] == ["000000", "000001", "000002"]
    assert max(len(one.text) for one in segments) <= BYTES_PER_ITEM
    alone = NAMED._replace(former=frozenset({(1, "x" * BYTES_PER_ITEM)}))
    assert [one.size for one in make_segments([alone, NAMED], 1, 2, "p")] == [1, 1]
    assert list(make_segments([], 1, 2, "p")) == []


def test_the_bits_of_a_segment_say_which_slots_of_which_change_were_seen() -> None:
    three = OpenChange("star", STAR, "003", ((1, "a"), (3, "b"), (4, "c")), frozenset())
    segment = make_segment("1", [NAMED, three, NAMED])
    assert (segment.width, segment.asked) == (3, 5)
    due = DueSegment(segment, seen=0b000_101_001, again=False, samples=False)
    assert [(one.key, sorted(one.seen)) for one in due.changes()] == [(STAR, [(1, "a"), (4, "c")]), (TEAM, [])]


def test_the_bits_of_a_change_say_nothing_of_the_changes_before_it() -> None:
    three = OpenChange("star", STAR, "003", ((1, "a"), (3, "b"), (4, "c")), frozenset())
    due = DueSegment(make_segment("1", [NAMED, three, NAMED]), seen=0b000_111_000, again=False, samples=False)
    assert [(one.key, sorted(one.seen)) for one in due.changes()] == [(TEAM, []), (TEAM, [])]


def test_a_change_of_the_sample_is_settled_though_every_slot_showed_it_where_the_job_samples() -> None:
    versions = (NAMED._replace(version=f"{n:04d}") for n in range(1_000))
    chosen = next(one for one in versions if make_segment("1", [one]).sampled)
    segment = make_segment("1", [NAMED, chosen])
    assert (segment.sampled, make_segment("1", [NAMED]).sampled) == (True, False)
    taken = [
        [(one.version, one.again) for one in DueSegment(segment, 0b11, False, samples).changes()]
        for samples in (True, False)
    ]
    assert taken == [[(chosen.version, True)], []]
    both = DueSegment(segment, 0b11, again=True, samples=False).changes()
    assert [one.again for one in both] == [True, True]


def test_an_item_of_a_replay_that_opened_nothing_has_no_changes() -> None:
    assert read_changes({"PK": "REPLAYS", "SK": "star"}) == []


def test_a_lookup_tells_the_slots_apart_that_have_the_same_key() -> None:
    both = OpenChange("star", STAR, "002", ((1, "k"), (2, "k")), frozenset())
    left = OpenChange("team", TEAM, "003", (), frozenset({(1, "k"), (2, "k")}))
    group = SegmentGroup((make_segment("1", [both, left]),))
    for slot in (1, 2):
        assert list(group.rows((f"GSI_{slot}", "k"))) == [
            (STAR, OpenRow("002", True, "1", slot - 1)),
            (TEAM, OpenRow("003", False, "1", slot + 1)),
        ]


def test_a_key_with_the_checksum_of_another_one_has_no_rows_of_it() -> None:
    found: dict[int, str] = {}
    keys = (sha256(b"%d" % n).hexdigest() for n in range(400_000))  # some pairs have the same 32 bits
    key, other = next(
        (key, earlier) for key in keys if (earlier := found.setdefault(crc32(f"GSI_1{key}".encode()), key)) != key
    )
    assert checksum(("GSI_1", other)) == checksum(("GSI_1", key))
    for change in (NAMED._replace(slots=((1, other),)), NAMED._replace(former=frozenset({(1, other)}))):
        group = SegmentGroup((make_segment("1", [change]),))
        assert [len(group.rows(("GSI_1", one))) for one in (other, key)] == [1, 0]


def test_a_reader_finds_the_changes_of_a_row_in_a_group() -> None:
    group = SegmentGroup((make_segment("1", [MOVED, NAMED]), make_segment("2", [LEFT])))
    assert [group.changes(key) for key in (STAR, TEAM, Key("TABLE#star", "8"))] == [[MOVED], [NAMED, LEFT], []]


def test_the_sights_of_a_segment_are_those_of_all_its_places_together() -> None:
    """Of two rows that left their indexes, answers lack one under both keys, and show the other under both."""
    gone, there = (OpenChange("team", Key("TABLE#team", n), "003", (), frozenset({(1, n), (2, n)})) for n in "45")
    shown = OpenChange("star", STAR, "002", ((1, "k"), (2, "k")), frozenset())
    group = SegmentGroup((make_segment("1", [gone, there, shown]),))
    keys = [(f"GSI_{slot}", key) for slot in (1, 2) for key in ("4", "5", "k")]
    opened = {key: group.rows(key) for key in keys}
    dropped = {(one.key, (f"GSI_{slot}", one.key.sk)): one is gone for one in (gone, there) for slot in (1, 2)}
    seen = {(STAR, "GSI_1"): "002", (STAR, "GSI_2"): ""}
    assert list(observations_of(seen, opened, dropped)) == [
        IndexObservation("1", seen=0b01_00_11, late=1, lost=0b11_00)
    ]


def test_an_answer_that_still_shows_a_row_that_left_the_index_is_a_sight_of_its_own() -> None:
    group = SegmentGroup((make_segment("1", [LEFT]),))
    opened = {("GSI_1", "a#b"): group.rows(("GSI_1", "a#b"))}
    lost = observations_of({}, opened, {(TEAM, ("GSI_1", "a#b")): False})
    assert list(lost) == [IndexObservation("1", seen=0, lost=0b01)]
    assert list(observations_of({}, opened, {})) == []
