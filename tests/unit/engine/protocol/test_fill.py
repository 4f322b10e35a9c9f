"""A fill gives a stored row the slots and edges of a newer layout, under the version seen, and asks the indexes for it."""

from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.planning import plan_alone
from processor.engine.plan.row_image import image_of
from processor.engine.plan.step import OVERSIZED, Lookup, Touch
from processor.engine.protocol.walks import FilledRow, fill, fill_again
from processor.engine.protocol.write_state import write_state
from processor.language.definitions.load import load
from processor.values.record import Change, Record
from statestore.items import next_fill, read_row
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import MAX_ITEM_BYTES, Done, Item, Page, Query, Refused, TooLarge
from statestore.writes import merge_image, write_image
from tests.support.published_rows import published_below
from tests.unit.engine.protocol.dialogue import dialogue, run_step

ENTITIES = "star: {key: [id], columns: {id: int, who: string, repo: string}}\nuser: {key: [id], columns: {id: int, name: string}}"
PLAN = plan_alone(
    load(
        {
            "entities.yaml": ENTITIES,
            "p.yaml": "product: p\nroot: user\nfields: [id]\nembed: {stars: {many: star, on: {who: name}, value: id}}",
        }
    ),
    20,
).entities["star"]
OLD: EntityPlan = replace(PLAN, slots={}, indexed=frozenset(), layout=0)
NEW: EntityPlan = replace(PLAN, slots={1: ("who",), 2: ("repo",)}, layout=7)
STAR = Key("TABLE#star", "1")


def stored(plan: EntityPlan, *, offset: int = 4, who: str | None = "ada") -> tuple[MemoryStore, Item]:
    """A table with star 1, as a job of this plan wrote it."""
    record = Record(topic="star", partition=0, offset=offset, key=None, value=None)
    change = Change(entity="star", key=(1,), row={"id": 1, "who": who, "repo": "r"}, record=record)
    image = image_of(change, plan, STAR, None, 99)
    store = MemoryStore(3)
    store.write(write_image(image, below="9"))
    return store, store.get([STAR])[STAR]


def probe(slot: str, value: str) -> Lookup:
    return Lookup(Query(slot=slot, value=value, row=STAR), overlay=False)


def test_a_row_of_an_older_layout_gets_the_slots_and_a_higher_version() -> None:
    store, item = stored(OLD)
    _, filled = run_step(fill(item, NEW, probe=False), store)
    row = read_row(store.get([STAR])[STAR])
    assert filled.written
    assert filled.row is not None
    assert (filled.row.slots, filled.row.version) == (row.slots, row.version)
    assert (row.slots, row.layout, row.version) == ({1: "ada", 2: "r"}, 7, next_fill(item["_v"]))
    assert row.columns == {"id": 1, "who": "ada", "repo": "r"}


@pytest.mark.parametrize("layout", [7, 8], ids=["the same layout", "a newer layout"])
def test_a_row_of_this_or_a_newer_layout_stays_as_it_is(layout: int) -> None:
    _, item = stored(replace(NEW, layout=layout))
    assert not dialogue(fill(item, NEW, probe=False)).written


def test_a_fill_that_a_live_change_overtook_fills_the_row_of_that_change() -> None:
    store, item = stored(OLD)
    newer = stored(OLD, offset=5, who="bob")[1]
    step: Any = fill(item, NEW, probe=False)
    (write,) = step.send(None)
    assert isinstance(store.write(write._replace(when=None)), Done)
    (again,) = step.send((Refused(newer),))
    assert again.when.value == newer["_v"]
    assert again.set["GSI_1"] == "bob"


def test_a_row_that_is_gone_needs_no_fill() -> None:
    assert dialogue(fill(None, NEW, probe=True)).row is None


def test_every_slot_must_show_the_row_at_the_version_that_the_fill_found() -> None:
    _, item = stored(NEW)
    shown, older = Page([item], None), Page([{**item, "_indexed_v": "0"}], None)
    probes = [probe("GSI_1", "ada"), probe("GSI_2", "r")]
    assert dialogue(fill(item, NEW, probe=True), [(probes[0], shown), (probes[1], shown)]).unseen == ""
    assert dialogue(fill(item, NEW, probe=True), [(probes[0], shown), (probes[1], older)]).unseen == item["_v"]
    assert dialogue(fill(item, NEW, probe=True), [(probes[0], Page([], None)), (probes[1], shown)]).unseen == item["_v"]


def test_a_row_that_was_not_seen_is_read_again_and_a_newer_version_counts() -> None:
    _, item = stored(NEW, offset=6)
    first = stored(NEW, offset=5)[1]["_v"]
    shown = Page([item], None)
    again = fill_again(STAR, NEW, version=first)
    answers: Any = [[(STAR, item)], [(probe("GSI_1", "ada"), shown), (probe("GSI_2", "r"), shown)]]
    assert dialogue(again, *answers).unseen == ""


def test_the_replay_of_a_change_fills_the_row_that_a_task_of_an_older_plan_wrote() -> None:
    store, item = stored(OLD, offset=5)
    record = Record(topic="star", partition=0, offset=5, key=None, value=None)
    change = Change(entity="star", key=(1,), row={"id": 1, "who": "ada", "repo": "r"}, record=record)
    _, touch = run_step(write_state(change, NEW, published=published_below(item["_v"]), expires_at=99), store)
    row = read_row(store.get([STAR])[STAR])
    assert (row.slots, row.layout, row.version) == ({1: "ada", 2: "r"}, 7, next_fill(item["_v"]))
    assert isinstance(touch, Touch)
    assert touch.row.slots == row.slots
    _, again = run_step(write_state(change, OLD, published=published_below(item["_v"]), expires_at=99), store)
    assert isinstance(again, Touch)
    assert read_row(store.get([STAR])[STAR]) == row  # a task of the older plan changes nothing back


def test_a_row_without_room_for_the_slot_is_refused() -> None:
    _, item = stored(OLD)
    step: Any = fill(item, NEW, probe=False)
    step.send(None)
    with pytest.raises(StopIteration) as end:
        step.send((TooLarge(),))
    assert end.value.value.refused == OVERSIZED


def test_a_row_that_is_gone_by_the_time_of_its_fill_needs_none() -> None:
    _, item = stored(OLD)
    step = fill(item, NEW, probe=True)
    next(step)
    with pytest.raises(StopIteration) as end:
        step.send((Refused(None),))
    assert end.value.value == FilledRow(None)


def test_a_fill_without_room_for_a_copy_of_its_edges_is_refused_before_the_write() -> None:
    _, item = stored(OLD)
    large = {**item, "who": "w" * (MAX_ITEM_BYTES - 200)}
    assert dialogue(fill(large, NEW, probe=False)).refused == OVERSIZED


def test_a_fill_says_which_keys_the_row_had_that_it_has_no_more() -> None:
    """The row moved from `ada` to `bob` between the walk's read and the fill's write."""
    store, item = stored(replace(NEW, layout=3))
    record = Record(topic="star", partition=0, offset=5, key=None, value=None)
    change = Change(entity="star", key=(1,), row={"id": 1, "who": "bob", "repo": "r"}, record=record)
    image = image_of(change, replace(NEW, layout=3), STAR, None, 99)
    assert isinstance(store.write(merge_image(image, read_row(item))), Done)
    _, filled = run_step(fill(item, NEW, probe=False), store)
    assert filled.written
    assert filled.former_keys == {(1, "ada")}
    _, again = run_step(fill(store.get([STAR])[STAR], NEW, probe=False), store)
    assert (again.former_keys, again.written) == (frozenset(), False)


def test_an_index_that_shows_a_row_at_the_version_that_a_fill_waits_for_is_enough() -> None:
    """The row has changed since then. That change is open by itself."""
    _, older = stored(NEW)
    _, newer = stored(NEW, offset=5)
    shown = [(probe("GSI_1", "ada"), Page([older], None)), (probe("GSI_2", "r"), Page([older], None))]
    assert dialogue(fill_again(STAR, NEW, version=older["_v"]), [(STAR, newer)], shown).unseen == ""
    assert dialogue(fill_again(STAR, NEW, version=newer["_v"]), [(STAR, newer)], shown).unseen == newer["_v"]


def test_a_fill_asks_no_index_that_the_plan_has_left() -> None:
    _, item = stored(NEW)
    left = replace(NEW, slots={1: ("who",)})
    shown = [(probe("GSI_1", "ada"), Page([item], None))]
    assert dialogue(fill(item, left, probe=True), shown).unseen == ""
