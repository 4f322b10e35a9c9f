"""The slots board, and the lines below it."""

from dataclasses import replace
from datetime import UTC, datetime

from processor.cli.status import board_text, status_lines
from processor.environment.stores.kinds import kind_of
from registry.edits.edit import edited
from registry.edits.operations import republish
from registry.model import AssignmentState, JobStatus, Progress, Snapshot

BOARD = """\
entity        key                            GSI_1                       GSI_2
------------  -----------------------------  --------------------------  --------------------
payment_info  id                             user_id
                                             down from user
pull_request  repo#repo_owner#index          author
                                             down from user
repo          owner#name
              down from star
star          username#repo_name#repo_owner  username                    repo_owner#repo_name
                                             down from user              up from repo
user          email                          username                    id
                                             up from pull_request, star  up from payment_info"""

AT = datetime(2026, 1, 2, tzinfo=UTC)
JOB = JobStatus(job="main", owner="host:7", alive=True, generation=3, applied_version=1, renewed_at=AT)
WALK = Progress(walk="fill star", rows=1_200, written=900, of=2_000, done=False, seconds=10)


def test_the_board_shows_what_each_slot_holds_and_serves(applied: Snapshot) -> None:
    assert board_text(applied, "GSI_") == BOARD


def test_a_slot_of_postgres_has_no_name_of_dynamodb(applied: Snapshot) -> None:
    assert board_text(applied, kind_of("postgres").slot).split()[:6] == ["entity", "key", "slot", "1", "slot", "2"]


def test_an_empty_registry_has_a_board_of_no_rows(empty: Snapshot) -> None:
    assert board_text(empty, "slot ") == "entity  key\n------  ---"


def test_a_slot_that_does_not_serve_shows_its_state_and_an_unused_slot_shows_no_join(applied: Snapshot) -> None:
    retiring = replace(applied.assignments_of("payment_info")[0], state=AssignmentState.RETIRING)
    alone = replace(applied, entities=applied.entities[:1], assignments=(retiring,), joins=())
    assert board_text(alone, "slot ").splitlines()[2:] == [
        "payment_info  id   user_id",
        "                   (retiring)",
    ]


def test_the_lines_below_the_board_show_waiting_products_jobs_and_walks(applied: Snapshot) -> None:
    stored = edited(applied, republish(applied, "user_profile"))
    ended = replace(JOB, job="old", owner=None, alive=False)
    begun = replace(WALK, walk="publish user_profile", of=0, seconds=0)
    assert list(status_lines(stored, [JOB, ended], [WALK, begun, replace(WALK, done=True)])) == [
        "product user_profile: version 2 waits for the check of each row of payment_info, pull_request, repo, star, user",
        "job main: runs as host:7, by version 1, and the registry has version 2",
        "job old: does not run, last version 1",
        "fill star: 1,200 of about 2,000 rows, 900 written, 120 rows/s, about 0:00:07 left",
        "publish user_profile: 1,200 rows, 900 written",
    ]
    assert list(status_lines(applied, [JOB], [])) == ["job main: runs as host:7, by version 1"]
