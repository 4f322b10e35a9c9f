"""What the console shows of a job's state: landings, gates, and open changes."""

from time import time
from typing import Any

import pytest

from processor.engine.plan.planning import plan_of
from processor.engine.protocol.segments import make_segments, open_change
from processor.engine.rounds.trial import Trial
from processor.job.landing.landing import LandingState
from processor.tools.web.console import documents
from processor.tools.web.console.overview import LandingCache
from processor.tools.web.console.screen import KnownLandings
from statestore.items import read_row
from tests.integration.web.console.conftest import ConsoleScene, at, record_of
from tests.integration.web.console.test_console_edits import lease_of


def test_the_overview_shows_landings_and_what_waits_at_gates(
    console: ConsoleScene, run_state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = LandingState("profile", "db/profile", time() - 3_605, "profile", 1_200, 0)
    monkeypatch.setattr(LandingCache, "landings", lambda _: KnownLandings(states=(state,), age=1.0))
    gates = {"profile": {"waiting": 2, "since": run_state["at"] - 8, "transaction": None}}
    console.registry.runs.keep_report(lease_of(console.registry), run_state | {"gates": gates})
    page = console.browser().page("/")
    assert "gate of profile: 2 documents wait, the oldest for 8 s" in page
    assert '<th scope="row">profile</th><td>db/profile</td><td>does not run</td><td class="number">1,200</td>' in page
    assert "<td>1 h ago</td>" in page
    monkeypatch.setattr(LandingCache, "landings", lambda _: KnownLandings(why="no answer"))
    assert "Unknown: no answer" in console.browser().page("/")


def test_a_row_shows_its_open_changes_with_the_age_of_their_records(
    console: ConsoleScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, path = console.browser(), at("/rows", entity="star", at="ada#r")
    assert "The indexes show the row as it is." in browser.page(path)
    assert browser.data(path)["open"] == []
    key = plan_of(console.registry.snapshot()).entities["star"].key("ada#r")
    row = read_row(console.store.get([key])[key])
    (moved,) = row.slots.items()
    former = open_change("star", row._replace(version="000001.000000.0000000000000000001"), frozenset([(1, "eve")]))
    for n, change in enumerate((open_change("star", row, frozenset()), former)):
        for segment in make_segments([change], 1, n, "0"):
            console.store.write(segment.write())
    monkeypatch.setattr(documents, "record_age", lambda _, origin: f"{origin['offset']} min")
    browser = console.browser()
    first, second = browser.data(path)["open"]
    assert (first["slots"], first["former"], first["age"]) == ({"GSI_1": moved[1]}, [], "2 min")
    assert (second["former"], second["age"]) == ([["GSI_1", "eve"]], "1 min")
    assert 'star/0 offset 2</th><td class="nowrap">2 min</td>' in browser.page(path)


def test_a_document_says_how_long_it_waits_at_its_gate(console: ConsoleScene) -> None:
    console.applies(publish={"quiet": "1 h", "at_most": "2 h"})
    plan = plan_of(console.registry.snapshot())
    trial = Trial(plan=plan, settings=console.settings, run=2, other_store=console.store)
    trial.batch([record_of("user", 3, {"id": 1, "name": "eve"})])
    page = console.browser().page(at("/documents", product="profile", key=1))
    assert "not published as it is now: it waits at its gate, and changed last" in page
    assert (
        "its time has come: the job publishes it at once, or when it starts" in page
    )  # the clock of a trial is behind
