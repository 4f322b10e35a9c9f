"""The slots board as JSON values."""

import json
from datetime import UTC, datetime

from registry.board import board_json
from registry.edits.edit import edited
from registry.edits.operations import republish
from registry.model import JobStatus, Progress, Snapshot

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
