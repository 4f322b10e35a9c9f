"""Edits by the console: their plan, their confirmation, two operators at once, and what the history says of them."""

from dataclasses import replace
from typing import Any

import pytest

from processor.engine.protocol.replays import ReplayReport, refuse_replay
from registry.edits import operations
from registry.edits.edit import Signature
from registry.errors import RegistryUnreachable
from registry.model import EntityStatistics, Lease, Statistics
from registry.repository import Registry
from tests.integration.web.console.conftest import EVIL, JOB, MOVE, ConsoleScene, at
from tests.support.migrated_schemas import drop_schema

GROUP = at("/letters/group", topic="star", code="column-type", column="note")
WHY = {"why": "more room"}


def slots(registry: Registry, entity: str = "star") -> dict[int, str]:
    return {one.slot: str(one.state) for one in registry.snapshot().assignments_of(entity)}


def lease_of(registry: Registry) -> Lease:
    """The lease of a job that runs."""
    lease = registry.take_lease(JOB, "host/7", 2, take_over=False, expires_after=600)
    registry.applied(lease, registry.snapshot().version)
    return lease


def step(registry: Registry, lease: Lease) -> None:
    """The job applies the registry's version and takes its next step."""
    version = registry.snapshot().version
    registry.applied(lease, version)
    registry.advance(lease, version, proven=("user", "star"), published=("profile",))


def counted(registry: Registry) -> None:
    """Statistics of a million stars."""
    star = EntityStatistics(entity="star", rows=1_000_000, mean_bytes=200.0, most_bytes=900, entry_bytes=90.0)
    registry.statistics.keep(Statistics(taken_at=registry.history(1)[0].at, entities=(star,), joins=()))


def test_a_move_shows_its_plan_and_then_its_life_to_its_end(console: ConsoleScene) -> None:
    browser, lease = console.browser(), lease_of(console.registry)
    page = browser.page(MOVE)
    assert "entity star: GSI_3 will hold who (planned)" in page
    assert "is planned: the job fills it in stored rows, then it serves" in page
    board = browser.send(MOVE, page, 303, **WHY)
    assert "Registry version 2: entity star: GSI_3 will hold who (planned)" in board
    seen = [slots(console.registry)]
    while seen[-1] != {3: "serving"}:
        step(console.registry, lease)
        seen.append(slots(console.registry))
        assert all(f"state-{state}" in browser.page("/slots") for state in seen[-1].values())
    assert [one[3] for one in seen] == ["planned", "writing", "backfilling", "serving", "serving"]
    (entry, *_) = [one for one in console.registry.history() if one.version == 2]
    assert (entry.who, entry.why) == ("ada", "more room")
    assert "Version 2" in browser.page("/slots")


def test_the_note_of_an_edit_is_for_the_person_who_made_it(console: ConsoleScene) -> None:
    browser = console.browser()
    form = browser.page(MOVE)
    token = form.split('name="form_token" value="')[1].split('"')[0]
    fields = {"plan": form.split('name="plan" value="')[1].split('"')[0], "version": "1", "form_token": token}
    answer = browser.client.post(MOVE, data=fields | WHY, follow_redirects=False)
    location = answer.headers["location"]
    assert "Registry version 2: " in browser.page(location)
    assert "Registry version 2: " not in browser.page("/slots?note=an-invented-one")


def test_the_second_of_two_operators_sees_what_the_first_one_did(console: ConsoleScene) -> None:
    ada, bob = console.browser(name="ada"), console.browser(name="bob")
    pages = [one.page(MOVE) for one in (ada, bob)]
    ada.send(MOVE, pages[0], 303, **WHY)
    before = console.registry.snapshot()
    refused = bob.send(MOVE, pages[1], 409, why="mine")
    assert "nothing was changed" in refused
    assert console.registry.snapshot() == before
    pause = at("/edit", edit="pause", product="profile")
    pages = [one.page(pause) for one in (ada, bob)]
    console.registry.operate(Signature("eve", "a night without stars"), operations.pause, None, paused=True)
    refused = bob.send(pause, pages[1], 409, why="mine too")
    assert "the registry moved on after you saw this plan" in refused
    assert "eve: a night without stars" in refused
    assert 'value="mine too"' in refused
    assert not console.registry.snapshot().products[0].paused
    bob.send(pause, refused, 303, why="mine too")
    assert console.registry.snapshot().products[0].paused


def test_a_double_click_makes_one_edit(console: ConsoleScene) -> None:
    browser = console.browser()
    page = browser.page(MOVE)
    browser.send(MOVE, page, 303, **WHY)
    browser.send(MOVE, page, 409, **WHY)
    assert console.registry.snapshot().version == 2


def test_a_plan_shows_rows_units_dollars_and_time(console: ConsoleScene) -> None:
    lease_of(console.registry)
    counted(console.registry)
    plan = console.browser().data(MOVE)["plan"]
    (backfill,) = plan["backfills"]
    assert (backfill["rows"], backfill["write_units"], backfill["seconds"]) == (1_000_000, 3_000_000, 1_000)
    assert backfill["text"].startswith(
        "GSI_3 holds who; 1,000,000 rows of star to fill: 3,000,000 write units, $1.88, "
    )


def test_an_edit_without_a_reason_or_without_the_typed_name_changes_nothing(console: ConsoleScene) -> None:
    browser = console.browser()
    remove = at("/edit", edit="remove", product="profile")
    page = browser.page(remove)
    assert "replaces every document of this product by a tombstone" in page
    assert "type <code>profile</code> to confirm" in browser.send(remove, page, 400, typed="profil", **WHY)
    assert "the history needs your reason" in browser.send(remove, page, 400, typed="profile", why=" ")
    assert not console.registry.snapshot().products[0].retracted
    browser.send(remove, page, 303, typed="profile", **WHY)
    assert console.registry.snapshot().products[0].retracted
    assert "state-leaving" in browser.page("/products")


def test_pause_resume_and_republish(console: ConsoleScene) -> None:
    browser = console.browser()
    for edit, state in (("pause", "paused"), ("resume", "live")):
        path = at("/edit", edit=edit, product="profile")
        assert f"state-{state}" in browser.send(path, browser.page(path), 303, **WHY)
    path = at("/edit", edit="republish", product="profile")
    assert "the job sends a message for each root" in browser.page(path)
    assert "version 2 waits for" in browser.send(path, browser.page(path), 303, **WHY)


def test_slots_are_added_to_the_table_and_then_to_the_registry(console: ConsoleScene) -> None:
    browser = console.browser()
    path = at("/edit", edit="add-slots", number=7)
    page = browser.page(path)
    assert "slots: GSI_1 to GSI_7, 5 before" in page
    assert "The table gets the new indexes; then the registry gets the slots" in browser.send(path, page, 303, **WHY)
    console.widening.wait()
    assert "Adding slots: registry version 2: slots: GSI_1 to GSI_7" in browser.page("/slots")
    assert (console.registry.snapshot().slots, console.registry.history(1)[0].who) == (7, "ada")
    assert "the registry has 7 slots, and cannot have 6" in browser.page(at("/edit", edit="add-slots", number=6), 409)


def test_a_slot_that_a_product_uses_cannot_retire(console: ConsoleScene) -> None:
    page = console.browser().page(at("/edit", edit="retire", entity="star", slot=1), 409)
    assert "joins of product profile use it; change or remove these first" in page


def test_a_version_is_undone_with_its_plan(console: ConsoleScene) -> None:
    browser = console.browser()
    console.applies(fields=["id"])
    path = at("/history/version", of=2)
    page = browser.page(path)
    assert "version 3" in page
    assert "<del>-" in page
    assert "undoes 2" in browser.send(path, page, 303, **WHY)
    stored = console.registry.snapshot()
    assert (stored.version, (stored.waiting or stored.products)[0].definition["fields"]) == (3, ["id", "name"])
    assert console.registry.history(1)[0].why == "undo of version 2: more room"
    diff = browser.data(at("/products/product", product="profile", before=1, after=2))["diff"]
    assert [one for one in diff["diff"] if one["sign"] in "+-"]
    move = browser.send(MOVE, browser.page(MOVE), 303, **WHY)
    assert "Registry version 4" in move
    assert "it moved who of star from GSI_1 to GSI_3" in browser.page(at("/history/version", of=4))


def test_a_group_of_dead_letters_is_previewed_replayed_or_dropped_and_its_outcome_stays(console: ConsoleScene) -> None:
    browser = console.browser()
    page = browser.page("/letters")
    assert "<strong>1</strong> waits" in page
    assert "<code>column-type</code>" in page
    assert "<code>note</code>" in page
    group = browser.page(GROUP)
    assert "refused: column" in group
    assert "No job runs: the next run replays them." in group
    chosen = {"letter": "star/0/7/1", "of": "marked"}
    assert "mark some dead letters" in browser.send(GROUP, group, 400, act="replay", of="marked", **WHY)
    lease_of(console.registry)
    asked = browser.send(GROUP, group, 303, act="replay", of="group", **WHY)
    assert "Request 2: job statestore replays 1 dead letters" in asked
    assert "code column-type, column note" in asked
    assert '<progress max="1" value="0" aria-label="request 2">' in asked
    (request,) = console.registry.replays.waiting()
    assert (request.who, request.why, request.letters) == ("ada", "more room", 1)
    assert "Request 2 of ada (more room)" in browser.page("/")
    assert "type <code>drop</code>" in browser.send(GROUP, group, 400, act="drop", **chosen, **WHY)
    dropped = browser.send(GROUP, group, 303, act="drop", typed="drop", **chosen, **WHY)
    assert "Request 3: 1 dead letters are dropped" in dropped
    assert "No dead letter waits" in dropped
    assert "drop of 1: 1 dropped" in dropped
    assert '<th scope="row">dropped</th>' in browser.page(at("/letters/request", of=3))
    assert "none of these dead letters waits any more" in browser.send(GROUP, group, 409, act="replay", **WHY)
    assert console.letters()[0][1].startswith("dropped by ada at ")


def test_a_letter_of_ten_megabytes_makes_a_small_page(console: ConsoleScene) -> None:
    letter = console.kept[0]
    record = replace(letter.rejected.record, value=b'{"note": "' + b"<b>" * 3_000_000, key=b"\xff\x00\x1b")
    refused = replace(letter.rejected, record=record, reason=EVIL * 1_000)
    console.kept[0] = replace(letter, rejected=refused)
    page = console.browser().page(at("/letters/letter", at="star/0/7/1"))
    assert len(page) < 200_000
    assert "ff 00 1b" in page
    assert "<b>" not in page
    report = ReplayReport(record=record, outcome="refused", reason="x", plain="the value is not text")
    console.store.write(refuse_replay(report, console.registry.history(1)[0].at))
    assert "refused again" in console.browser().page(GROUP)


def test_documents_and_rows_by_key(console: ConsoleScene) -> None:
    browser = console.browser()
    found = browser.data(at("/documents", product="profile", key=1))
    assert found["document"]["published"] is True
    assert '      "repo": "r",' in found["document"]["lines"]
    assert found["lineage"]["root"]["joins"][0]["rows"][0]["key"] == "ada#r"
    row = browser.page(at("/rows", entity="star", at="ada#r"))
    assert "topic star, partition 0, offset 2" in row
    assert "GSI_1" in row
    assert "No document: the table has no row user 99" in browser.page(at("/documents", product="profile", key=99))
    assert browser.data("/documents")["proposed"] == ['{"id":1}', '{"id":2}']


def test_a_document_that_waits_says_that_the_topic_has_another_one(console: ConsoleScene) -> None:
    console.applies(fields=["id"])
    lease = lease_of(console.registry)
    while console.registry.snapshot().waiting:
        step(console.registry, lease)
    page = console.browser().page(at("/documents", product="profile", key=1))
    assert "The topic has another document, or none: give --bootstrap-servers" in page


def test_the_overview_says_what_is_wrong_how_old_its_numbers_are_and_what_waits(
    console: ConsoleScene, run_state: dict[str, Any]
) -> None:
    browser = console.browser()
    assert "does not run" not in browser.page("/")
    assert "No job has run by this registry" in browser.page("/")
    lease = lease_of(console.registry)
    console.registry.runs.keep_report(lease, run_state)
    page = browser.page("/")
    assert "Job statestore: reads its topics" in page
    assert "product profile stopped: a column is missing" in page
    assert "these numbers are 0" in page
    assert "1,234 records, 10 years old" in page
    assert "events a second in the last 2 min: 4 to 12, 5 at the end" in page
    console.registry.give_back(lease)
    assert "does not run" in browser.page("/")


def test_a_registry_that_goes_away_and_comes_back(console: ConsoleScene, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Any:
        raise RegistryUnreachable("the registry at db:5432 does not answer")

    browser = console.browser()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(console.registry, "snapshot", away)
        page = browser.page("/slots", 503)
        assert "the registry at db:5432 does not answer" in page
        assert "this server continues by itself" in page
        assert browser.client.get("/api/slots").json()["status"] == 503
    assert "state-serving" in browser.page("/slots")


def test_a_registry_that_was_dropped_under_its_table(console: ConsoleScene) -> None:
    drop_schema(console.settings.registry, console.settings.registry_schema)
    browser = console.browser()
    page = browser.page("/slots", 503)
    assert "belongs to a registry, and there is none in the schema" in page
    assert "statestore rebuild-registry --registry-is-lost" in page
    assert "statestore apply" not in page
    assert "rebuild-registry" in browser.client.get("/api/slots").json()["detail"]
