"""The walks that a plan makes necessary, and how far they are, across pages, edits and runs."""

from dataclasses import replace
from typing import Any

import pytest

from processor.definitions.load import load
from processor.plan.plan import Plan
from processor.plan.planning import plan_alone
from processor.progress.walk import TruncateGoal, WalkedPage, WalkName
from processor.progress.walks import MOST_UNSEEN, Walks
from statestore.memory import MemoryStore
from statestore.store import Delete, Refused, Write

TEXTS = {
    "entities.yaml": "star: {key: [id], columns: {id: int, who: string, note: string}}\n"
    "user: {key: [id], columns: {id: int, name: string}}",
    "p.yaml": "product: p\nroot: user\nfields: [id]\nembed: {stars: {many: star, on: {who: name}, value: id}}",
}
PLAN = plan_alone(load(TEXTS), 20)
FILL_STAR: WalkName = ("fill", "star")
FILL_USER: WalkName = ("fill", "user")
PUBLISH: WalkName = ("publish", "p")


def with_entity(plan: Plan, name: str, **changes: Any) -> Plan:
    return replace(plan, entities={**plan.entities, name: replace(plan.entities[name], **changes)})


def with_product(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, products={"p": replace(plan.products["p"], **changes)})


class Job:
    """The walks of a run over a store of their own. `filled`: whether the table has rows. `verifies`: whether an index may be
    late."""

    def __init__(
        self, run: int = 1, store: MemoryStore | None = None, *, filled: bool = True, verifies: bool = True
    ) -> None:
        self.store = store or MemoryStore()
        self.filled = filled
        self.walks = Walks(run=run, wait=5.0, verifies=verifies)
        self.walks.load(self.store.partition("WALKS"))

    def adopt(self, plan: Plan = PLAN, now: float = 0.0) -> list[Write | Delete]:
        self.plan = plan
        requests = self.walks.adopt(plan, now, now, lambda _: not self.filled)
        self.keep(requests)
        return requests

    def keep(self, requests: Any) -> None:
        for request in requests:
            done = self.store.delete(request) if isinstance(request, Delete) else self.store.write(request)
            assert not isinstance(done, Refused)

    def round(self, now: float = 0.0, after: str | None = None, unseen: Any = ()) -> list[WalkName]:
        """A round over the next pages, all of which end in the same way; the walks that it continued."""
        pages = self.walks.next(())
        walked = [WalkedPage(page, after, rows=1, unseen=unseen if page.verifies else ()) for page in pages]
        self.keep(self.walks.advance(walked, self.plan, now))
        return [page.walk for page in pages]

    def finish(self, now: float = 0.0) -> None:
        while self.walks.next(()) or self.walks.shown_at:
            self.round(now)
            self.keep(self.walks.end_fills(self.plan, now + 5))


def test_an_empty_table_needs_no_walks() -> None:
    job = Job(filled=False)
    job.adopt()
    assert job.walks.next(()) == []
    assert job.walks.proven(PLAN) == {"user", "star"}
    assert job.walks.published(PLAN) == {"p"}


def test_a_product_is_held_until_its_entities_are_full_and_verified_and_w_has_passed() -> None:
    job = Job()
    job.adopt()
    assert job.walks.held == {"p"}
    assert set(job.round()) == {FILL_USER, FILL_STAR}
    assert [page.verifies for page in job.walks.next(())] == [True, True]
    job.round(now=10.0)
    assert job.walks.next(()) == []
    job.keep(job.walks.end_fills(PLAN, 14.9))
    assert job.walks.held == {"p"}
    job.keep(job.walks.end_fills(PLAN, 15.0))
    assert job.walks.held == frozenset()
    assert {page.walk for page in job.walks.next(())} == {PUBLISH}
    job.round()
    assert job.walks.published(PLAN) == {"p"}


def test_rows_that_an_index_lacks_are_asked_again_until_it_shows_them() -> None:
    job = Job()
    job.adopt()
    job.round()
    job.round(unseen=(("TABLE#star", "1", "v1"),))
    assert [(page.walk, page.unseen) for page in job.walks.next(()) if page.walk == FILL_STAR] == [
        (FILL_STAR, (("TABLE#star", "1", "v1"),))
    ]
    assert job.walks.proven(PLAN) == frozenset()
    job.finish()
    assert job.walks.proven(PLAN) == {"user", "star"}


def test_where_no_index_is_late_a_fill_reads_each_row_once() -> None:
    job = Job(verifies=False)
    job.adopt()
    job.round()
    assert job.walks.held == frozenset()
    assert {page.walk for page in job.walks.next(())} == {PUBLISH}
    assert {one.of for one in job.walks.progress(0.0)} == {1}


def test_where_no_index_is_late_a_product_with_more_columns_needs_no_new_fill() -> None:
    job = Job(verifies=False)
    job.adopt()
    job.finish()
    assert not any(walk.left for walk in job.walks.walks.values())
    job.adopt(with_entity(PLAN, "star", used=None))
    assert job.walks.proven(PLAN) == {"user", "star"}
    assert job.walks.next(()) == []


def test_a_fill_with_many_unseen_rows_takes_no_further_page() -> None:
    job = Job()
    job.adopt()
    job.round()
    job.round(after="5", unseen=tuple(("TABLE#star", str(n), "v") for n in range(MOST_UNSEEN)))
    assert all(page.unseen and not page.pk for page in job.walks.next(()))


def test_a_cursor_goes_on_in_the_next_run() -> None:
    job = Job()
    job.adopt()
    job.round(after="7")
    later = Job(run=2, store=job.store)
    later.adopt()
    assert {(page.walk, page.after) for page in later.walks.next(())} == {(FILL_USER, "7"), (FILL_STAR, "7")}


def test_a_run_that_was_replaced_can_write_no_walk() -> None:
    zombie = Job()
    zombie.adopt()
    later = Job(run=2, store=zombie.store)
    later.adopt()
    pages = [WalkedPage(page, None, rows=1) for page in zombie.walks.next(())]
    for write in zombie.walks.advance(pages, PLAN, 0.0):
        assert isinstance(zombie.store.write(write), Refused)


def test_what_is_done_stays_done_in_the_next_run() -> None:
    job = Job()
    job.adopt()
    job.finish()
    later = Job(run=2, store=job.store)
    later.adopt()
    assert later.walks.next(()) == []
    assert later.walks.published(PLAN) == {"p"}


@pytest.mark.parametrize(
    ("plan", "verifies"),
    [
        (with_entity(PLAN, "star", layout=9), False),
        (with_entity(PLAN, "star", used=frozenset({"id", "who", "note"})), True),
    ],
    ids=["another slot", "another column"],
)
def test_another_slot_fills_every_row_again_and_another_column_only_verifies(plan: Plan, verifies: bool) -> None:
    job = Job()
    job.adopt()
    job.finish()
    job.adopt(plan)
    assert [(page.walk, page.verifies) for page in job.walks.next(())] == [(FILL_STAR, verifies)]
    assert job.walks.held == frozenset()  # the product that is published already goes on


def test_a_column_that_was_not_used_for_a_while_is_verified_again() -> None:
    wide = with_entity(PLAN, "star", used=frozenset({"id", "who", "note"}))
    job = Job()
    for plan in (wide, PLAN):
        job.adopt(plan)
        job.finish()
    job.adopt(wide)
    assert [page.walk for page in job.walks.next(())] == [FILL_STAR]


def test_another_version_of_a_product_is_published_from_the_first_root_on() -> None:
    job = Job()
    job.adopt()
    job.finish()
    job.adopt(with_product(PLAN, version=2))
    assert [(page.walk, page.pk) for page in job.walks.next(())] == [(PUBLISH, "TABLE#user"), (PUBLISH, "LEDGER#p")]


def test_a_retracted_product_walks_over_its_documents_only() -> None:
    job = Job()
    job.adopt()
    job.finish()
    job.adopt(with_product(PLAN, version=2, retracted=True))
    assert [page.pk for page in job.walks.next(())] == ["LEDGER#p"]


def test_a_paused_product_is_held_and_begins_again_when_it_is_resumed() -> None:
    job = Job()
    job.adopt()
    job.finish()
    job.adopt(with_product(PLAN, paused=True))
    assert job.walks.held == {"p"}
    assert job.walks.next(()) == []
    job.adopt(PLAN)
    assert [page.walk for page in job.walks.next(())] == [PUBLISH, PUBLISH]


def test_a_product_that_is_paused_over_an_empty_table_publishes_the_rows_that_came_meanwhile() -> None:
    job = Job(filled=False)
    job.adopt(with_product(PLAN, paused=True))
    job.filled = True
    job.adopt(PLAN)
    assert [page.walk for page in job.walks.next(())] == [PUBLISH, PUBLISH]


def test_a_stopped_product_waits_for_the_next_start() -> None:
    job = Job()
    job.adopt()
    job.finish()
    job.adopt(with_product(PLAN, version=2))
    assert job.walks.next(("p",)) == []


def test_a_row_that_cannot_be_filled_stops_its_walk_alone() -> None:
    job = Job()
    job.adopt()
    pages = job.walks.next(())
    refused = [WalkedPage(page, None, rows=1, refused="too large" if page.walk == FILL_STAR else "") for page in pages]
    job.keep(job.walks.advance(refused, PLAN, 0.0))
    assert job.walks.stuck == {FILL_STAR: "too large"}
    assert {page.walk for page in job.walks.next(())} == {FILL_USER}
    later = Job(run=2, store=job.store)
    later.adopt()
    assert FILL_STAR in {page.walk for page in later.walks.next(())}


def test_the_walk_of_a_product_that_is_gone_goes_too() -> None:
    job = Job()
    job.adopt()
    job.finish()
    requests = job.adopt(replace(PLAN, products={}))
    assert [request.key.sk for request in requests if isinstance(request, Delete)] == ["publish#p"]


# Truncates

EMPTY: WalkName = ("truncate", "star")


def test_a_truncate_walks_over_every_partition_and_a_later_run_goes_on() -> None:
    job = Job(filled=False)
    job.adopt(with_entity(PLAN, "star", entity=replace(PLAN.entities["star"].entity, shards=3)))
    job.keep(job.walks.truncate([("star", "3"), ("star", "5")], job.plan, 9.0))
    assert job.walks.truncates == {"star": TruncateGoal("5", "3")}
    assert job.round(after="k") == [EMPTY, EMPTY, EMPTY]
    later = Job(run=2, store=job.store, filled=False)
    later.adopt(job.plan)
    assert [(page.pk, page.after) for page in later.walks.next(())] == [(f"TABLE#star#0{n}", "k") for n in range(3)]
    assert [line.walk for line in later.walks.progress(10.0)] == ["truncate star"]
    later.finish()
    assert later.walks.truncates == {"star": TruncateGoal("5")}


def test_a_second_truncate_begins_the_walk_again_and_remembers_the_first() -> None:
    job = Job(filled=False)
    job.adopt()
    job.keep(job.walks.truncate([("star", "3")], PLAN, 0.0))
    job.round(after="k")
    job.keep(job.walks.truncate([("star", "5")], PLAN, 0.0))
    assert job.walks.truncates == {"star": TruncateGoal("5", "3")}
    assert [page.after for page in job.walks.next(())] == [None]


def test_a_truncate_that_comes_again_walks_again_to_the_last_truncate() -> None:
    job = Job(filled=False)
    job.adopt()
    job.keep(job.walks.truncate([("star", "5")], PLAN, 0.0))
    job.finish()
    job.keep(job.walks.truncate([("star", "3")], PLAN, 0.0))
    assert job.walks.truncates == {"star": TruncateGoal("5", "3")}


def test_an_earlier_run_begins_no_walk_of_a_truncate() -> None:
    zombie, job = Job(filled=False), Job(run=2, filled=False)
    job.adopt()
    job.keep(job.walks.truncate([("star", "5")], PLAN, 0.0))
    (write,) = zombie.walks.truncate([("star", "3")], PLAN, 0.0)
    assert isinstance(job.store.write(write), Refused)


def test_the_walk_of_a_truncate_goes_with_its_entity() -> None:
    job = Job(filled=False)
    job.adopt()
    job.keep(job.walks.truncate([("star", "5")], PLAN, 0.0))
    job.adopt(replace(PLAN, entities={"user": PLAN.entities["user"]}, products={}))
    assert job.walks.truncates == {}
    assert [item["SK"] for item in job.store.partition("WALKS")] == ["fill#user"]
