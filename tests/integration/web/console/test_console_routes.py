"""Each route of the console as a reader and as an operator of a connection, and what no page may hold."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from processor.environment.settings.settings import Settings
from processor.tools.web.console.screen import SlotWidening
from registry.repository import Registry
from statestore.memory import MemoryStore
from tests.integration.web.console.conftest import EVIL, LOCAL, MOVE, PAGES, ConsoleScene, at

GROUP = at("/letters/group", topic="star", code="column-type", column="note")
EDITS = {
    MOVE: {},
    at("/edit", edit="pause", product="profile"): {},
    at("/edit", edit="remove", product="profile"): {"typed": "profile"},
    GROUP: {"act": "drop", "typed": "drop", "of": "marked", "letter": "star/0/7/1"},
    at("/history/version", of=1): {"typed": "profile"},
}
WHY = {"why": "a test"}


def test_an_operator_sees_every_screen_and_its_json(console: ConsoleScene) -> None:
    browser = console.browser()
    for path in PAGES:
        page = browser.page(path)
        assert "ada, operator" in page, path
        assert isinstance(browser.data(path), dict), path
    for name in ("Overview", "Slots", "Products", "Documents", "Dead letters", "History", "Costs"):
        assert f">{name}</a>" in browser.page("/")


def test_no_page_holds_script_style_or_markup_of_others(console: ConsoleScene) -> None:
    browser = console.browser()
    for path in PAGES:
        answer = browser.client.get(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
        assert not re.search(r"<script(?! src=\"/static/)|<style|<[^<>]*\s(?:style|on\w+)=|javascript:", answer.text), (
            path
        )
        assert "<img" not in answer.text
        assert "\u202e" not in answer.text
        assert "\x1b" not in answer.text
        assert "password" not in answer.text.lower()
    assert "&lt;script&gt;alert(1)" in browser.page(at("/documents", product="profile", key=2))
    assert "\\u202e" in browser.page(at("/rows", entity="user", key=2))


def test_a_text_of_the_address_is_no_markup(console: ConsoleScene) -> None:
    browser = console.browser()
    for path, status in (
        (at("/documents", product=EVIL), 404),
        (at("/documents", product="profile", key=EVIL), 200),
        (at("/rows", entity=EVIL, key="1"), 200),
        (at("/edit", edit=EVIL), 404),
        (at("/edit", edit="move", entity=EVIL, slot=1, target=3), 409),
        (at("/history/version", of=EVIL), 400),
        (at("/products/product", product=EVIL), 404),
        (at("/letters/group", topic=EVIL, code=EVIL, column=EVIL), 200),
        ("/nothing", 404),
    ):
        page = browser.page(path, status)
        assert "<script>alert" not in page
        assert "<img" not in page


def test_a_reader_sees_every_screen_and_no_button_that_edits(
    console: ConsoleScene, registry_of: Callable[[str], Registry]
) -> None:
    browser = console.browser(registry_of("reader"))
    for path in PAGES:
        page = browser.page(path)
        assert "ada, reader: this role changes nothing" in page
        assert 'name="why"' not in page, path
        assert not re.search(r"<button[^>]*>(?!Look up|Show the plan|Compare|Find)", page), path
        browser.data(path)


@pytest.mark.parametrize("path", EDITS)
def test_a_reader_who_sends_a_form_anyway_is_refused(
    console: ConsoleScene, registry_of: Callable[[str], Registry], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    reader, before = registry_of("reader"), console.registry.snapshot()
    browser = console.browser(reader)
    with monkeypatch.context() as once:
        once.setattr(reader, "may_edit", lambda: True)
        form = browser.page(path)
    refused = browser.send(path, form, 403, **WHY, **EDITS[path])
    assert "you may read here, and change nothing: your role" in refused
    assert [fate for _, fate in console.letters()] == [""]
    monkeypatch.setattr(reader, "may_edit", lambda: True)
    if path != GROUP:  # a drop writes the table, whose own roles decide
        refused = browser.send(path, form, 403, **WHY, **EDITS[path])
        assert "the database refused the edit to your role, and nothing was changed" in refused
    assert console.registry.snapshot() == before


def test_a_form_of_another_site_changes_nothing(console: ConsoleScene) -> None:
    browser, before = console.browser(), console.registry.snapshot()
    page = browser.page(MOVE)
    assert "began again" in browser.send(MOVE, page, 403, **WHY, form_token="0" * 64)
    browser.client.headers["Sec-Fetch-Site"] = "cross-site"
    assert "from another site" in browser.send(MOVE, page, 403, **WHY)
    del browser.client.headers["Sec-Fetch-Site"]
    other = console.browser(name="eve")
    assert "began again" in other.send(MOVE, page, 403, **WHY)  # the form of another person
    assert console.registry.snapshot() == before


def test_an_empty_registry_says_what_to_do(registry: Registry) -> None:
    settings = Settings(registry_schema="s")
    widening = SlotWidening(settings)
    scene = ConsoleScene(settings=settings, registry=registry, store=MemoryStore(5), widening=widening)
    browser = scene.browser()
    for path in ("/", "/slots", "/products", "/history"):
        assert "<code>statestore apply --definitions DIR</code>" in browser.page(path)
    assert "run `statestore apply" in browser.client.get("/api/costs").text


def test_limits_of_requests(console: ConsoleScene) -> None:
    browser = console.browser()
    assert "more than 65,536 bytes" in browser.send(MOVE, browser.page(MOVE), 413, why="x" * 70_000)
    assert browser.client.get("/", headers={"Host": "evil.example.org"}).status_code == 421
    assert browser.client.put("/slots").status_code == 405
    few: Any = TestClient(console.app(console.registry, rate=2, clock=lambda: 0.0), base_url=LOCAL)
    assert [few.get("/").status_code for _ in range(3)] == [200, 200, 429]
