"""The walks that truncates make necessary."""

from dataclasses import replace

from processor.engine.protocol.walks import TruncateGoal, WalkName
from statestore.store import Refused
from tests.unit.engine.protocol.walking_job import PLAN, WalkingJob, with_entity

EMPTY: WalkName = ("truncate", "star")


def test_a_truncate_walks_over_every_partition_and_a_later_run_goes_on() -> None:
    job = WalkingJob(filled=False)
    job.adopt(with_entity(PLAN, "star", entity=replace(PLAN.entities["star"].entity, shards=3)))
    job.keep(job.walks.truncate([("star", "3"), ("star", "5")], job.plan, 9.0))
    assert job.walks.truncates == {"star": TruncateGoal("5", "3")}
    assert job.round(after="k") == [EMPTY, EMPTY, EMPTY]
    later = WalkingJob(run=2, store=job.store, filled=False)
    later.adopt(job.plan)
    assert [(page.pk, page.after) for page in later.walks.next()] == [(f"TABLE#star#0{n}", "k") for n in range(3)]
    assert [line.walk for line in later.walks.progress(10.0)] == ["truncate star"]
    later.finish()
    assert later.walks.truncates == {"star": TruncateGoal("5")}


def test_a_second_truncate_begins_the_walk_again_and_remembers_the_first() -> None:
    job = WalkingJob(filled=False)
    job.adopt()
    job.keep(job.walks.truncate([("star", "3")], PLAN, 0.0))
    job.round(after="k")
    job.keep(job.walks.truncate([("star", "5")], PLAN, 0.0))
    assert job.walks.truncates == {"star": TruncateGoal("5", "3")}
    assert [page.after for page in job.walks.next()] == [None]


def test_a_truncate_that_comes_again_walks_again_to_the_last_truncate() -> None:
    job = WalkingJob(filled=False)
    job.adopt()
    job.keep(job.walks.truncate([("star", "5")], PLAN, 0.0))
    job.finish()
    job.keep(job.walks.truncate([("star", "3")], PLAN, 0.0))
    assert job.walks.truncates == {"star": TruncateGoal("5", "3")}


def test_an_earlier_run_begins_no_walk_of_a_truncate() -> None:
    zombie, job = WalkingJob(filled=False), WalkingJob(run=2, filled=False)
    job.adopt()
    job.keep(job.walks.truncate([("star", "5")], PLAN, 0.0))
    (write,) = zombie.walks.truncate([("star", "3")], PLAN, 0.0)
    assert isinstance(job.store.write(write), Refused)


def test_the_walk_of_a_truncate_goes_with_its_entity() -> None:
    job = WalkingJob(filled=False)
    job.adopt()
    job.keep(job.walks.truncate([("star", "5")], PLAN, 0.0))
    job.adopt(replace(PLAN, entities={"user": PLAN.entities["user"]}, products={}))
    assert job.walks.truncates == {}
    assert [item["SK"] for item in job.store.partition("WALKS")] == ["fill#user"]
