"""The lines about the work that an edit leaves to the job."""

from dataclasses import replace

from registry.edits.advance import advance
from registry.edits.apply import apply
from registry.edits.edit import edited, pending_lines
from registry.edits.operations import move, pause, remove, republish
from registry.model import Requirements, Snapshot
from tests.unit.registry.edits.test_waiting import ALL, with_join


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
