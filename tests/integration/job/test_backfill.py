"""A backfill does the work of edits in an open job without a stream, and ends where the rest cannot go on."""

from types import SimpleNamespace
from typing import Any

import pytest

from processor.tools.operate.erase import run_backfill
from registry.model import AssignmentState

Scene = Any  # conftest's
pytestmark = pytest.mark.plain
NOTES = {"notes": {"many": "star", "on": {"note": "name"}, "value": "repo", "order_by": ["repo"]}}
"""Needs a new slot on `star`: by its note."""


@pytest.fixture
def waiting(scene: Scene, rows: SimpleNamespace) -> Scene:
    """A job that has ended, and then a product that waits for a slot of `star`."""
    scene.produce(rows.user(1, "ada"), *(rows.star("ada", f"r{n}", note="ada") for n in range(5)))
    scene.run()
    scene.add("notes", fields=["id", "name"], embed=NOTES)
    return scene


@pytest.mark.rest
def test_a_backfill_publishes_the_product_that_waits_and_reads_no_topic(waiting: Scene, rows: SimpleNamespace) -> None:
    waiting.produce(rows.user(2, "bob"))
    with waiting.opened(checkpoint="") as job:
        assert run_backfill(job) == ()
        assert (job.driver.tally["filled"], job.driver.tally["read"]) == (5, 0)
    assert waiting.documents("notes") == {'{"id":1}': {"id": 1, "name": "ada", "notes": [f"r{n}" for n in range(5)]}}
    waiting.run()
    assert waiting.documents("notes") == waiting.truth("notes")


@pytest.mark.rest
def test_a_backfill_ends_at_a_walk_that_stopped_and_a_later_one_continues(waiting: Scene) -> None:
    with waiting.opened(checkpoint="") as job:
        job.driver.progress.walks.stuck["fill", "star"] = "TABLE#star / r1: too large"
        assert run_backfill(job) == ("fill star stopped: TABLE#star / r1: too large",)
    assert [one.name for one in waiting.registry.snapshot().waiting] == ["notes"]
    with waiting.opened(checkpoint="") as job:
        assert run_backfill(job) == ()
    assert {one.state for one in waiting.registry.snapshot().assignments} == {AssignmentState.SERVING}


@pytest.mark.rest
def test_an_operator_stops_a_backfill_and_the_registry_has_its_progress(waiting: Scene) -> None:
    with waiting.opened(checkpoint="", walk_page=1) as job:
        job.driver.progress.report = lambda *_: job.stopping.set()
        assert run_backfill(job) == ("stopped on request",)
    (fill,) = (one for one in waiting.registry.progress() if one.walk == "fill star")
    assert (fill.rows, fill.done) == (1, False)
    with waiting.opened(checkpoint="") as job:
        assert run_backfill(job) == ()
    assert waiting.documents("notes")['{"id":1}']["notes"] == [f"r{n}" for n in range(5)]
