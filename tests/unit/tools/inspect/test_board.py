"""The slots board as JSON values, and the lines about the work that an edit leaves to the job."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from processor.tools.inspect.board import board_json, pending_lines
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.edits.operations import advance, move, pause, remove, republish
from registry.model import JobStatus, Progress, Requirements, Snapshot
from tests.unit.registry.edits.test_waiting import ALL, with_join

AT = datetime(2026, 1, 2, tzinfo=UTC)
JOB = JobStatus(job="main", owner="host:7", alive=True, generation=3, applied_version=1, renewed_at=AT)
WALK = Progress(walk="fill star", rows=1_200, written=900, of=2_000, done=False, seconds=10)


def test_the_board_as_json_has_the_same_content(applied: Snapshot) -> None:
    found = json.loads(json.dumps(board_json(applied)))
    assert (found["version"], found["slots"]) == (1, 20)
    assert found["entities"][2:4] == [
        {"entity": "repo", "key": ["owner", "name"], "key_serves": ["down from star"], "edges": [], "assignments": []},
        {
            "entity": "star",
            "key": ["username", "repo_name", "repo_owner"],
            "key_serves": [],
            "edges": [],
            "assignments": [
                {"slot": 1, "columns": ["username"], "state": "serving", "serves": ["down from user"]},
                {"slot": 2, "columns": ["repo_owner", "repo_name"], "state": "serving", "serves": ["up from repo"]},
            ],
        },
    ]


def test_the_board_as_json_has_the_products_the_jobs_and_the_walks(applied: Snapshot) -> None:
    stored = edited(applied, republish(applied, "user_profile"))
    found = json.loads(json.dumps(board_json(stored, [JOB], [WALK])))
    assert found["paused"] is False
    assert found["products"] == [{"product": "user_profile", "version": 1, "paused": False, "retracted": False}]
    rows = "the check of each row of payment_info, pull_request, repo, star, user"
    assert found["waiting"] == [{"product": "user_profile", "version": 2, "waits_for": [rows]}]
    (job,), (walk,) = found["jobs"], found["walks"]
    assert (job["job"], job["alive"], job["applied_version"]) == ("main", True, 1)
    assert (walk["walk"], walk["rows"], walk["of"]) == ("fill star", 1_200, 2_000)
    assert (walk["rows_per_second"], round(walk["seconds_left"], 1)) == (120, 6.7)


def test_nothing_waits_in_a_registry_that_serves(applied: Snapshot) -> None:
    assert list(pending_lines(applied)) == []


def test_a_waiting_product_names_the_slots_that_do_not_serve_yet(applied: Snapshot, github: Requirements) -> None:
    stored = edited(applied, apply(applied, with_join(github), has_run=ALL))
    slots = "GSI_3 of star (planned), GSI_2 of pull_request (planned)"
    assert list(pending_lines(stored)) == [
        f"product user_profile: version 2 waits for {slots}",
        "entity pull_request: GSI_2 repo is planned: the job fills it in stored rows, then it serves",
        "entity star: GSI_3 repo_name is planned: the job fills it in stored rows, then it serves",
    ]
    stored = edited(stored, advance(stored, proven=(), published=()))
    assert next(pending_lines(stored)) == f"product user_profile: version 2 waits for {slots}".replace(
        "planned", "writing"
    )


def test_a_product_whose_slots_serve_waits_for_the_check_of_its_rows(applied: Snapshot) -> None:
    stored = edited(applied, republish(applied, "user_profile"))
    rows = "payment_info, pull_request, repo, star, user"
    assert list(pending_lines(stored)) == [f"product user_profile: version 2 waits for the check of each row of {rows}"]


def test_pauses_retractions_and_moved_slots_have_a_line(applied: Snapshot) -> None:
    stored = edited(applied, pause(applied, None, paused=True))
    stored = edited(stored, pause(stored, "user_profile", paused=True))
    assert list(pending_lines(stored)) == [
        "all work: paused, the job reads no batches until `statestore resume`",
        "product user_profile: paused, the job publishes nothing of it until `statestore resume`",
    ]
    stored = edited(stored, pause(stored, "user_profile", paused=False))
    stored = replace(edited(stored, remove(stored, "user_profile", tombstones=True)), paused=False)
    stored = edited(stored, move(stored, "star", 1, 3))
    for _ in range(3):
        stored = edited(stored, advance(stored, proven=ALL, published=()))
    assert list(pending_lines(stored)) == [
        "product user_profile: the job replaces its documents by tombstones, then removes it",
        "entity star: GSI_1 username is retiring: the job frees it once no product uses it",
    ]
