"""Every page answers in five seconds, whatever part is silent: an address that takes connections and never says a word."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from time import monotonic

import pytest
from starlette.testclient import TestClient

from processor.engine.protocol.segments import make_segments, open_change
from processor.tools.web.console import app
from processor.tools.web.console.app import SCREENS, OwnUser, console_app, console_parts
from processor.tools.web.server import GuardRules
from registry.repository import Registry
from statestore.items import read_row
from statestore.keys import row_key
from tests.integration.web.console.conftest import LOCAL, PAGES, Browser, ConsoleScene, at

SECONDS = 5.0
"""Within which a page answers."""


@pytest.fixture
def silent() -> Iterator[str]:
    """The address that takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def asked(console: ConsoleScene, silent: str) -> Iterator[Browser]:
    """A browser of a console whose broker is silent."""
    settings = replace(console.settings, bootstrap_servers=silent)
    with console_parts(console.registry, settings) as parts:
        yield Browser(TestClient(console_app(parts, SCREENS, OwnUser("ada"), GuardRules()), base_url=LOCAL))


def test_the_pages_of_these_tests_are_those_of_every_screen() -> None:
    assert {path.partition("?")[0] for path in PAGES} == {screen.path for screen in SCREENS}


def test_every_page_answers_in_five_seconds_while_the_broker_is_silent(console: ConsoleScene, asked: Browser) -> None:
    _open_changes_of_a_row(console)
    for path in (at("/rows", entity="star", at="ada#r"), *PAGES):
        for where in (path, f"/api{path}"):
            begun = monotonic()
            answer = asked.client.get(where)
            assert monotonic() - begun < SECONDS, where
            assert answer.status_code == (503 if "/letters/letter" in path else 200), answer.text


def test_a_page_of_a_silent_broker_says_so_and_shows_what_is_known(console: ConsoleScene, asked: Browser) -> None:
    _open_changes_of_a_row(console)
    assert "<strong>1</strong> waits" in asked.page("/letters")  # the registry counts them
    group = asked.page(at("/letters/group", topic="star", code="column-type", column="note"))
    assert "<strong>1</strong> waits" in group
    assert "Unknown until the broker answers: the broker has not answered within 2 s" in group
    assert "None of them is among these messages" not in group
    row = asked.page(at("/rows", entity="star", at="ada#r"))
    assert "unknown: the broker has not answered within 2 s" in row
    assert "GSI_1" in row


@pytest.mark.rest
def test_every_page_shows_itself_as_it_was_while_the_registry_is_silent(
    console: ConsoleScene, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.PAGE_SECONDS < SECONDS
    registry = Registry(str(console.settings.registry), console.settings.registry_schema)
    lost = Registry(f"postgresql://nobody@{silent}/none")
    browser = console.browser(registry)
    for path in PAGES:
        browser.page(path)
        browser.data(path)
    monkeypatch.setattr(registry, "_database", lost._database)
    monkeypatch.setattr(app, "PAGE_SECONDS", 0.5)
    for path in PAGES:
        begun = monotonic()
        page = browser.page(path, 503)
        assert monotonic() - begun < 2, path
        assert "no answer within 0.5 s: a part outside of the console is silent" in page
        assert "Below is this page as it was" in page
        assert 'name="why"' not in page  # nobody edits by an old page
    assert browser.client.get("/api/slots").json()["status"] == 503
    monkeypatch.undo()
    assert "Below is this page" not in console.browser(registry).page("/slots")
    registry.close()


def test_a_silent_broker_costs_many_pages_one_wait(asked: Browser) -> None:
    begun = monotonic()
    for number in range(30):
        asked.page(at("/letters/group", topic="star", before=f"0-{number}"))
    assert monotonic() - begun < 2 * SECONDS


def _open_changes_of_a_row(console: ConsoleScene) -> None:
    """The star has an open change, whose record a page looks up."""
    key = row_key("star", 1, "ada#r")
    row = read_row(console.store.get([key])[key])
    for segment in make_segments([open_change("star", row, frozenset())], 1, 0, "0"):
        console.store.write(segment.write())
