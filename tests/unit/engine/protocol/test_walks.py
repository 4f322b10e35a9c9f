"""The walks that a plan makes necessary, and how far they are, across pages, edits and runs."""

from dataclasses import replace

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.protocol.walks import MOST_UNSEEN, FillGoal, Walk, WalkedPage, read_walk, write_walk
from statestore.store import Delete, Refused
from tests.unit.engine.protocol.walking_job import (
    FILL_STAR,
    FILL_USER,
    PLAN,
    PUBLISH,
    WalkingJob,
    with_entity,
    with_product,
)


def test_an_empty_table_needs_no_walks() -> None:
    job = WalkingJob(filled=False)
    job.adopt()
    assert job.walks.next() == []
    assert job.walks.proven(PLAN) == {"user", "star"}
    assert job.walks.published(PLAN) == {"p"}


def test_a_product_is_held_until_its_entities_are_full_and_probed_and_w_has_passed() -> None:
    job = WalkingJob()
    job.adopt()
    assert job.walks.held == {"p"}
    assert set(job.round()) == {FILL_USER, FILL_STAR}
    assert [page.probes for page in job.walks.next()] == [True, True]
    job.round(now=10.0)
    assert job.walks.next() == []
    job.keep(job.walks.end_fills(PLAN, 14.9))
    assert job.walks.held == {"p"}
    job.keep(job.walks.end_fills(PLAN, 15.0))
    assert job.walks.held == frozenset()
    assert {page.walk for page in job.walks.next()} == {PUBLISH}
    job.round()
    assert job.walks.published(PLAN) == {"p"}


def test_rows_that_an_index_lacks_are_asked_again_until_it_shows_them() -> None:
    job = WalkingJob()
    job.adopt()
    job.round()
    job.round(unseen=(("TABLE#star", "1", "v1"),))
    assert [(page.walk, page.unseen) for page in job.walks.next() if page.walk == FILL_STAR] == [
        (FILL_STAR, (("TABLE#star", "1", "v1"),))
    ]
    assert job.walks.proven(PLAN) == frozenset()
    job.finish()
    assert job.walks.proven(PLAN) == {"user", "star"}


def test_where_no_index_is_late_a_fill_reads_each_row_once() -> None:
    job = WalkingJob(probes=False)
    job.adopt()
    job.round()
    assert job.walks.held == frozenset()
    assert {page.walk for page in job.walks.next()} == {PUBLISH}
    assert {one.of for one in job.walks.progress(0.0)} == {1}


@pytest.mark.parametrize("probes", [True, False], ids=["late indexes", "no late index"])
def test_a_product_that_reads_more_columns_by_key_needs_no_new_fill(probes: bool) -> None:
    job = WalkingJob(probes=probes)
    job.adopt()
    job.finish()
    assert not any(walk.left for walk in job.walks.walks.values())
    job.adopt(with_entity(PLAN, "star", used=None))
    assert job.walks.proven(PLAN) == {"user", "star"}
    assert job.walks.next() == []


def test_a_fill_with_many_unseen_rows_takes_no_further_page() -> None:
    job = WalkingJob()
    job.adopt()
    job.round()
    job.round(after="5", unseen=tuple(("TABLE#star", str(n), "v") for n in range(MOST_UNSEEN)))
    assert all(page.unseen and not page.pk for page in job.walks.next())


def test_a_cursor_goes_on_in_the_next_run() -> None:
    job = WalkingJob()
    job.adopt()
    job.round(after="7")
    later = WalkingJob(run=2, store=job.store)
    later.adopt()
    assert {(page.walk, page.after) for page in later.walks.next()} == {(FILL_USER, "7"), (FILL_STAR, "7")}


def test_a_run_that_was_replaced_can_write_no_walk() -> None:
    zombie = WalkingJob()
    zombie.adopt()
    later = WalkingJob(run=2, store=zombie.store)
    later.adopt()
    pages = [WalkedPage(page, None, rows=1) for page in zombie.walks.next()]
    for write in zombie.walks.advance(pages, PLAN, 0.0):
        assert isinstance(zombie.store.write(write), Refused)


def test_what_is_done_stays_done_in_the_next_run() -> None:
    job = WalkingJob()
    job.adopt()
    job.finish()
    later = WalkingJob(run=2, store=job.store)
    later.adopt()
    assert later.walks.next() == []
    assert later.walks.published(PLAN) == {"p"}


@pytest.mark.parametrize("probes", [True, False], ids=["late indexes", "no late index"])
@pytest.mark.parametrize(
    "plan",
    [
        with_entity(PLAN, "star", layout=9),
        with_entity(PLAN, "star", indexed=frozenset({"id", "who", "note"})),
        with_entity(PLAN, "star", indexed=None),
    ],
    ids=["another slot", "another column", "whole rows"],
)
def test_another_slot_or_another_column_in_indexes_fills_every_row_again(plan: Plan, probes: bool) -> None:
    job = WalkingJob(probes=probes)
    job.adopt()
    job.finish()
    job.adopt(plan)
    assert [(page.walk, page.probes) for page in job.walks.next()] == [(FILL_STAR, False)]
    assert job.walks.held == frozenset()  # the product that is published already continues


def test_a_column_that_the_indexes_did_not_show_for_a_while_is_filled_again() -> None:
    wide = with_entity(PLAN, "star", indexed=frozenset({"id", "who", "note"}))
    job = WalkingJob()
    for plan in (wide, PLAN):
        job.adopt(plan)
        job.finish()
    job.adopt(wide)
    assert [page.walk for page in job.walks.next()] == [FILL_STAR]


def test_another_version_of_a_product_is_published_from_the_first_root_on() -> None:
    job = WalkingJob()
    job.adopt()
    job.finish()
    job.adopt(with_product(PLAN, version=2))
    assert [(page.walk, page.pk) for page in job.walks.next()] == [
        (PUBLISH, "TABLE#user"),
        (PUBLISH, "LEDGER#user#0"),
    ]


def test_a_retracted_product_walks_over_its_documents_only() -> None:
    job = WalkingJob()
    job.adopt()
    job.finish()
    job.adopt(with_product(PLAN, version=2, retracted=True))
    assert [page.pk for page in job.walks.next()] == ["LEDGER#user#0"]


def test_a_paused_product_is_held_and_begins_again_when_it_is_resumed() -> None:
    job = WalkingJob()
    job.adopt()
    job.finish()
    job.adopt(with_product(PLAN, paused=True))
    assert job.walks.held == {"p"}
    assert job.walks.next() == []
    job.adopt(PLAN)
    assert [page.walk for page in job.walks.next()] == [PUBLISH, PUBLISH]


def test_a_product_that_is_paused_over_an_empty_table_publishes_the_rows_that_came_meanwhile() -> None:
    job = WalkingJob(filled=False)
    job.adopt(with_product(PLAN, paused=True))
    job.filled = True
    job.adopt(PLAN)
    assert [page.walk for page in job.walks.next()] == [PUBLISH, PUBLISH]


def test_a_stopped_product_waits_for_the_next_start() -> None:
    job = WalkingJob()
    job.adopt()
    job.finish()
    job.adopt(with_product(PLAN, version=2))
    job.walks.stopped = ("p",)
    assert job.walks.next() == []
    assert not job.walks.publishes()


def test_a_walk_publishes_from_the_end_of_its_hold_to_its_last_root() -> None:
    job = WalkingJob()
    job.adopt()
    assert not job.walks.publishes()
    job.finish()
    assert not job.walks.publishes()
    job.adopt(with_product(PLAN, version=2))
    assert job.walks.publishes()
    job.round()
    assert not job.walks.publishes()


def test_a_row_that_cannot_be_filled_stops_its_walk_alone() -> None:
    job = WalkingJob()
    job.adopt()
    pages = job.walks.next()
    refused = [WalkedPage(page, None, rows=1, refused="too large" if page.walk == FILL_STAR else "") for page in pages]
    job.keep(job.walks.advance(refused, PLAN, 0.0))
    assert job.walks.stuck == {FILL_STAR: "too large"}
    assert {page.walk for page in job.walks.next()} == {FILL_USER}
    later = WalkingJob(run=2, store=job.store)
    later.adopt()
    assert FILL_STAR in {page.walk for page in later.walks.next()}


def test_the_walk_of_a_product_that_is_gone_goes_too() -> None:
    job = WalkingJob()
    job.adopt()
    job.finish()
    requests = job.adopt(replace(PLAN, products={}))
    assert [request.key.sk for request in requests if isinstance(request, Delete)] == ["publish#p"]


def test_a_product_is_held_until_each_entity_that_it_joins_is_full() -> None:
    job = WalkingJob(probes=False)
    job.adopt()
    pages = [page for page in job.walks.next() if page.walk == FILL_USER]
    job.keep(job.walks.advance([WalkedPage(page, None, rows=1) for page in pages], PLAN, 0.0))
    assert job.walks.proven(PLAN) == {"user"}
    assert job.walks.held == {"p"}
    assert job.round() == [FILL_STAR]
    assert job.walks.held == frozenset()


def test_a_product_that_stops_stops_no_fill_of_an_entity_with_its_name() -> None:
    job = WalkingJob()
    job.adopt()
    job.walks.stopped = {"user", "star"}
    assert {page.walk for page in job.walks.next()} == {FILL_USER, FILL_STAR}


def test_the_progress_of_a_walk_counts_the_rows_of_all_its_pages() -> None:
    job = WalkingJob(probes=False)
    job.adopt()
    for after in ("1", "2", None):
        walked = [WalkedPage(page, after, rows=5, written=2) for page in job.walks.next() if page.walk == FILL_STAR]
        job.keep(job.walks.advance(walked, PLAN, 0.0))
    (star,) = [one for one in job.walks.progress(9.0) if one.walk == "fill star"]
    assert (star.rows, star.written, star.done) == (15, 6, True)


def test_a_fill_of_whole_rows_covers_each_other_fill_of_its_layout() -> None:
    whole, some, few = FillGoal(4, None), FillGoal(4, frozenset({"a", "b"})), FillGoal(4, frozenset({"a"}))
    covered = [[one.covers(other) for other in (whole, some, few)] for one in (whole, some, few)]
    assert covered == [[True, True, True], [False, True, True], [False, False, True]]
    assert [whole.covers(FillGoal(layout, None)) for layout in (3, 4, 5)] == [True, True, False]
    for goal in (whole, some):
        walk = Walk(goal=goal, left={"TABLE#star": None}, unseen=(("TABLE#star", "1", "v1"),), probes=True)
        write = write_walk(FILL_STAR, walk, 3)
        assert read_walk({"PK": write.key.pk, "SK": write.key.sk, **write.set}) == (FILL_STAR, walk)
