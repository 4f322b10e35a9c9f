"""What the console shows of a job's state: landings, gates, and open changes."""

from time import time
from typing import Any

import pytest

from processor.console.shelves.landing_shelf import KnownLandings, LandingShelf
from processor.landing.landing_states import LandingState
from tests.integration.console.conftest import ConsoleScene
from tests.integration.console.test_console_edits import lease_of


def test_the_overview_shows_landings_and_what_waits_at_gates(
    console: ConsoleScene, run_state: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = LandingState("profile", "db/profile", time() - 90, "profile", 1_200, 0)
    monkeypatch.setattr(LandingShelf, "landings", lambda _: KnownLandings(asked=True, states=(state,), age=1.0))
    gates = {"profile": {"waiting": 2, "since": run_state["at"] - 8, "transaction": None}}
    console.registry.runs.keep_report(lease_of(console.registry), run_state | {"gates": gates})
    page = console.browser().page("/")
    assert "gate of profile: 2 documents wait, the oldest for 8 s" in page
    assert '<th scope="row">profile</th><td>db/profile</td><td>does not run</td><td class="number">1,200</td>' in page
    assert "1 min 30 s ago" in page
    monkeypatch.setattr(LandingShelf, "landings", lambda _: KnownLandings(asked=True, why="no answer"))
    assert "Unknown: no answer" in console.browser().page("/")
